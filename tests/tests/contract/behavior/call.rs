//! Calls that must succeed, and transfers of a few bytes.

use curium_driver::Driver;
use curium_sys::CUdeviceptr;

/// Calls one function, which must succeed.
macro_rules! succeed {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(
            returned!($driver, $function($($argument),*)),
            $crate::behavior::OK,
            stringify!($function)
        )
    };
}

/// Calls a function that writes a handle or an address to its first argument, and returns it.
macro_rules! create {
    ($driver:expr, $function:ident(_ $(, $argument:expr)* $(,)?)) => {{
        let mut output = std::mem::MaybeUninit::zeroed();
        $crate::behavior::call::succeed!($driver, $function(output.as_mut_ptr() $(, $argument)*));
        // SAFETY: the call succeeded and wrote its output.
        unsafe { output.assume_init() }
    }};
}

pub(super) use {create, succeed};

pub(super) fn alloc(driver: &Driver, size: usize) -> CUdeviceptr {
    create!(driver, cuMemAlloc_v2(_, size))
}

pub(super) fn upload(driver: &Driver, to: CUdeviceptr, bytes: &[u8]) {
    succeed!(
        driver,
        cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len())
    );
}

pub(super) fn download(driver: &Driver, from: CUdeviceptr, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    succeed!(
        driver,
        cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, size)
    );
    bytes
}

pub(super) fn word(driver: &Driver, from: CUdeviceptr) -> u32 {
    u32::from_ne_bytes(download(driver, from, 4).try_into().expect("four bytes"))
}
