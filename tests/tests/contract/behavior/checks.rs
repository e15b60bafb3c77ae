//! Which arguments and states a call checks, and in which order. `tests/driver-codes` compared the
//! codes with those of an H200.

use std::ffi::{c_char, c_void};
use std::ptr;

use curium_driver::Driver;
use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_TEXTURE_GATHER,
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray, CUarray_format,
    CUcontext, CUdeviceptr, CUevent, CUfunc_cache, CUgraph, CUgraphExec, CUgraphNode,
    CUjitInputType, CUlimit, CUlinkState, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType,
    CUmemPoolProps, CUmemoryPool, CUresourcetype, CUresult, CUstream, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpType, CUstreamCaptureMode, CUtensorMap, Function,
};
use curium_tests::{TestDriver, TestResult, driver_test};

use super::call::{alloc, create, download, succeed, upload};
use super::graph_node::{graph, instantiate};
use super::{INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, in_created_context, loaded};

const NOT_SUPPORTED: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;
const INVALID_DEVICE: CUresult = CUresult::CUDA_ERROR_INVALID_DEVICE;
const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
const IMPLICIT: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

/// Asserts the code of a call.
macro_rules! fails {
    ($driver:expr, $code:expr, $function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(
            returned!($driver, $function($($argument),*)),
            $code,
            stringify!($function)
        )
    };
}

#[driver_test]
fn context_is_checked_before_pointers(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let mut popped: CUcontext = ptr::null_mut();
        succeed!(driver, cuCtxPopCurrent_v2(&raw mut popped));
        let none = ptr::null_mut();
        fails!(driver, INVALID_CONTEXT, cuMemAlloc_v2(none, 64));
        let mut address = 0;
        fails!(
            driver,
            INVALID_CONTEXT,
            cuMemAllocPitch_v2(&raw mut address, ptr::null_mut(), 16, 2, 1)
        );
        fails!(
            driver,
            INVALID_CONTEXT,
            cuCtxGetLimit(ptr::null_mut(), CUlimit::CU_LIMIT_STACK_SIZE)
        );
        fails!(
            driver,
            INVALID_CONTEXT,
            cuCtxGetCacheConfig(ptr::null_mut())
        );
        fails!(
            driver,
            INVALID_CONTEXT,
            cuSurfObjectCreate(ptr::null_mut(), ptr::null())
        );
        let mut map = CUtensorMap { opaque: [0; 16] };
        fails!(
            driver,
            INVALID_CONTEXT,
            cuTensorMapReplaceAddress(&raw mut map, ptr::null_mut())
        );
        // A stream's properties come after the pointer, and its flags before the context.
        fails!(
            driver,
            INVALID_VALUE,
            cuStreamGetPriority(ptr::null_mut(), ptr::null_mut())
        );
        let mut stream = ptr::null_mut();
        fails!(
            driver,
            INVALID_VALUE,
            cuStreamCreateWithPriority(&raw mut stream, 16, 0)
        );
        succeed!(driver, cuCtxPushCurrent_v2(context));
        assert_eq!(popped, context);
    });
    Ok(())
}

#[driver_test]
fn device_is_checked_after_pointers(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        fails!(
            driver,
            INVALID_VALUE,
            cuDeviceGetName(ptr::null_mut(), 64, 99)
        );
        fails!(
            driver,
            INVALID_VALUE,
            cuDeviceTotalMem_v2(ptr::null_mut(), 99)
        );
        fails!(
            driver,
            INVALID_VALUE,
            cuDeviceGetUuid_v2(ptr::null_mut(), 99)
        );
        // Retaining is the exception.
        fails!(
            driver,
            INVALID_DEVICE,
            cuDevicePrimaryCtxRetain(ptr::null_mut(), 99)
        );
        let mut id: [c_char; 3] = [0; 3];
        fails!(
            driver,
            INVALID_VALUE,
            cuDeviceGetPCIBusId(id.as_mut_ptr(), 3, 0)
        );
        let mut width = 0;
        let format = CUarray_format::CU_AD_FORMAT_UNORM_INT8X4;
        fails!(
            driver,
            INVALID_VALUE,
            cuDeviceGetTexture1DLinearMaxWidth(&raw mut width, format, 1, 99)
        );
        let format = CUarray_format::CU_AD_FORMAT_UNORM_INT16X1;
        succeed!(
            driver,
            cuDeviceGetTexture1DLinearMaxWidth(&raw mut width, format, 1, 0)
        );
    });
    Ok(())
}

