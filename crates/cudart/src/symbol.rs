//! Device variables, identified by their host symbols.

use std::ffi::{c_int, c_void};
use std::ptr;

use curium_sys::{CUdeviceptr, CUstream};

use crate::memory::{address, begin_copy};
use crate::state::{INVALID_VALUE, Out, Result, enter};
use crate::{cu, registry, runtime};

/// Returns the address of a byte range of a variable.
pub(crate) fn within(host: *const c_void, offset: usize, size: usize) -> Result<CUdeviceptr> {
    let (start, whole) = registry::variable(host)?;
    match offset.checked_add(size) {
        Some(end) if end <= whole => Ok(start + offset as u64),
        _ => Err(INVALID_VALUE),
    }
}

runtime! {
    [cudaMemcpyToSymbol_ptds = cudaMemcpyToSymbolAsync]
    fn cudaMemcpyToSymbol(
        symbol: *const c_void,
        from: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let to = within(symbol, offset, size)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpy(to, address(from), size)) }
    }

    [cudaMemcpyFromSymbol_ptds = cudaMemcpyFromSymbolAsync]
    fn cudaMemcpyFromSymbol(
        to: *mut c_void,
        symbol: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let from = within(symbol, offset, size)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpy(address(to), from, size)) }
    }

    [cudaMemcpyToSymbolAsync_ptsz(stream)]
    fn cudaMemcpyToSymbolAsync(
        symbol: *const c_void,
        from: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let to = within(symbol, offset, size)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpyAsync(to, address(from), size, stream)) }
    }

    [cudaMemcpyFromSymbolAsync_ptsz(stream)]
    fn cudaMemcpyFromSymbolAsync(
        to: *mut c_void,
        symbol: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let from = within(symbol, offset, size)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpyAsync(address(to), from, size, stream)) }
    }

    fn cudaGetSymbolAddress(address: Out<*mut c_void>, symbol: *const c_void) {
        enter()?;
        let (start, _) = registry::variable(symbol)?;
        address.write(ptr::with_exposed_provenance_mut(start as usize))
    }

    fn cudaGetSymbolSize(size: Out<usize>, symbol: *const c_void) {
        enter()?;
        let (_, bytes) = registry::variable(symbol)?;
        size.write(bytes)
    }
}
