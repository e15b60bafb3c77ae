//! Memory and copies.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUDA_MEMCPY2D, CUdeviceptr, CUmem_advise, CUmemorytype, CUpointer_attribute, CUstream,
};

use crate::state::{INVALID_DIRECTION, INVALID_PITCH, Result, enter, put};
use crate::{cu, runtime};

/// The last direction of copies, `cudaMemcpyDefault`, which is inferred from the addresses.
const DEFAULT_DIRECTION: c_int = 4;

/// `cudaPointerAttributes` without the reserved fields.
#[repr(C)]
pub(crate) struct PointerAttributes {
    kind: c_int,
    device: c_int,
    on_device: *mut c_void,
    on_host: *mut c_void,
}

/// Converts a pointer to a device address.
pub(crate) fn address(pointer: *const c_void) -> CUdeviceptr {
    pointer.expose_provenance() as CUdeviceptr
}

/// Converts a device address to a pointer.
pub(crate) fn pointer(address: CUdeviceptr) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Checks the direction of a copy. The driver infers the actual direction from the addresses.
pub(crate) fn begin_copy(direction: c_int) -> Result<()> {
    enter()?;
    if (0..=DEFAULT_DIRECTION).contains(&direction) {
        Ok(())
    } else {
        Err(INVALID_DIRECTION)
    }
}

/// Checks the pitch of rows of `width` bytes. For several rows, the runtime has an error code of its own; one row is the driver's matter.
pub(crate) fn checked_pitch(pitch: usize, width: usize, height: usize) -> Result<usize> {
    if height > 1 && pitch < width {
        Err(INVALID_PITCH)
    } else {
        Ok(pitch)
    }
}

/// Returns the driver's parameters of a two-dimensional copy.
fn rows(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
) -> Result<CUDA_MEMCPY2D> {
    Ok(CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcDevice: address(from),
        srcPitch: checked_pitch(from_pitch, width, height)?,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstDevice: address(to),
        dstPitch: checked_pitch(to_pitch, width, height)?,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    })
}

