//! Host memory that is registered with the driver.

use std::ffi::c_void;

use curium_sys::CUresult;
use curium_tests::{TestDriver, driver_test};

use super::{INVALID_VALUE, OK, in_context};

/// Two pages with page alignment.
#[repr(C, align(4096))]
struct Pages([u8; 8192]);

/// Memory is registered once and unregistered where it begins.
#[driver_test]
fn memory_is_registered_once(test: &TestDriver) {
    let mut pages = Box::new(Pages([0; 8192]));
    let begin = pages.0.as_mut_ptr().cast::<c_void>();
    let address = |offset: usize| begin.wrapping_byte_add(offset);
    in_context(test, |driver| {
        let register =
            |offset, bytes| returned!(driver, cuMemHostRegister_v2(address(offset), bytes, 0));
        let unregister = |offset| returned!(driver, cuMemHostUnregister(address(offset)));
        let registered_already = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        assert_eq!(register(0, 0), INVALID_VALUE);
        assert_eq!(
            unregister(0),
            CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
        );
        assert_eq!(register(0, 8192), OK);
        assert_eq!(register(0, 8192), registered_already);
        assert_eq!(register(4096, 4096), registered_already, "it overlaps");
        assert_eq!(unregister(4096), INVALID_VALUE, "it begins before");
        assert_eq!(unregister(0), OK);
        assert_eq!(
            unregister(0),
            CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
        );
    });
}
