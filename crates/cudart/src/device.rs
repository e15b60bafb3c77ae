//! Devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use curium_sys::{CUdevice, CUlimit, CUresult};

use crate::properties::{Layout, MAJOR, properties};
use crate::state::{self, INVALID_DEVICE, INVALID_VALUE, Out, Result, enter};
use crate::{cu, forward, forward_without_context, runtime};

fn count() -> Result<c_int> {
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    unsafe { cu!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count)
}

fn write_properties(structure: *mut c_void, device: CUdevice, layout: Layout) -> Result<()> {
    if structure.is_null() {
        return Err(INVALID_VALUE);
    }
    let bytes = properties(device, layout)?;
    // SAFETY: by the contract of the runtime's function, the structure has this layout, so it is as long as the bytes.
    unsafe {
        structure
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    };
    Ok(())
}

runtime! {
    fn cudaGetDeviceCount(total: Out<c_int>) {
        let count = count()?;
        total.write(count)?;
        if count == 0 { Err(CUresult::CUDA_ERROR_NO_DEVICE.0.cast_signed()) } else { Ok(()) }
    }

    fn cudaGetDevice(device: Out<c_int>) {
        state::api()?;
        device.write(state::device())
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

    fn cudaDeviceReset() {
        let device = state::device();
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDevicePrimaryCtxReset_v2(device)) }?;
        state::discard_context(device);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuCtxSetCurrent(std::ptr::null_mut())) }
    }

    fn cudaGetDeviceProperties(properties: *mut c_void, device: c_int) {
        write_properties(properties, device, if MAJOR >= 13 { Layout::Third } else { Layout::First })
    }

    fn cudaGetDeviceProperties_v2(properties: *mut c_void, device: c_int) {
        write_properties(properties, device, if MAJOR >= 13 { Layout::Third } else { Layout::Second })
    }

    fn cudaDeviceSetCacheConfig(_config: c_uint) {
        enter()
    }

    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.write(match MAJOR {
            11 => 11080,
            12 => 12090,
            _ => 13050,
        })
    }
}

forward! {
    unsafe fn cudaDeviceSynchronize() = cuCtxSynchronize();

    unsafe fn cudaDeviceGetLimit(value: *mut usize, limit: c_uint)
        = cuCtxGetLimit(value, CUlimit(limit));

    unsafe fn cudaDeviceSetLimit(limit: c_uint, value: usize)
        = cuCtxSetLimit(CUlimit(limit), value);

    unsafe fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int)
        = cuCtxGetStreamPriorityRange(least, greatest);

    unsafe fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint)
        = cuCtxEnablePeerAccess(state::primary(peer)?, flags);

    unsafe fn cudaDeviceDisablePeerAccess(peer: c_int)
        = cuCtxDisablePeerAccess(state::primary(peer)?);

    unsafe fn cudaProfilerStart() = cuProfilerStart();

    unsafe fn cudaProfilerStop() = cuProfilerStop();
}

forward_without_context! {
    unsafe fn cudaDeviceGetPCIBusId(address: *mut c_char, length: c_int, device: c_int)
        = cuDeviceGetPCIBusId(address, length, device);

    unsafe fn cudaDeviceGetByPCIBusId(device: *mut c_int, address: *const c_char)
        = cuDeviceGetByPCIBusId(device, address);

    unsafe fn cudaDeviceCanAccessPeer(can_access: *mut c_int, device: c_int, peer: c_int)
        = cuDeviceCanAccessPeer(can_access, device, peer);

    unsafe fn cudaDriverGetVersion(version: *mut c_int) = cuDriverGetVersion(version);
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn device_has_an_address_on_the_bus() {
        let _turn = simulate();
        let mut count = 0;
        let mut device = -1;
        call!(cudaGetDeviceCount((&mut count).into()));
        assert_eq!(count, 1);
        let mut address = [0 as c_char; 32];
        call!(cudaDeviceGetPCIBusId(address.as_mut_ptr(), 32, 0));
        call!(cudaDeviceGetByPCIBusId(&raw mut device, address.as_ptr()));
        assert_eq!(device, 0);
    }

    #[test]
    fn missing_device_is_refused() {
        let _turn = simulate();
        let mut device = -1;
        call!(cudaSetDevice(0));
        assert_eq!(code!(cudaSetDevice(7)), INVALID_DEVICE);
        call!(cudaGetDevice((&mut device).into()));
        assert_eq!(device, 0);
    }

    #[test]
    fn limit_is_set_and_priorities_have_a_range() {
        let _turn = simulate();
        let mut limit = 0;
        let mut least = 9;
        let mut greatest = 9;
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