runtime! {
    fn cudaMalloc(place: *mut *mut c_void, size: usize) {
        enter()?;
        let mut found = 0;
        if size > 0 {
            // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
            unsafe { cu!(cuMemAlloc_v2(&raw mut found, size)) }?;
        }
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaMallocPitch(place: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemAllocPitch_v2(&raw mut found, pitch, width, height, 4)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaMallocManaged(place: *mut *mut c_void, size: usize, flags: c_uint) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemAllocManaged(&raw mut found, size, flags)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaMallocAsync(place: *mut *mut c_void, size: usize, stream: CUstream) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemAllocAsync(&raw mut found, size, stream)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaMallocHost(place: *mut *mut c_void, size: usize) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemHostAlloc(place, size, 0)) }
    }

    fn cudaHostAlloc(place: *mut *mut c_void, size: usize, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemHostAlloc(place, size, flags)) }
    }

    fn cudaHostGetDevicePointer(place: *mut *mut c_void, host: *mut c_void, flags: c_uint) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemHostGetDevicePointer_v2(&raw mut found, host, flags)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaHostRegister(host: *mut c_void, size: usize, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemHostRegister_v2(host, size, flags)) }
    }

    fn cudaHostUnregister(host: *mut c_void) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemHostUnregister(host)) }
    }

    fn cudaFree(memory: *mut c_void) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemFree_v2(address(memory))) }
    }

    fn cudaFreeAsync(memory: *mut c_void, stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemFreeAsync(address(memory), stream)) }
    }

    fn cudaFreeHost(host: *mut c_void) {
        enter()?;
        if host.is_null() {
            Ok(())
        } else {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            unsafe { cu!(cuMemFreeHost(host)) }
        }
    }

    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemGetInfo_v2(free, total)) }
    }

    fn cudaMemcpy(to: *mut c_void, from: *const c_void, size: usize, direction: c_int) {
        begin_copy(direction)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpy(address(to), address(from), size)) }
    }

    fn cudaMemcpyAsync(to: *mut c_void, from: *const c_void, size: usize, direction: c_int, stream: CUstream) {
        begin_copy(direction)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpyAsync(address(to), address(from), size, stream)) }
    }

    fn cudaMemcpyPeer(to: *mut c_void, _to_device: c_int, from: *const c_void, _from_device: c_int, size: usize) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpy(address(to), address(from), size)) }
    }

    fn cudaMemcpyPeerAsync(
        to: *mut c_void,
        _to_device: c_int,
        from: *const c_void,
        _from_device: c_int,
        size: usize,
        stream: CUstream,
    ) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpyAsync(address(to), address(from), size, stream)) }
    }

    fn cudaMemcpy2D(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        height: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = rows(to, to_pitch, from, from_pitch, width, height)?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    fn cudaMemcpy2DAsync(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        height: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let copy = rows(to, to_pitch, from, from_pitch, width, height)?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    fn cudaMemset(memory: *mut c_void, value: c_int, size: usize) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemsetD8_v2(address(memory), value as u8, size)) }
    }

    fn cudaMemsetAsync(memory: *mut c_void, value: c_int, size: usize, stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemsetD8Async(address(memory), value as u8, size, stream)) }
    }

    fn cudaMemset2D(memory: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) {
        enter()?;
        let pitch = if height <= 1 { width } else { pitch };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemsetD2D8_v2(address(memory), pitch, value as u8, width, height)) }
    }

    fn cudaMemset2DAsync(
        memory: *mut c_void,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: CUstream,
    ) {
        enter()?;
        let pitch = if height <= 1 { width } else { pitch };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemsetD2D8Async(address(memory), pitch, value as u8, width, height, stream)) }
    }

    // Up to CUDA 12, the size is followed by a device and a stream; later by a location, flags and a stream.
    fn cudaMemPrefetchAsync(memory: *const c_void, size: usize, place: u64, flags: usize, stream: CUstream) {
        enter()?;
        let (device, stream) = match crate::properties::MAJOR {
            ..=12 => (place as c_int, ptr::with_exposed_provenance_mut(flags)),
            _ => (device_of_location(place), stream),
        };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPrefetchAsync(address(memory), size, device, stream)) }
    }

    // As above, without a stream.
    fn cudaMemAdvise(memory: *const c_void, size: usize, advice: c_uint, place: u64) {
        enter()?;
        let device = if crate::properties::MAJOR <= 12 { place as c_int } else { device_of_location(place) };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemAdvise(address(memory), size, CUmem_advise(advice), device)) }
    }

    fn cudaPointerGetAttributes(place: *mut PointerAttributes, memory: *const c_void) {
        use CUpointer_attribute as Attribute;

        enter()?;
        let number = |attribute| {
            let mut value = 0_u32;
            // SAFETY: `value` is valid for writes, and the caller of the runtime function guarantees the other arguments.
            unsafe { cu!(cuPointerGetAttribute((&raw mut value).cast(), attribute, address(memory))) }.map(|()| value)
        };
        let place_of = |attribute| {
            let mut value: *mut c_void = ptr::null_mut();
            // SAFETY: `value` is valid for writes, and the caller of the runtime function guarantees the other arguments.
            unsafe { cu!(cuPointerGetAttribute((&raw mut value).cast(), attribute, address(memory))) }.map(|()| value)
        };
        let kind = match number(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
            Err(_) => 0,
            Ok(_) if number(Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED) == Ok(1) => 3,
            Ok(kind) => kind.cast_signed(),
        };
        let (device, on_device, on_host) = if kind == 0 {
            (-2, ptr::null_mut(), memory.cast_mut())
        } else {
            let device = number(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)?.cast_signed();
            // Memory that is inaccessible to the host or the device has no address there.
            let reached = |place: Result<*mut c_void>| place.unwrap_or(ptr::null_mut());
            let on_device = reached(place_of(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER));
            (device, on_device, reached(place_of(Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER)))
        };
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, PointerAttributes { kind, device, on_device, on_host }) }
    }
}