fn plane(channels: u32) -> CUDA_ARRAY_DESCRIPTOR {
    CUDA_ARRAY_DESCRIPTOR {
        Width: 16,
        Height: 4,
        Format: CUarray_format::CU_AD_FORMAT_FLOAT,
        NumChannels: channels,
    }
}

#[driver_test]
fn array_copies_may_split_elements(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let shape = plane(1);
        let array: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const shape));
        let sent = [1_u8, 2, 3];
        succeed!(
            driver,
            cuMemcpyHtoA_v2(array, 5, sent.as_ptr().cast(), sent.len())
        );
        let mut received = [0_u8; 3];
        let target = received.as_mut_ptr().cast();
        succeed!(driver, cuMemcpyAtoH_v2(target, array, 5, received.len()));
        assert_eq!(received, sent);
        fails!(
            driver,
            INVALID_VALUE,
            cuMemcpyAtoH_v2(target, array, 63, received.len())
        );
        succeed!(driver, cuMemcpyAtoA_v2(array, 0, ptr::null_mut(), 0, 0));
        succeed!(driver, cuArrayDestroy(array));
    });
    Ok(())
}

#[driver_test]
fn array_formats_determine_channels(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let mut array: CUarray = ptr::null_mut();
        let three_channels = plane(3);
        fails!(
            driver,
            INVALID_VALUE,
            cuArrayCreate_v2(&raw mut array, &raw const three_channels)
        );
        let unknown = CUDA_ARRAY_DESCRIPTOR {
            Format: CUarray_format(0x7fff_ffff),
            ..plane(1)
        };
        fails!(
            driver,
            INVALID_VALUE,
            cuArrayCreate_v2(&raw mut array, &raw const unknown)
        );
        let volume = CUDA_ARRAY3D_DESCRIPTOR {
            Width: 16,
            Height: 4,
            Depth: 4,
            Format: CUarray_format::CU_AD_FORMAT_FLOAT,
            NumChannels: 1,
            Flags: CUDA_ARRAY3D_TEXTURE_GATHER,
        };
        fails!(
            driver,
            INVALID_VALUE,
            cuArray3DCreate_v2(&raw mut array, &raw const volume)
        );
        let unknown_flag = CUDA_ARRAY3D_DESCRIPTOR {
            Flags: 0x8000_0000,
            ..volume
        };
        fails!(
            driver,
            INVALID_VALUE,
            cuArray3DCreate_v2(&raw mut array, &raw const unknown_flag)
        );
        fails!(
            driver,
            INVALID_HANDLE,
            cuArrayGetDescriptor_v2(ptr::null_mut(), ptr::null_mut())
        );
    });
    Ok(())
}

