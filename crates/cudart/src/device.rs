//! Devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use curium_sys::{CUdevice, CUlimit, CUresult};

use crate::properties::{Layout, MAJOR, properties};
use crate::state::{self, INVALID_DEVICE, INVALID_VALUE, Result, enter, put};
use crate::{cu, runtime};

fn count() -> Result<c_int> {
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    unsafe { cu!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count)
}

fn write_properties(place: *mut c_void, device: CUdevice, layout: Layout) -> Result<()> {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    let bytes = properties(device, layout)?;
    // SAFETY: the caller passes a structure of this layout, and the bytes are as many.
    unsafe {
        place
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    };
    Ok(())
}

runtime! {
    fn cudaGetDeviceCount(place: *mut c_int) {
        let count = count()?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, count) }?;
        if count == 0 { Err(CUresult::CUDA_ERROR_NO_DEVICE.0.cast_signed()) } else { Ok(()) }
    }

    fn cudaGetDevice(place: *mut c_int) {
        state::api()?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, state::device()) }
    }

    fn cudaSetDevice(device: c_int) {
        if (0..count()?).contains(&device) { state::set_device(device) } else { Err(INVALID_DEVICE) }
    }

    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        if (0..count()?).contains(&device) { Ok(()) } else { Err(INVALID_DEVICE) }
    }

    fn cudaSetDeviceFlags(_flags: c_uint) {
        state::api().map(|_| ())
    }

    fn cudaDeviceSynchronize() {
        enter()?;
        // SAFETY: the function has no preconditions.
        unsafe { cu!(cuCtxSynchronize()) }
    }

    fn cudaDeviceReset() {
        let device = state::device();
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDevicePrimaryCtxReset_v2(device)) }?;
        state::forget(device);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxSetCurrent(std::ptr::null_mut())) }
    }

    fn cudaGetDeviceProperties(place: *mut c_void, device: c_int) {
        write_properties(place, device, if MAJOR >= 13 { Layout::Third } else { Layout::First })
    }

    fn cudaGetDeviceProperties_v2(place: *mut c_void, device: c_int) {
        write_properties(place, device, if MAJOR >= 13 { Layout::Third } else { Layout::Second })
    }

    fn cudaDeviceGetPCIBusId(place: *mut c_char, length: c_int, device: c_int) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceGetPCIBusId(place, length, device)) }
    }

    fn cudaDeviceGetByPCIBusId(place: *mut c_int, address: *const c_char) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceGetByPCIBusId(place, address)) }
    }

    fn cudaDeviceGetLimit(place: *mut usize, limit: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxGetLimit(place, CUlimit(limit))) }
    }

    fn cudaDeviceSetLimit(limit: c_uint, value: usize) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxSetLimit(CUlimit(limit), value)) }
    }

    fn cudaDeviceSetCacheConfig(_config: c_uint) {
        enter()
    }

    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxGetStreamPriorityRange(least, greatest)) }
    }

    fn cudaDeviceCanAccessPeer(place: *mut c_int, device: c_int, peer: c_int) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceCanAccessPeer(place, device, peer)) }
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxEnablePeerAccess(state::primary(peer)?, flags)) }
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxDisablePeerAccess(state::primary(peer)?)) }
    }

    fn cudaDriverGetVersion(place: *mut c_int) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDriverGetVersion(place)) }
    }

    fn cudaRuntimeGetVersion(place: *mut c_int) {
        let version = match MAJOR {
            11 => 11080,
            12 => 12090,
            _ => 13050,
        };
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, version) }
    }

    fn cudaProfilerStart() {
        enter()?;
        // SAFETY: the function has no preconditions.
        unsafe { cu!(cuProfilerStart()) }
    }

    fn cudaProfilerStop() {
        enter()?;
        // SAFETY: the function has no preconditions.
        unsafe { cu!(cuProfilerStop()) }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn device_is_found_by_its_address_on_the_bus() {
        let _turn = simulate();
        let (mut count, mut device) = (0, -1);
        call!(cudaGetDeviceCount(&raw mut count));
        assert_eq!(count, 1);
        let mut address = [0 as c_char; 32];
        call!(cudaDeviceGetPCIBusId(address.as_mut_ptr(), 32, 0));
        call!(cudaDeviceGetByPCIBusId(&raw mut device, address.as_ptr()));
        assert_eq!(device, 0);
    }

    #[test]
    fn device_that_is_not_there_is_refused_and_the_thread_keeps_its_own() {
        let _turn = simulate();
        let mut device = -1;
        call!(cudaSetDevice(0));
        assert_eq!(code!(cudaSetDevice(7)), INVALID_DEVICE);
        call!(cudaGetDevice(&raw mut device));
        assert_eq!(device, 0);
    }

    #[test]
    fn limit_is_set_and_priorities_have_a_range() {
        let _turn = simulate();
        let (mut limit, mut least, mut greatest) = (0, 9, 9);
        // cudaLimitStackSize
        call!(cudaDeviceSetLimit(0, 2048));
        call!(cudaDeviceGetLimit(&raw mut limit, 0));
        assert!(limit >= 2048, "{limit}");
        call!(cudaDeviceGetStreamPriorityRange(
            &raw mut least,
            &raw mut greatest
        ));
        assert!(least == 0 && greatest < 0);
        assert_eq!(code!(cudaDeviceGetLimit(ptr::null_mut(), 0)), 1);
    }
}
