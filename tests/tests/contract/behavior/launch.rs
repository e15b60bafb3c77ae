//! Launches: rejected configurations, device errors and their effects, and limits.

use std::ffi::{CString, c_void};
use std::ptr;

use curium_driver::{DeviceAttribute, Driver};
use curium_memory::DeviceBuffer;
use curium_sys::{CUdevice_attribute, CUfunction, CUlimit, CUpointer_attribute, CUresult};
use curium_tests::{
    TestDriver, TestResult, driver_test, in_own_process, kernels, on_driver, uses_cuda,
};

use super::{INVALID_HANDLE, INVALID_VALUE, OK, in_context, loaded};

/// A launch of `fill` that differs from a valid one in one way.
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
}

const RIGHT: Shape = Shape {
    grid: [1; 3],
    block: [1; 3],
    shared: 0,
};

/// Launches a kernel on the default stream.
fn launch(
    driver: &Driver,
    function: CUfunction,
    shape: &Shape,
    (arguments, extra): (*mut *mut c_void, *mut *mut c_void),
) -> CUresult {
    let Shape {
        grid: [x, y, z],
        block: [i, j, k],
        shared,
    } = *shape;
    returned!(
        driver,
        cuLaunchKernel(
            function,
            x,
            y,
            z,
            i,
            j,
            k,
            shared,
            ptr::null_mut(),
            arguments,
            extra
        )
    )
}

/// A launch without a kernel or shape or with conflicting arguments is refused.
#[driver_test]
fn invalid_launch_arguments_are_refused(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::<u32>::zeroed(&test.stream(), 1)?;
    buffer.stream().synchronize()?;
    let opt_in = test
        .device()
        .attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    let opt_in: u32 = opt_in?.try_into()?;
    in_context(test, |driver| -> TestResult {
        let (module, function) = loaded(driver)?;
        let mut data = buffer.as_pointer().as_raw();
        let mut value = 5_u32;
        let mut count = 1_u32;
        let mut arguments: [*mut c_void; 3] = [
            (&raw mut data).cast(),
            (&raw mut value).cast(),
            (&raw mut count).cast(),
        ];
        let with = arguments.as_mut_ptr();
        let none = ptr::null_mut();
        let mut size = 16_usize;
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&data.to_ne_bytes());
        bytes[8] = 6;
        bytes[12] = 1;
        let mark = |mark: usize| ptr::without_provenance_mut::<c_void>(mark);
        let mut extra = [
            mark(1),
            bytes.as_mut_ptr().cast(),
            mark(2),
            (&raw mut size).cast(),
            mark(0),
        ];
        let extra = extra.as_mut_ptr();
        assert_eq!(
            launch(driver, ptr::null_mut(), &RIGHT, (with, none)),
            INVALID_HANDLE
        );
        for shape in [
            Shape {
                grid: [0, 1, 1],
                ..RIGHT
            },
            Shape {
                grid: [1, 65_536, 1],
                ..RIGHT
            },
            Shape {
                block: [1, 1, 0],
                ..RIGHT
            },
            Shape {
                block: [1025, 1, 1],
                ..RIGHT
            },
            Shape {
                block: [32, 2, 65],
                ..RIGHT
            },
            Shape {
                shared: opt_in + 1,
                ..RIGHT
            },
        ] {
            let code = launch(driver, function, &shape, (with, none));
            assert_eq!(
                code, INVALID_VALUE,
                "{:?}, {:?}, {}",
                shape.grid, shape.block, shape.shared
            );
        }
        assert_eq!(
            launch(driver, function, &RIGHT, (with, extra)),
            INVALID_VALUE,
            "arguments in two ways"
        );
        assert_eq!(
            launch(driver, function, &RIGHT, (none, none)),
            INVALID_VALUE,
            "no arguments"
        );
        assert_eq!(launch(driver, function, &RIGHT, (none, extra)), OK);
        assert_eq!(returned!(driver, cuCtxSynchronize()), OK);
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
        Ok(())
    })?;
    assert_eq!(buffer.to_vec()?, [6]);
    Ok(())
}

/// Launches a failing kernel and returns the code of the first synchronization.
fn fail(test: &TestDriver, name: &str, arguments: &mut [*mut c_void]) -> CUresult {
    let driver = test.driver();
    let image = CString::new(kernels::FAULTS).expect("PTX has no NUL");
    let name = CString::new(name).expect("names have no NUL");
    let mut module = ptr::null_mut();
    let mut function = ptr::null_mut();
    assert_eq!(
        returned!(
            driver,
            cuModuleLoadData(&raw mut module, image.as_ptr().cast())
        ),
        OK
    );
    assert_eq!(
        returned!(
            driver,
            cuModuleGetFunction(&raw mut function, module, name.as_ptr())
        ),
        OK
    );
    let launched = launch(
        driver,
        function,
        &RIGHT,
        (arguments.as_mut_ptr(), ptr::null_mut()),
    );
    assert_eq!(launched, OK, "the launch itself succeeds");
    returned!(driver, cuCtxSynchronize())
}

