//! Codes of calls with unusual arguments, which `tests/driver-codes` compared with those of an
//! H200.

use std::ffi::c_void;
use std::ptr;

use curium_driver::Driver;
use curium_sim::Simulator;
use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUDA_RESOURCE_DESC, CUarray, CUarray_format, CUcontext, CUdeviceptr, CUevent, CUfunc_cache,
    CUgraph, CUgraphExec, CUlaunchConfig, CUlinkState, CUmemAccess_flags, CUmemAccessDesc,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPoolProps, CUmemoryPool,
    CUmemorytype, CUmodule, CUresourcetype, CUresult, CUstream, CUstreamCaptureMode,
};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::call::{alloc, create, download, succeed, upload};
use super::graph_node::{graph, instantiate};
use super::{INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, OK, in_created_context};

const NOT_SUPPORTED: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;
const UNSUPPORTED_IN_CAPTURE: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

/// Returns a copy of two rows on the device.
fn volume(driver: &Driver) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: alloc(driver, 4096),
        srcPitch: 64,
        srcHeight: 2,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: alloc(driver, 4096),
        dstPitch: 64,
        dstHeight: 2,
        WidthInBytes: 16,
        Height: 2,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    }
}

/// Checks that copies and fills of `huge` rows, layers and elements are rejected.
fn reject_extents(driver: &Driver, context: CUcontext, huge: usize) {
    let valid = volume(driver);
    succeed!(driver, cuMemcpy3D_v2(&raw const valid));
    let copies = [
        CUDA_MEMCPY3D {
            Height: huge,
            ..valid
        },
        CUDA_MEMCPY3D {
            Depth: huge,
            ..valid
        },
        CUDA_MEMCPY3D {
            srcZ: huge,
            ..valid
        },
        CUDA_MEMCPY3D {
            dstY: huge,
            ..valid
        },
    ];
    for copy in copies {
        let code = returned!(driver, cuMemcpy3D_v2(&raw const copy));
        assert_eq!(code, INVALID_VALUE, "{copy:?}");
    }
    let set = CUDA_MEMSET_NODE_PARAMS {
        dst: valid.dstDevice,
        pitch: 64,
        value: 1,
        elementSize: 1,
        width: 16,
        height: huge,
    };
    let mut node = ptr::null_mut();
    let graph = graph(driver);
    let code = returned!(
        driver,
        cuGraphAddMemsetNode(
            &raw mut node,
            graph,
            ptr::null(),
            0,
            &raw const set,
            context
        )
    );
    assert_eq!(code, INVALID_VALUE);
    succeed!(driver, cuGraphDestroy(graph));
}

#[driver_test]
fn extents_beyond_all_memory_are_rejected(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        reject_extents(driver, context, 1 << 48);
    });
    Ok(())
}

/// Hardware has no answer to some of these, but waits forever.
#[simulator_test]
fn extents_that_overflow_are_rejected(test: &TestDriver, _: &Simulator) -> TestResult {
    in_created_context(test, |driver, context| {
        reject_extents(driver, context, usize::MAX);
    });
    Ok(())
}

fn host_pool(driver: &Driver) -> CUmemoryPool {
    let options = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST,
            ..CUmemLocation::default()
        },
        ..CUmemPoolProps::default()
    };
    create!(driver, cuMemPoolCreate(_, &raw const options))
}

#[driver_test]
fn host_pool_serves_several_allocations(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let pool = host_pool(driver);
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let first: CUdeviceptr = create!(driver, cuMemAllocFromPoolAsync(_, 4096, pool, stream));
        let second: CUdeviceptr = create!(driver, cuMemAllocFromPoolAsync(_, 4096, pool, stream));
        assert_ne!(first, second);
        for address in [first, second] {
            succeed!(driver, cuMemFreeAsync(address, stream));
        }
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemPoolDestroy(pool));
    });
    Ok(())
}

