//! Functions of the driver by name.

use std::ffi::{c_char, c_int, c_void};

use curium_sys::{CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUuuid};

use crate::device::VERSION;
use crate::properties::MAJOR;
use crate::state::Result;
use crate::{cu, forward_without_context, runtime};

/// Returns the flags with the per-thread default stream unless they choose one.
fn per_thread_flags(flags: u64) -> u64 {
    if flags == 0 {
        CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
            .0
            .into()
    } else {
        flags
    }
}

/// Writes the address of a function. Up to CUDA 11, the caller passes no status.
fn entry_point(
    symbol: *const c_char,
    function: *mut *mut c_void,
    flags: u64,
    status: *mut CUdriverProcAddressQueryResult,
) -> Result<()> {
    let status = if MAJOR <= 11 {
        std::ptr::null_mut()
    } else {
        status
    };
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe {
        cu!(cuGetProcAddress_v2(
            symbol, function, VERSION, flags, status
        ))
    }
}

runtime! {
    fn cudaGetDriverEntryPoint(
        symbol: *const c_char,
        function: *mut *mut c_void,
        flags: u64,
        status: *mut CUdriverProcAddressQueryResult,
    ) {
        entry_point(symbol, function, flags, status)
    }

    fn cudaGetDriverEntryPoint_ptsz(
        symbol: *const c_char,
        function: *mut *mut c_void,
        flags: u64,
        status: *mut CUdriverProcAddressQueryResult,
    ) {
        entry_point(symbol, function, per_thread_flags(flags), status)
    }
}

forward_without_context! {
    unsafe fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut CUdriverProcAddressQueryResult,
    ) = cuGetProcAddress_v2(symbol, function, version, flags, status);

    unsafe fn cudaGetDriverEntryPointByVersion_ptsz(
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut CUdriverProcAddressQueryResult,
    ) = cuGetProcAddress_v2(symbol, function, version, per_thread_flags(flags), status);

    unsafe fn cudaGetExportTable(table: *mut *const c_void, id: *const CUuuid)
        = cuGetExportTable(table, id);
}
