//! A function table that can only initialize a driver. Tests add the functions that they call.

use curium_driver::Driver;
use curium_driver::sys::{Api, CUresult};

/// Returns the table.
pub(crate) fn api() -> Api {
    unsafe extern "C" fn version(output: *mut i32) -> CUresult {
        // SAFETY: the wrapper under test passes a pointer that is valid for writes.
        unsafe { output.write(13_000) };
        CUresult::CUDA_SUCCESS
    }
    unsafe extern "C" fn init(_: u32) -> CUresult {
        CUresult::CUDA_SUCCESS
    }
    let mut api = Api::empty();
    api.cuDriverGetVersion = Some(version);
    api.cuInit = Some(init);
    api
}

/// Creates a driver from a table made by a test.
pub(crate) fn driver(api: Api) -> Driver {
    // SAFETY: the functions implement their CUDA contract as far as the tests call them.
    unsafe { Driver::from_api(api) }.expect("the driver initializes")
}