#[driver_test]
fn only_arrays_have_resource_views(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let shape = plane(1);
        let array: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const shape));
        let address = alloc(driver, 4096);
        let mut memory = CUDA_RESOURCE_DESC {
            resType: CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
            ..CUDA_RESOURCE_DESC::default()
        };
        memory.res.linear.devPtr = address;
        memory.res.linear.format = CUarray_format::CU_AD_FORMAT_FLOAT;
        memory.res.linear.numChannels = 1;
        memory.res.linear.sizeInBytes = 256;
        let mut image = CUDA_RESOURCE_DESC {
            resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
            ..CUDA_RESOURCE_DESC::default()
        };
        image.res.array.hArray = array;
        let description = CUDA_TEXTURE_DESC::default();
        let empty = CUDA_RESOURCE_VIEW_DESC::default();
        let mut texture = 0;
        fails!(
            driver,
            INVALID_VALUE,
            cuTexObjectCreate(
                &raw mut texture,
                &raw const image,
                &raw const description,
                &raw const empty
            )
        );
        succeed!(
            driver,
            cuTexObjectCreate(
                &raw mut texture,
                &raw const memory,
                &raw const description,
                &raw const empty
            )
        );
        let mut view = CUDA_RESOURCE_VIEW_DESC {
            width: 7,
            ..CUDA_RESOURCE_VIEW_DESC::default()
        };
        succeed!(
            driver,
            cuTexObjectGetResourceViewDesc(&raw mut view, texture)
        );
        assert_eq!(view.width, 7, "there is no view to return");
        succeed!(driver, cuTexObjectDestroy(texture));
        succeed!(driver, cuArrayDestroy(array));
        succeed!(driver, cuMemFree_v2(address));
    });
    Ok(())
}

fn begin(driver: &Driver, stream: CUstream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    succeed!(driver, cuStreamBeginCapture_v2(stream, mode));
}

fn end(driver: &Driver, stream: CUstream) {
    let mut captured: CUgraph = ptr::null_mut();
    let code = returned!(driver, cuStreamEndCapture(stream, &raw mut captured));
    if captured.is_null() {
        assert_eq!(code, INVALIDATED);
    } else {
        succeed!(driver, cuGraphDestroy(captured));
    }
}

#[driver_test]
fn captures_affect_stream_queries(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 0));
        let default: CUstream = ptr::null_mut();
        let mut flags = 0;
        let mut id = 0;
        let mut device = 0;
        begin(driver, stream);
        fails!(
            driver,
            UNSUPPORTED,
            cuStreamGetFlags(stream, &raw mut flags)
        );
        end(driver, stream);

        begin(driver, stream);
        fails!(driver, IMPLICIT, cuStreamGetFlags(default, &raw mut flags));
        fails!(driver, IMPLICIT, cuStreamGetId(default, &raw mut id));
        fails!(
            driver,
            IMPLICIT,
            cuStreamEndCapture(default, ptr::null_mut())
        );
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        fails!(driver, IMPLICIT, cuStreamBeginCapture_v2(default, mode));
        end(driver, stream);

        begin(driver, stream);
        fails!(driver, UNSUPPORTED, cuStreamGetId(stream, &raw mut id));
        end(driver, stream);
        if driver.has(Function::cuStreamGetDevice) {
            begin(driver, stream);
            fails!(
                driver,
                UNSUPPORTED,
                cuStreamGetDevice(stream, &raw mut device)
            );
            end(driver, stream);
        }

        begin(driver, stream);
        let mut address = 0;
        fails!(driver, UNSUPPORTED, cuMemAlloc_v2(&raw mut address, 64));
        let mut priority = 0;
        fails!(
            driver,
            INVALIDATED,
            cuStreamGetPriority(stream, &raw mut priority)
        );
        // These cannot be captured, valid or not.
        fails!(driver, UNSUPPORTED, cuStreamQuery(stream));
        fails!(driver, UNSUPPORTED, cuStreamSynchronize(stream));
        end(driver, stream);
        succeed!(driver, cuStreamDestroy_v2(stream));
    });
    Ok(())
}