#[driver_test]
fn device_needs_access_to_a_host_pool(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let pool = host_pool(driver);
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let address: CUdeviceptr = create!(driver, cuMemAllocFromPoolAsync(_, 4096, pool, stream));
        let other = alloc(driver, 64);
        let code = returned!(driver, cuMemsetD8Async(address, 1, 64, stream));
        assert_eq!(code, INVALID_VALUE);
        let code = returned!(driver, cuMemcpyDtoD_v2(address, other, 64));
        assert_eq!(code, INVALID_VALUE);
        let mut data = curium_sys::CUmemPoolPtrExportData::default();
        let code = returned!(driver, cuMemPoolExportPointer(&raw mut data, address));
        assert_eq!(code, INVALID_VALUE);
        let access = CUmemAccessDesc {
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                ..CUmemLocation::default()
            },
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        succeed!(driver, cuMemPoolSetAccess(pool, &raw const access, 1));
        succeed!(driver, cuMemsetD8Async(address, 1, 64, stream));
        succeed!(driver, cuMemFreeAsync(address, stream));
        succeed!(driver, cuMemFree_v2(other));
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemPoolDestroy(pool));
    });
    Ok(())
}

/// The functions take other contexts for null: the current one, or none.
#[driver_test]
fn null_contexts_are_rejected_or_current(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let none: CUcontext = ptr::null_mut();
        let event: CUevent = create!(driver, cuEventCreate(_, 0));
        let code = returned!(driver, cuCtxRecordEvent(none, event));
        assert_eq!(code, INVALID_CONTEXT);
        let code = returned!(driver, cuCtxWaitEvent(none, event));
        assert_eq!(code, INVALID_CONTEXT);
        let graph = graph(driver);
        let mut handle = 0;
        let code = returned!(
            driver,
            cuGraphConditionalHandleCreate(&raw mut handle, graph, none, 0, 0)
        );
        assert_eq!(code, INVALID_CONTEXT);
        let code = returned!(driver, cuCtxPushCurrent_v2(none));
        assert_eq!(code, INVALID_VALUE);
        let from = alloc(driver, 64);
        let to = alloc(driver, 64);
        succeed!(driver, cuMemcpyPeer(to, none, from, none, 64));
        succeed!(driver, cuEventDestroy_v2(event));
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

#[driver_test]
fn host_pointer_may_be_device_memory(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let from = alloc(driver, 64);
        let to = alloc(driver, 64);
        upload(driver, from, &[7; 64]);
        let pointer: *const c_void = ptr::with_exposed_provenance(usize::try_from(from)?);
        succeed!(driver, cuMemcpyHtoD_v2(to, pointer, 64));
        assert_eq!(download(driver, to, 64), [7; 64]);
        Ok(())
    })
}