/// Ends the context after a sticky error; on a simulator, resets the error first.
fn leave(test: &TestDriver) {
    if let Some(simulator) = test.simulator() {
        simulator.reset_errors();
        assert_eq!(
            returned!(test.driver(), cuCtxSetCurrent(ptr::null_mut())),
            OK
        );
    }
}

#[test]
fn calls_without_a_context_work_after_a_sticky_error() {
    in_own_process(|| {
        on_driver(|test| {
            let driver = test.driver();
            let device = test.device().as_raw();
            let mut context = ptr::null_mut();
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRetain(&raw mut context, device)),
                OK
            );
            assert_eq!(returned!(driver, cuCtxSetCurrent(context)), OK);
            let mut address = 0;
            let mut number = 0;
            let mut kind = 0_u32;
            assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 64)), OK);
            let mut event = ptr::null_mut();
            let mut stream = ptr::null_mut();
            assert_eq!(returned!(driver, cuEventCreate(&raw mut event, 0)), OK);
            assert_eq!(returned!(driver, cuStreamCreate(&raw mut stream, 1)), OK);
            let mut index = 1_u64 << 42;
            let mut value = 1_u32;
            let mut arguments = [
                (&raw mut address).cast(),
                (&raw mut index).cast(),
                (&raw mut value).cast(),
            ];
            let lost = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
            assert_eq!(fail(test, "write_at", &mut arguments), lost);
            let output = (&raw mut kind).cast();
            let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
            assert_eq!(super::current(driver), context);
            assert_eq!(returned!(driver, cuCtxGetDevice(&raw mut number)), OK);
            let warp = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE;
            assert_eq!(
                returned!(driver, cuDeviceGetAttribute(&raw mut number, warp, device)),
                OK
            );
            assert_eq!(
                returned!(driver, cuPointerGetAttribute(output, attribute, address)),
                OK
            );
            let mut other = 0;
            assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut other, 64)), lost);
            assert_eq!(returned!(driver, cuMemFree_v2(address)), lost);
            assert_eq!(returned!(driver, cuEventDestroy_v2(event)), lost);
            assert_eq!(returned!(driver, cuStreamDestroy_v2(stream)), lost);
            assert_eq!(returned!(driver, cuDevicePrimaryCtxRelease_v2(device)), OK);
            assert_eq!(returned!(driver, cuDevicePrimaryCtxReset_v2(device)), OK);
            leave(test);
        });
    });
}

/// Arguments that are longer than the parameters are more than a launch has.
#[test]
fn oversized_argument_buffer_is_refused() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            in_context(test, |driver| -> TestResult {
                let (module, function) = loaded(driver)?;
                let bytes = [0_u8; 8192];
                let mut size = 8192_usize;
                let mark = |mark: usize| ptr::without_provenance_mut::<c_void>(mark);
                let begin = bytes.as_ptr().cast_mut().cast();
                let mut extra = [mark(1), begin, mark(2), (&raw mut size).cast(), mark(0)];
                let code = launch(
                    driver,
                    function,
                    &RIGHT,
                    (ptr::null_mut(), extra.as_mut_ptr()),
                );
                assert_eq!(code, CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
                assert_eq!(
                    returned!(driver, cuCtxSynchronize()),
                    OK,
                    "nothing was launched"
                );
                assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Returns the result of `write_at` for the last word of the 2 MiB that contain an allocation of
/// four words.
fn write_beyond(test: &TestDriver) -> CUresult {
    let mut outcome = OK;
    in_context(test, |driver| {
        let mut address = 0;
        let mut value = 1_u32;
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 16)), OK);
        let mut index = ((address | ((2 << 20) - 1)) - 3 - address) / 4;
        let mut arguments = [
            (&raw mut address).cast(),
            (&raw mut index).cast(),
            (&raw mut value).cast(),
        ];
        outcome = fail(test, "write_at", &mut arguments);
    });
    outcome
}

/// A write past the allocation within its 2 MiB is detected by the simulator only.
#[test]
fn write_in_allocation_granularity_passes_on_gpu() {
    in_own_process(|| {
        on_driver(|test| {
            let primary = test.context();
            let noticed = write_beyond(test) == CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
            assert_eq!(noticed, !uses_cuda());
            leave(test);
            drop(primary);
        });
    });
}

/// Initial limits are those of hardware and stacks are rounded up.
#[driver_test]
fn initial_limits_match_hardware(test: &TestDriver) {
    super::in_created_context(test, |driver, _| {
        let limit = |limit| {
            let mut value = 0;
            assert_eq!(returned!(driver, cuCtxGetLimit(&raw mut value, limit)), OK);
            value
        };
        assert_eq!(limit(CUlimit::CU_LIMIT_STACK_SIZE), 1024);
        assert_eq!(limit(CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE), 8 << 20);
        assert_eq!(
            returned!(driver, cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 1025)),
            OK
        );
        assert_eq!(limit(CUlimit::CU_LIMIT_STACK_SIZE), 1040);
    });
}