#[driver_test]
fn captures_forbid_settings_and_pools(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        begin(driver, stream);
        let config = CUfunc_cache::CU_FUNC_CACHE_PREFER_L1;
        fails!(driver, UNSUPPORTED, cuCtxSetCacheConfig(config));
        end(driver, stream);
        begin(driver, stream);
        let limit = CUlimit::CU_LIMIT_STACK_SIZE;
        fails!(driver, UNSUPPORTED, cuCtxSetLimit(limit, 1024));
        end(driver, stream);
        begin(driver, stream);
        fails!(driver, UNSUPPORTED, cuDeviceSetMemPool(0, ptr::null_mut()));
        end(driver, stream);
        begin(driver, stream);
        fails!(driver, INVALID_HANDLE, cuModuleUnload(ptr::null_mut()));
        end(driver, stream);
        succeed!(driver, cuStreamDestroy_v2(stream));
    });
    Ok(())
}

fn device() -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..CUmemLocation::default()
    }
}

#[driver_test]
fn graphs_do_not_allocate_exportable_memory(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let options = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            location: device(),
            ..CUmemPoolProps::default()
        };
        let pool: CUmemoryPool = create!(driver, cuMemPoolCreate(_, &raw const options));
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        begin(driver, stream);
        let mut address = 0;
        fails!(
            driver,
            NOT_SUPPORTED,
            cuMemAllocFromPoolAsync(&raw mut address, 64, pool, stream)
        );
        end(driver, stream);
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemPoolDestroy(pool));
    });
    Ok(())
}

/// Adds a node that allocates memory.
fn add_allocation(driver: &Driver, graph: CUgraph) -> CUgraphNode {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytesize: 4096,
        ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
    };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = device();
    create!(
        driver,
        cuGraphAddMemAllocNode(_, graph, ptr::null(), 0, &raw mut params)
    )
}

#[driver_test]
fn memory_nodes_stay_in_their_graph(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let inner = graph(driver);
        let mut popped: CUcontext = ptr::null_mut();
        succeed!(driver, cuCtxPopCurrent_v2(&raw mut popped));
        let allocation = add_allocation(driver, inner);
        succeed!(driver, cuCtxPushCurrent_v2(context));
        fails!(driver, NOT_SUPPORTED, cuGraphDestroyNode(allocation));
        fails!(
            driver,
            NOT_SUPPORTED,
            cuGraphRemoveDependencies(inner, ptr::null(), ptr::null(), 0)
        );
        let outer = graph(driver);
        let mut child: CUgraphNode = ptr::null_mut();
        fails!(
            driver,
            NOT_SUPPORTED,
            cuGraphAddChildGraphNode(&raw mut child, outer, ptr::null(), 0, inner)
        );
        succeed!(driver, cuGraphDestroy(outer));
        succeed!(driver, cuGraphDestroy(inner));
    });
    Ok(())
}

fn value_write(kind: CUstreamBatchMemOpType, address: CUdeviceptr) -> CUstreamBatchMemOpParams {
    let mut operation = CUstreamBatchMemOpParams::default();
    operation.writeValue.operation = kind;
    operation.writeValue.address = address;
    operation
}

#[driver_test]
fn batch_nodes_keep_their_operations(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let address = alloc(driver, 64);
        let narrow = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
        let wide = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;
        let mut first = [value_write(narrow, address)];
        let mut second = [value_write(narrow, address + 8)];
        let mut third = [value_write(wide, address)];
        let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: context,
            count: 1,
            paramArray: first.as_mut_ptr(),
            flags: 0,
        };
        let graph = graph(driver);
        let node: CUgraphNode = create!(
            driver,
            cuGraphAddBatchMemOpNode(_, graph, ptr::null(), 0, &raw const params)
        );
        let executable = instantiate(driver, graph);
        let other_address = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            paramArray: second.as_mut_ptr(),
            ..params
        };
        succeed!(
            driver,
            cuGraphExecBatchMemOpNodeSetParams(executable, node, &raw const other_address)
        );
        let other_width = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            paramArray: third.as_mut_ptr(),
            ..params
        };
        fails!(
            driver,
            INVALID_VALUE,
            cuGraphExecBatchMemOpNodeSetParams(executable, node, &raw const other_width)
        );
        let no_context = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: ptr::null_mut(),
            ..params
        };
        fails!(
            driver,
            INVALID_VALUE,
            cuGraphBatchMemOpNodeSetParams(node, &raw const no_context)
        );
        let nothing = CUDA_BATCH_MEM_OP_NODE_PARAMS { count: 0, ..params };
        succeed!(
            driver,
            cuGraphBatchMemOpNodeSetParams(node, &raw const nothing)
        );
        succeed!(driver, cuGraphExecDestroy(executable));
        succeed!(driver, cuGraphDestroy(graph));
        succeed!(driver, cuMemFree_v2(address));
    });
    Ok(())
}