/// Returns the device of a location: the type is in the lower half, the identifier in the upper half.
fn device_of_location(location: u64) -> c_int {
    const DEVICE: u32 = 1;
    const HOST: c_int = -1;
    if location as u32 == DEVICE {
        (location >> 32) as c_int
    } else {
        HOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call, code, simulate};

    const TO_DEVICE: c_int = 1;
    const TO_HOST: c_int = 2;

    #[test]
    fn rows_of_pitched_memory_are_set_and_copied() {
        let _turn = simulate();
        let (mut memory, mut pitch) = (ptr::null_mut(), 0);
        call!(cudaMallocPitch(&raw mut memory, &raw mut pitch, 5, 3));
        assert!(pitch >= 5);
        call!(cudaMemset2D(memory, pitch, 9, 5, 3));
        let source = [1_u8, 2, 3, 4];
        call!(cudaMemcpy2D(
            memory,
            pitch,
            source.as_ptr().cast(),
            2,
            2,
            2,
            TO_DEVICE
        ));
        let mut found = [0_u8; 15];
        call!(cudaMemcpy2D(
            found.as_mut_ptr().cast(),
            5,
            memory,
            pitch,
            5,
            3,
            TO_HOST
        ));
        assert_eq!(found, [1, 2, 9, 9, 9, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9]);
        call!(cudaFree(memory));
        assert_eq!(
            code!(cudaFree(memory)),
            crate::state::INVALID_VALUE,
            "it is free"
        );
    }

    #[test]
    fn attributes_distinguish_device_pinned_managed_and_other_memory() {
        let _turn = simulate();
        let [mut device, mut pinned, mut managed] = [ptr::null_mut(); 3];
        call!(cudaMalloc(&raw mut device, 64));
        call!(cudaHostAlloc(&raw mut pinned, 64, 0));
        call!(cudaMallocManaged(&raw mut managed, 64, 1));
        let mut other = 0_u8;
        let kind = |memory: *mut c_void| {
            let mut found = PointerAttributes {
                kind: 9,
                device: 9,
                on_device: ptr::null_mut(),
                on_host: ptr::null_mut(),
            };
            call!(cudaPointerGetAttributes(&raw mut found, memory));
            (
                found.kind,
                found.on_device.is_null(),
                found.on_host.is_null(),
            )
        };
        assert_eq!(kind(device), (2, false, true));
        assert_eq!(kind(pinned), (1, false, false));
        assert_eq!(kind(managed), (3, false, false));
        assert_eq!(kind((&raw mut other).cast()), (0, true, false));
        call!(cudaFree(device));
        call!(cudaFreeHost(pinned));
        call!(cudaFree(managed));
    }

    #[test]
    fn registered_memory_has_a_device_address() {
        let _turn = simulate();
        let mut memory = vec![3_u8; 8192];
        let (start, mut mapped) = (memory.as_mut_ptr().cast::<c_void>(), ptr::null_mut());
        call!(cudaHostRegister(start, 8192, 2));
        call!(cudaHostGetDevicePointer(&raw mut mapped, start, 0));
        let mut found = [0_u8; 4];
        call!(cudaMemcpy(found.as_mut_ptr().cast(), mapped, 4, TO_HOST));
        assert_eq!(found, [3; 4]);
        call!(cudaHostUnregister(start));
        assert_ne!(code!(cudaHostUnregister(start)), 0);
    }

    #[test]
    fn copy_in_an_unknown_direction_is_refused() {
        let _turn = simulate();
        let (mut to, from) = (0_u8, 1_u8);
        let code = code!(cudaMemcpy(
            (&raw mut to).cast(),
            (&raw const from).cast(),
            1,
            7
        ));
        assert_eq!((code, to), (INVALID_DIRECTION, 0));
    }
}