#[driver_test]
fn optional_outputs_may_be_null(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let mut of_stream: CUcontext = ptr::null_mut();
        let none = ptr::null_mut();
        succeed!(
            driver,
            cuStreamGetCtx_v2(stream, &raw mut of_stream, ptr::null_mut())
        );
        assert_eq!(of_stream, context);
        let code = returned!(driver, cuStreamGetCtx_v2(stream, none, ptr::null_mut()));
        assert_eq!(code, INVALID_VALUE);
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        succeed!(driver, cuStreamBeginCapture_v2(stream, mode));
        succeed!(driver, cuStreamEndCapture(stream, ptr::null_mut()));
        succeed!(driver, cuStreamDestroy_v2(stream));

        let graph = graph(driver);
        let mut node = ptr::null_mut();
        let mut count = 1;
        let edges = returned!(
            driver,
            cuGraphGetEdges(graph, &raw mut node, ptr::null_mut(), &raw mut count)
        );
        assert_eq!(edges, INVALID_VALUE);
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

/// An old capture permits allocations and instantiations, as a relaxed one.
#[driver_test]
fn old_capture_permits_unsafe_calls(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let graph = graph(driver);
        succeed!(driver, cuStreamBeginCapture(stream));
        let address = alloc(driver, 64);
        succeed!(driver, cuGraphExecDestroy(instantiate(driver, graph)));
        let mut captured: CUgraph = ptr::null_mut();
        succeed!(driver, cuStreamEndCapture(stream, &raw mut captured));
        succeed!(driver, cuGraphDestroy(captured));

        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        succeed!(driver, cuStreamBeginCapture_v2(stream, mode));
        let mut executable: CUgraphExec = ptr::null_mut();
        let code = returned!(
            driver,
            cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
        );
        assert_eq!(code, UNSUPPORTED_IN_CAPTURE);
        let code = returned!(driver, cuStreamEndCapture(stream, &raw mut captured));
        assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemFree_v2(address));
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

#[driver_test]
fn graph_that_allocates_has_one_executable(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let graph = graph(driver);
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
            bytesize: 4096,
            ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
        };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let mut node = ptr::null_mut();
        succeed!(
            driver,
            cuGraphAddMemAllocNode(&raw mut node, graph, ptr::null(), 0, &raw mut params)
        );
        let first = instantiate(driver, graph);
        let mut second: CUgraphExec = ptr::null_mut();
        let code = returned!(
            driver,
            cuGraphInstantiateWithFlags(&raw mut second, graph, 0)
        );
        assert_eq!(code, NOT_SUPPORTED);
        let mut is_enabled = 0;
        let code = returned!(
            driver,
            cuGraphNodeGetEnabled(first, node, &raw mut is_enabled)
        );
        assert_eq!(code, INVALID_VALUE);
        succeed!(driver, cuGraphExecDestroy(first));
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

/// Every conditional handle of a graph needs a node.
#[driver_test]
fn graph_with_unused_condition_has_no_executable(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let graph = graph(driver);
        let mut handle = 0;
        succeed!(
            driver,
            cuGraphConditionalHandleCreate(&raw mut handle, graph, context, 0, 0)
        );
        let mut executable: CUgraphExec = ptr::null_mut();
        let code = returned!(
            driver,
            cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
        );
        assert_eq!(code, INVALID_VALUE);
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

/// An update of a copy keeps the kinds of memory.
#[driver_test]
fn copy_of_an_executable_keeps_its_memory(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, context| {
        let graph = graph(driver);
        let copy = volume(driver);
        let mut node = ptr::null_mut();
        succeed!(
            driver,
            cuGraphAddMemcpyNode(
                &raw mut node,
                graph,
                ptr::null(),
                0,
                &raw const copy,
                context
            )
        );
        let executable = instantiate(driver, graph);
        let mut host = [0_u8; 256];
        let to_host = CUDA_MEMCPY3D {
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: host.as_mut_ptr().cast(),
            ..copy
        };
        let code = returned!(
            driver,
            cuGraphExecMemcpyNodeSetParams(executable, node, &raw const to_host, context)
        );
        assert_eq!(code, INVALID_VALUE);
        succeed!(driver, cuGraphMemcpyNodeSetParams(node, &raw const to_host));
        succeed!(driver, cuGraphExecDestroy(executable));
        succeed!(driver, cuGraphDestroy(graph));
    });
    Ok(())
}

#[driver_test]
fn null_handles_have_these_codes(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        succeed!(driver, cuTexObjectDestroy(0));
        succeed!(driver, cuSurfObjectDestroy(0));
        let graph = graph(driver);
        let mut node = ptr::null_mut();
        let no_event: CUevent = ptr::null_mut();
        let code = returned!(
            driver,
            cuGraphAddEventRecordNode(&raw mut node, graph, ptr::null(), 0, no_event)
        );
        assert_eq!(code, INVALID_VALUE);
        succeed!(driver, cuGraphDestroy(graph));
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            ..CUlaunchConfig::default()
        };
        let mut count = 0;
        let code = returned!(
            driver,
            cuOccupancyMaxActiveClusters(&raw mut count, ptr::null_mut(), &raw const config)
        );
        assert_eq!(code, INVALID_VALUE);
        let code = returned!(
            driver,
            cuFuncSetCacheConfig(ptr::null_mut(), CUfunc_cache(9))
        );
        assert_eq!(code, INVALID_HANDLE);
        let mut pool: CUmemoryPool = ptr::null_mut();
        let code = returned!(driver, cuDeviceGetMemPool(&raw mut pool, 99));
        assert_eq!(code, INVALID_VALUE);
        let code = returned!(driver, cuDeviceGetDefaultMemPool(&raw mut pool, 99));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_DEVICE);
        let code = returned!(driver, cuCtxDestroy_v2(ptr::null_mut()));
        assert_eq!(code, INVALID_VALUE);
        let mut module: CUmodule = ptr::null_mut();
        let code = returned!(driver, cuFuncGetModule(&raw mut module, ptr::null_mut()));
        assert_eq!(code, INVALID_VALUE);
        let code = returned!(driver, cuModuleLoad(&raw mut module, c"".as_ptr()));
        assert_eq!(code, INVALID_VALUE);
    });
    Ok(())
}

