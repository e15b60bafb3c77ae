//! Devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use curium_sys::{
    CUasyncCallback, CUasyncCallbackHandle, CUatomicOperation, CUdevice, CUdevice_P2PAttribute,
    CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUlimit,
    CUresult, CUsharedconfig,
};

use crate::properties::{Layout, MAJOR, properties};
use crate::state::{self, INVALID_DEVICE, INVALID_VALUE, Out, Result};
use crate::texture::Channels;
use crate::{cu, forward, forward_without_context, runtime};

/// The version that the runtime reports.
pub(crate) const VERSION: c_int = match MAJOR {
    11 => 11080,
    12 => 12090,
    _ => 13050,
};

/// `cudaDeviceMapHost`, which is always set. The driver refuses it for primary contexts.
const MAP_HOST: c_uint = 8;

fn count() -> Result<c_int> {
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    unsafe { cu!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count)
}

fn reset() -> Result<()> {
    let device = state::device();
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuDevicePrimaryCtxReset_v2(device)) }?;
    state::discard_context(device);
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuCtxSetCurrent(std::ptr::null_mut())) }
}

fn write_properties(structure: *mut c_void, device: CUdevice, layout: Layout) -> Result<()> {
    if structure.is_null() {
        return Err(INVALID_VALUE);
    }
    let bytes = properties(device, layout)?;
    // SAFETY: by the contract of the runtime's function, the structure has this layout, so it is as
    // long as the bytes.
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

    fn cudaSetDeviceFlags(flags: c_uint) {
        let device = state::device();
        // SAFETY: the call takes values only.
        unsafe { cu!(cuDevicePrimaryCtxSetFlags_v2(device, flags & !MAP_HOST)) }
    }

    fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        let device = state::device();
        let mut current = 0;
        let mut is_active = 0;
        // SAFETY: `current` and `is_active` are valid for writes.
        unsafe { cu!(cuDevicePrimaryCtxGetState(device, &raw mut current, &raw mut is_active)) }?;
        flags.write(current | MAP_HOST)
    }

    fn cudaSetValidDevices(devices: *const c_int, length: c_int) {
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        let valid = match (devices.is_null(), length) {
            (_, 0) => Vec::new(),
            (true, _) => return Err(INVALID_VALUE),
            // SAFETY: the caller of the runtime function guarantees `length` elements.
            (false, _) => unsafe { std::slice::from_raw_parts(devices, length) }.to_vec(),
        };
        let count = count()?;
        if valid.iter().any(|device| !(0..count).contains(device)) {
            return Err(INVALID_DEVICE);
        }
        state::set_valid_devices(valid);
        Ok(())
    }

    fn cudaChooseDevice(device: Out<c_int>, wanted: *const c_void) {
        if wanted.is_null() {
            return Err(INVALID_VALUE);
        }
        let layout = if MAJOR >= 13 { Layout::Third } else { Layout::First };
        // SAFETY: by the contract of the function, the structure has this layout.
        let wanted = unsafe { std::slice::from_raw_parts(wanted.cast::<u8>(), layout.size()) };
        let mut best = 0;
        let mut best_matches = 0;
        for candidate in 0..count()? {
            let properties = properties(candidate, layout)?;
            let words = properties.as_chunks::<4>().0.iter();
            let pairs = words.zip(wanted.as_chunks::<4>().0);
            let matches = pairs.filter(|(has, wants)| has == wants).count();
            if matches > best_matches {
                best = candidate;
                best_matches = matches;
            }
        }
        device.write(best)
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaThreadExit() {
        reset()
    }

    fn cudaGetDeviceProperties(properties: *mut c_void, device: c_int) {
        write_properties(properties, device, if MAJOR >= 13 { Layout::Third } else { Layout::First })
    }

    fn cudaGetDeviceProperties_v2(properties: *mut c_void, device: c_int) {
        write_properties(properties, device, if MAJOR >= 13 { Layout::Third } else { Layout::Second })
    }

    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.write(VERSION)
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(
        width: *mut usize,
        channels: Option<&Channels>,
        device: c_int,
    ) {
        let channels = channels.ok_or(INVALID_VALUE)?;
        let format = channels.format()?;
        let count = channels.count() as c_uint;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceGetTexture1DLinearMaxWidth(width, format, count, device)) }
    }
}

forward! {
    unsafe fn cudaDeviceFlushGPUDirectRDMAWrites(
        target: CUflushGPUDirectRDMAWritesTarget,
        scope: CUflushGPUDirectRDMAWritesScope,
    ) = cuFlushGPUDirectRDMAWrites(target, scope);

    unsafe fn cudaCtxResetPersistingL2Cache() = cuCtxResetPersistingL2Cache();

    unsafe fn cudaDeviceGetCacheConfig(config: *mut CUfunc_cache) = cuCtxGetCacheConfig(config);

    unsafe fn cudaDeviceGetSharedMemConfig(config: *mut CUsharedconfig)
        = cuCtxGetSharedMemConfig(config);

    unsafe fn cudaDeviceSetSharedMemConfig(config: CUsharedconfig)
        = cuCtxSetSharedMemConfig(config);

    unsafe fn cudaDeviceSetCacheConfig(config: CUfunc_cache) = cuCtxSetCacheConfig(config);

    unsafe fn cudaDeviceSynchronize() = cuCtxSynchronize();

    // The functions of threads are the deprecated names of those of devices.
    unsafe fn cudaThreadSynchronize() = cuCtxSynchronize();

    unsafe fn cudaThreadGetLimit(value: *mut usize, limit: c_uint)
        = cuCtxGetLimit(value, CUlimit(limit));

    unsafe fn cudaThreadSetLimit(limit: c_uint, value: usize)
        = cuCtxSetLimit(CUlimit(limit), value);

    unsafe fn cudaThreadGetCacheConfig(config: *mut CUfunc_cache) = cuCtxGetCacheConfig(config);

    unsafe fn cudaThreadSetCacheConfig(config: CUfunc_cache) = cuCtxSetCacheConfig(config);

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
    unsafe fn cudaDeviceGetP2PAttribute(
        value: *mut c_int,
        attribute: CUdevice_P2PAttribute,
        device: c_int,
        peer: c_int,
    ) = cuDeviceGetP2PAttribute(value, attribute, device, peer);

    unsafe fn cudaDeviceGetHostAtomicCapabilities(
        capabilities: *mut c_uint,
        operations: *const CUatomicOperation,
        count: c_uint,
        device: c_int,
    ) = cuDeviceGetHostAtomicCapabilities(capabilities, operations, count, device);

    unsafe fn cudaDeviceGetP2PAtomicCapabilities(
        capabilities: *mut c_uint,
        operations: *const CUatomicOperation,
        count: c_uint,
        device: c_int,
        peer: c_int,
    ) = cuDeviceGetP2PAtomicCapabilities(capabilities, operations, count, device, peer);

    unsafe fn cudaDeviceRegisterAsyncNotification(
        device: c_int,
        function: CUasyncCallback,
        data: *mut c_void,
        callback: *mut CUasyncCallbackHandle,
    ) = cuDeviceRegisterAsyncNotification(device, function, data, callback);

    unsafe fn cudaDeviceUnregisterAsyncNotification(device: c_int, callback: CUasyncCallbackHandle)
        = cuDeviceUnregisterAsyncNotification(device, callback);

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