#[driver_test]
fn kernel_node_runs_in_the_functions_context(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let (module, function) = loaded(driver)?;
        let graph = graph(driver);
        let other: CUcontext = create!(driver, cuCtxCreate_v2(_, 0, 0));
        let mut target: CUdeviceptr = 0;
        let mut count = 0_u32;
        let mut value = 0_u32;
        let mut values: [*mut c_void; 3] = [
            (&raw mut target).cast(),
            (&raw mut count).cast(),
            (&raw mut value).cast(),
        ];
        let params = CUDA_KERNEL_NODE_PARAMS {
            func: function,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: values.as_mut_ptr(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        };
        let mut node: CUgraphNode = ptr::null_mut();
        succeed!(
            driver,
            cuGraphAddKernelNode_v2(&raw mut node, graph, ptr::null(), 0, &raw const params)
        );
        succeed!(driver, cuCtxDestroy_v2(other));
        succeed!(driver, cuGraphDestroy(graph));
        succeed!(driver, cuModuleUnload(module));
        Ok(())
    })
}

#[driver_test]
fn upload_needs_instantiation_parameters(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let graph = graph(driver);
        let mut executable: CUgraphExec = ptr::null_mut();
        fails!(
            driver,
            INVALID_VALUE,
            cuGraphInstantiateWithFlags(&raw mut executable, graph, 2)
        );
        let executable = instantiate(driver, graph);
        succeed!(
            driver,
            cuGraphExecUpdate_v2(executable, graph, ptr::null_mut())
        );
        succeed!(driver, cuGraphExecDestroy(executable));
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

#[driver_test]
fn retired_context_functions_still_work(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let mut current: CUcontext = ptr::null_mut();
        fails!(driver, INVALID_VALUE, cuCtxAttach(&raw mut current, 2));
        succeed!(driver, cuCtxAttach(&raw mut current, 0));
        assert_eq!(current, context);
        succeed!(driver, cuCtxDetach(context));
        fails!(driver, INVALID_CONTEXT, cuCtxPushCurrent(context));
        succeed!(driver, cuCtxPopCurrent(&raw mut current));
        assert_eq!(current, context);
        fails!(driver, INVALID_CONTEXT, cuCtxDetach(context));
        succeed!(driver, cuCtxPushCurrent_v2(context));
    });
    Ok(())
}

#[driver_test]
fn nothing_to_unmap_is_no_error(test: &TestDriver) -> TestResult {
    const SIZE: usize = 2 << 20;
    in_created_context(test, |driver, _| {
        let properties = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            location: device(),
            ..CUmemAllocationProp::default()
        };
        let handle: CUmemGenericAllocationHandle =
            create!(driver, cuMemCreate(_, SIZE, &raw const properties, 0));
        let address: CUdeviceptr = create!(driver, cuMemAddressReserve(_, SIZE, 0, 0, 0));
        succeed!(driver, cuMemUnmap(address, SIZE));
        succeed!(driver, cuMemUnmap(address, 3));
        fails!(driver, INVALID_VALUE, cuMemUnmap(address, 0));
        // A mapping is of the whole allocation.
        fails!(driver, NOT_SUPPORTED, cuMemMap(address, 4097, 0, handle, 0));
        succeed!(driver, cuMemMap(address, SIZE, 0, handle, 0));
        fails!(driver, INVALID_VALUE, cuMemUnmap(address, 3));
        succeed!(driver, cuMemUnmap(address, SIZE));
        succeed!(driver, cuMemRelease(handle));
        succeed!(driver, cuMemAddressFree(address, SIZE));
    });
    Ok(())
}