#[driver_test]
fn link_without_input_is_complete(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let mut link: CUlinkState = ptr::null_mut();
        succeed!(
            driver,
            cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &raw mut link)
        );
        let mut image: *mut c_void = ptr::null_mut();
        succeed!(
            driver,
            cuLinkComplete(link, &raw mut image, ptr::null_mut())
        );
        assert!(!image.is_null());
        succeed!(driver, cuLinkDestroy(link));
    });
    Ok(())
}

/// Operations on memory by a stream reject managed and stream-ordered memory.
#[driver_test]
fn stream_writes_no_managed_memory(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let plain = alloc(driver, 64);
        let managed: CUdeviceptr = create!(driver, cuMemAllocManaged(_, 4096, 1));
        let pooled: CUdeviceptr = create!(driver, cuMemAllocAsync(_, 4096, stream));
        for (address, expected) in [
            (plain, OK),
            (managed, INVALID_VALUE),
            (pooled, INVALID_VALUE),
        ] {
            let code = returned!(driver, cuStreamWriteValue32_v2(stream, address, 1, 0));
            assert_eq!(code, expected);
        }
        succeed!(driver, cuMemFreeAsync(pooled, stream));
        succeed!(driver, cuStreamSynchronize(stream));
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemFree_v2(managed));
        succeed!(driver, cuMemFree_v2(plain));
    });
    Ok(())
}

/// Batches need a stream that is not the legacy one.
#[driver_test]
fn batches_reject_the_legacy_stream(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        let mut managed: CUdeviceptr = create!(driver, cuMemAllocManaged(_, 4096, 1));
        let mut size = 4096;
        for (stream, expected) in [
            (stream, OK),
            (ptr::null_mut(), INVALID_VALUE),
            (ptr::without_provenance_mut(1), INVALID_VALUE),
        ] {
            let code = returned!(
                driver,
                cuMemDiscardBatchAsync(&raw mut managed, &raw mut size, 1, 0, stream)
            );
            assert_eq!(code, expected);
        }
        succeed!(driver, cuStreamSynchronize(stream));
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuMemFree_v2(managed));
    });
    Ok(())
}

/// Rows of arrays are copied from and to all kinds of memory, and arrays need no flag for surfaces.
#[driver_test]
fn rows_of_arrays_are_copied(test: &TestDriver) -> TestResult {
    in_created_context(test, |driver, _| {
        let descriptor = CUDA_ARRAY_DESCRIPTOR {
            Width: 64,
            Height: 0,
            Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
            NumChannels: 1,
        };
        let first: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const descriptor));
        let second: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const descriptor));
        let memory = alloc(driver, 64);
        let bytes: Vec<u8> = (0..64).collect();
        upload(driver, memory, &bytes);
        succeed!(driver, cuMemcpyDtoA_v2(first, 0, memory, 64));
        succeed!(driver, cuMemcpyAtoA_v2(second, 8, first, 0, 32));
        succeed!(driver, cuMemcpyAtoD_v2(memory, second, 8, 32));
        assert_eq!(download(driver, memory, 32), bytes[..32]);
        let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
        succeed!(
            driver,
            cuMemcpyHtoAAsync_v2(first, 4, bytes.as_ptr().cast(), 60, stream)
        );
        let mut read = [0_u8; 64];
        succeed!(
            driver,
            cuMemcpyAtoHAsync_v2(read.as_mut_ptr().cast(), first, 4, 60, stream)
        );
        succeed!(driver, cuStreamSynchronize(stream));
        assert_eq!(read[..60], bytes[..60]);
        let code = returned!(driver, cuMemcpyAtoD_v2(memory, ptr::null_mut(), 0, 32));
        assert_eq!(code, INVALID_VALUE);
        let code = returned!(driver, cuMemcpyAtoD_v2(memory, first, 60, 32));
        assert_eq!(code, INVALID_VALUE);
        let mut resource = CUDA_RESOURCE_DESC {
            resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
            ..CUDA_RESOURCE_DESC::default()
        };
        resource.res.array.hArray = first;
        let surface = create!(driver, cuSurfObjectCreate(_, &raw const resource));
        succeed!(driver, cuSurfObjectDestroy(surface));
        succeed!(driver, cuStreamDestroy_v2(stream));
        succeed!(driver, cuArrayDestroy(first));
        succeed!(driver, cuArrayDestroy(second));
        succeed!(driver, cuMemFree_v2(memory));
    });
    Ok(())
}
