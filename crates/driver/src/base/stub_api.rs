//! A function table that can only initialize a driver. Tests add the functions that they need.

use curium_sys::{Api, CUresult};

use crate::Driver;

/// Returns a table with which a driver initializes.
pub(crate) fn api() -> Api {
    unsafe extern "C" fn version(place: *mut i32) -> CUresult {
        // SAFETY: the caller passes a valid place.
        unsafe { place.write(13_000) };
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

/// Returns the driver of a table that a test has made.
pub(crate) fn driver(api: Api) -> Driver {
    // SAFETY: the functions do what their names say, as far as the tests call them.
    unsafe { Driver::from_api(api) }.expect("the driver initialises")
}