#[driver_test]
fn pools_of_unknown_places_do_not_exist(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let mut pool: CUmemoryPool = ptr::null_mut();
        let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        if driver.has(Function::cuMemGetMemPool) {
            let mut unknown = CUmemLocation {
                type_: CUmemLocationType(7),
                ..CUmemLocation::default()
            };
            fails!(
                driver,
                NOT_SUPPORTED,
                cuMemGetMemPool(&raw mut pool, &raw mut unknown, pinned)
            );
            let mut missing = device();
            missing.__bindgen_anon_1.id = -1;
            fails!(
                driver,
                INVALID_VALUE,
                cuMemGetMemPool(&raw mut pool, &raw mut missing, pinned)
            );
        }
        let data: *mut c_void = (&raw mut pool).cast();
        let windows = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32;
        let mut imported = 0;
        fails!(
            driver,
            NOT_SUPPORTED,
            cuMemImportFromShareableHandle(&raw mut imported, data, windows)
        );
        fails!(
            driver,
            NOT_SUPPORTED,
            cuMemPoolImportFromShareableHandle(&raw mut pool, data, windows, 0)
        );
    });
    Ok(())
}

#[driver_test]
fn cubin_of_a_link_is_no_text(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let mut text = std::ffi::CString::new(curium_tests::kernels::FILL)?.into_bytes_with_nul();
        let none = ptr::null_mut();
        let mut link: CUlinkState = ptr::null_mut();
        succeed!(
            driver,
            cuLinkCreate_v2(0, none, ptr::null_mut(), &raw mut link)
        );
        fails!(
            driver,
            CUresult::CUDA_ERROR_INVALID_IMAGE,
            cuLinkAddData_v2(
                link,
                CUjitInputType::CU_JIT_INPUT_CUBIN,
                text.as_mut_ptr().cast(),
                text.len(),
                c"text".as_ptr(),
                0,
                none,
                ptr::null_mut()
            )
        );
        succeed!(driver, cuLinkDestroy(link));
        Ok(())
    })
}

#[driver_test]
fn look_ups_know_their_flags(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let name = c"cuStreamQuery".as_ptr();
        let mut address = ptr::null_mut();
        fails!(
            driver,
            INVALID_VALUE,
            cuGetProcAddress(name, &raw mut address, 12_000, 16)
        );
        succeed!(driver, cuGetProcAddress(name, &raw mut address, 12_000, 1));
        fails!(
            driver,
            CUresult::CUDA_ERROR_NOT_FOUND,
            cuGetProcAddress(name, ptr::null_mut(), 1, 0)
        );
    });
    Ok(())
}

#[driver_test]
fn elapsed_time_without_output_has_this_code(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let event: CUevent = create!(driver, cuEventCreate(_, 0));
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        succeed!(driver, cuEventRecord(event, stream));
        succeed!(driver, cuEventSynchronize(event));
        fails!(
            driver,
            INVALID_HANDLE,
            cuEventElapsedTime(ptr::null_mut(), event, event)
        );
        let address = alloc(driver, 4);
        upload(driver, address, &[0; 4]);
        // A write of a value always has a barrier.
        fails!(
            driver,
            INVALID_VALUE,
            cuStreamWriteValue32_v2(stream, address, 1, 1)
        );
        succeed!(driver, cuStreamWriteValue32_v2(stream, address, 7, 0));
        succeed!(driver, cuStreamSynchronize(stream));
        assert_eq!(download(driver, address, 4), [7, 0, 0, 0]);
        succeed!(driver, cuMemFree_v2(address));
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuEventDestroy_v2(event));
    });
    Ok(())
}
