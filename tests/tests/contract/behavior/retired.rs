//! Retired functions that programs still call, and the variants of functions for per-thread default
//! streams.

use std::ffi::{CStr, c_void};
use std::ptr;

use curium_driver::{Driver, Stream, StreamFlags, StreamOptions};
use curium_sys::{
    CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUDA_ARRAY_DESCRIPTOR, CUarray, CUarray_format,
    CUcontext, CUdriverProcAddressQueryResult, CUresult, CUstream,
};
use curium_tests::{Gate, TestResult, on_driver};

use super::call::{alloc, create, download, succeed};
use super::{INVALID_VALUE, OK, current, in_context, in_created_context, loaded};

#[test]
fn block_shape_is_positive() -> TestResult {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let (module, function) = loaded(driver)?;
            succeed!(driver, cuFuncSetBlockShape(function, 8, 1, 1));
            let code = returned!(driver, cuFuncSetBlockShape(function, 0, 1, 1));
            assert_eq!(code, INVALID_VALUE);
            succeed!(driver, cuModuleUnload(module));
            Ok(())
        })
    })
}

#[test]
fn detaching_destroys_a_context() {
    on_driver(|test| {
        let driver = test.driver();
        let device = test.device().as_raw();
        let context: CUcontext = create!(driver, cuCtxCreate_v2(_, 0, device));
        assert_eq!(current(driver), context);
        succeed!(driver, cuCtxDetach(context));
        assert!(current(driver).is_null());
    });
}

#[test]
fn array_is_copied_from_and_to_the_host() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let descriptor = CUDA_ARRAY_DESCRIPTOR {
                Width: 16,
                Height: 0,
                Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
                NumChannels: 1,
            };
            let array: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const descriptor));
            let uploaded: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
            succeed!(
                driver,
                cuMemcpyHtoA_v2(array, 4, uploaded.as_ptr().cast(), 8)
            );
            let mut downloaded = [0_u8; 6];
            succeed!(
                driver,
                cuMemcpyAtoH_v2(downloaded.as_mut_ptr().cast(), array, 6, 6)
            );
            assert_eq!(downloaded, uploaded[2..]);
            let beyond = returned!(
                driver,
                cuMemcpyHtoA_v2(array, 12, uploaded.as_ptr().cast(), 8)
            );
            assert_eq!(beyond, INVALID_VALUE);
            succeed!(driver, cuArrayDestroy(array));
        });
    });
}

/// Returns the address of a function for these flags of `cuGetProcAddress`.
fn address(driver: &Driver, name: &CStr, flags: u64) -> *const c_void {
    let mut address = ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult(9);
    succeed!(
        driver,
        cuGetProcAddress_v2(
            name.as_ptr(),
            &raw mut address,
            12000,
            flags,
            &raw mut status
        )
    );
    assert_eq!(
        status,
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
    );
    address
}

/// Returns the number of a stream by the `cuStreamGetId` at an address.
fn stream_number(function: *const c_void, stream: CUstream) -> u64 {
    type GetId = unsafe extern "C" fn(CUstream, *mut u64) -> CUresult;
    // SAFETY: `cuStreamGetId` has this signature.
    let function: GetId = unsafe { std::mem::transmute(function) };
    let mut number = 0;
    // SAFETY: the output pointer is valid, and the stream is a default one.
    assert_eq!(unsafe { function(stream, &raw mut number) }, OK);
    number
}

#[test]
fn null_stream_of_a_variant_is_that_of_the_thread() {
    on_driver(|test| {
        in_context(test, |driver| {
            let [usual, legacy, per_thread] =
                [0, 1, 2].map(|flags| address(driver, c"cuStreamGetId", flags));
            assert_eq!(usual, legacy);
            assert_ne!(usual, per_thread);
            let null = ptr::null_mut();
            let number_of_legacy_stream = stream_number(usual, CU_STREAM_LEGACY);
            let number_of_thread = stream_number(usual, CU_STREAM_PER_THREAD);
            assert_eq!(stream_number(usual, null), number_of_legacy_stream);
            assert_eq!(
                stream_number(per_thread, CU_STREAM_LEGACY),
                number_of_legacy_stream
            );
            assert_eq!(stream_number(per_thread, null), number_of_thread);
        });
    });
}

#[test]
fn synchronous_variant_uses_the_stream_of_the_thread() {
    type Fill = unsafe extern "C" fn(u64, u8, usize) -> CUresult;
    on_driver(|test| {
        let options = StreamOptions::new().with_flags(StreamFlags::NON_BLOCKING);
        let other = Stream::new(&test.context(), options).expect("failed to create a stream");
        in_context(test, |driver| {
            let memory = alloc(driver, 4);
            // SAFETY: `cuMemsetD8_v2` has this signature.
            let fill: Fill = unsafe { std::mem::transmute(address(driver, c"cuMemsetD8", 2)) };
            let gate = Gate::on(&other);
            // SAFETY: the memory has four bytes.
            assert_eq!(unsafe { fill(memory, 7, 4) }, OK);
            succeed!(driver, cuStreamSynchronize(CU_STREAM_PER_THREAD));
            gate.open();
            assert_eq!(download(driver, memory, 4), [7; 4]);
            succeed!(driver, cuMemFree_v2(memory));
        });
    });
}
