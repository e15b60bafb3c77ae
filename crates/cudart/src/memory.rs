//! Memory and copies.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUDA_MEMCPY2D, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemorytype,
    CUpointer_attribute, CUstream,
};

use crate::array::Extent;
use crate::copy_3d::Pitched;
use crate::properties::MAJOR;
use crate::state::{INVALID_DIRECTION, INVALID_PITCH, Out, Result, enter, per_thread};
use crate::{cu, forward, runtime};

/// The last direction of copies, `cudaMemcpyDefault`, which is inferred from the addresses.
pub(crate) const DEFAULT_DIRECTION: c_int = 4;

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

/// Checks the pitch of rows of `width` bytes. For several rows, the runtime has an error code of
/// its own; one row is the driver's matter.
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

/// Sets the bytes of each layer of a box.
fn set_layers(memory: Pitched, value: u8, extent: Extent, stream: Option<CUstream>) -> Result<()> {
    enter()?;
    let Extent {
        width,
        height,
        depth,
    } = extent;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let pitch = checked_pitch(memory.pitch, width, height)?;
    for layer in 0..depth {
        let start = address(memory.start) + (layer * pitch * memory.height) as CUdeviceptr;
        match stream {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(stream) => unsafe {
                cu!(cuMemsetD2D8Async(
                    start, pitch, value, width, height, stream
                ))
            },
            // SAFETY: the caller of the runtime function guarantees the arguments.
            None => unsafe { cu!(cuMemsetD2D8_v2(start, pitch, value, width, height)) },
        }?;
    }
    Ok(())
}

/// Prefetches memory to the location or device in the arguments of [`cudaMemPrefetchAsync`].
fn prefetch(
    memory: *const c_void,
    size: usize,
    location: u64,
    flags: usize,
    stream: CUstream,
    default_stream: fn(CUstream) -> CUstream,
) -> Result<()> {
    enter()?;
    let stream = match MAJOR {
        ..=12 => ptr::with_exposed_provenance_mut(flags),
        _ => stream,
    };
    let device = match MAJOR {
        ..=12 => location as c_int,
        _ => location_device(location),
    };
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe {
        cu!(cuMemPrefetchAsync(
            address(memory),
            size,
            device,
            default_stream(stream)
        ))
    }
}

runtime! {
    fn cudaMalloc(memory: Out<*mut c_void>, size: usize) {
        enter()?;
        let mut allocation = 0;
        if size > 0 {
            // SAFETY: `allocation` is valid for writes, and the caller of the runtime function
            // guarantees the other arguments.
            unsafe { cu!(cuMemAlloc_v2(&raw mut allocation, size)) }?;
        }
        memory.write(pointer(allocation))
    }

    fn cudaMallocPitch(memory: Out<*mut c_void>, pitch: *mut usize, width: usize, height: usize) {
        enter()?;
        let mut allocation = 0;
        // SAFETY: `allocation` is valid for writes, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuMemAllocPitch_v2(&raw mut allocation, pitch, width, height, 4)) }?;
        memory.write(pointer(allocation))
    }

    fn cudaMalloc3D(memory: Out<Pitched>, extent: Extent) {
        enter()?;
        let mut allocation = 0;
        let mut pitch = 0;
        let rows = extent.height * extent.depth;
        if extent.width > 0 && rows > 0 {
            // SAFETY: `allocation` and `pitch` are valid for writes.
            unsafe { cu!(cuMemAllocPitch_v2(&raw mut allocation, &raw mut pitch, extent.width, rows, 4)) }?;
        }
        memory.write(Pitched {
            start: pointer(allocation),
            pitch,
            width: extent.width,
            height: extent.height,
        })
    }

    [cudaMemset3D_ptds = cudaMemset3DAsync]
    fn cudaMemset3D(memory: Pitched, value: c_int, extent: Extent) {
        set_layers(memory, value as u8, extent, None)
    }

    [cudaMemset3DAsync_ptsz(stream)]
    fn cudaMemset3DAsync(memory: Pitched, value: c_int, extent: Extent, stream: CUstream) {
        set_layers(memory, value as u8, extent, Some(stream))
    }

    fn cudaMallocManaged(memory: Out<*mut c_void>, size: usize, flags: c_uint) {
        enter()?;
        let mut allocation = 0;
        // SAFETY: `allocation` is valid for writes, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuMemAllocManaged(&raw mut allocation, size, flags)) }?;
        memory.write(pointer(allocation))
    }

    [cudaMallocAsync_ptsz(stream)]
    fn cudaMallocAsync(memory: Out<*mut c_void>, size: usize, stream: CUstream) {
        enter()?;
        let mut allocation = 0;
        // SAFETY: `allocation` is valid for writes, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuMemAllocAsync(&raw mut allocation, size, stream)) }?;
        memory.write(pointer(allocation))
    }

    fn cudaHostGetDevicePointer(device: Out<*mut c_void>, host: *mut c_void, flags: c_uint) {
        enter()?;
        let mut mapped = 0;
        // SAFETY: `mapped` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemHostGetDevicePointer_v2(&raw mut mapped, host, flags)) }?;
        device.write(pointer(mapped))
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

    [cudaMemcpy_ptds = cudaMemcpyAsync]
    fn cudaMemcpy(to: *mut c_void, from: *const c_void, size: usize, direction: c_int) {
        begin_copy(direction)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpy(address(to), address(from), size)) }
    }

    [cudaMemcpyAsync_ptsz(stream)]
    fn cudaMemcpyAsync(
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemcpyAsync(address(to), address(from), size, stream)) }
    }

    [cudaMemcpy2D_ptds = cudaMemcpy2DAsync]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    [cudaMemcpy2DAsync_ptsz(stream)]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    [cudaMemset2D_ptds = cudaMemset2DAsync]
    fn cudaMemset2D(memory: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) {
        enter()?;
        let pitch = if height <= 1 { width } else { pitch };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemsetD2D8_v2(address(memory), pitch, value as u8, width, height)) }
    }

    [cudaMemset2DAsync_ptsz(stream)]
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

    // Up to CUDA 12, the size is followed by a device and a stream; later by a location, flags and
    // a stream.
    fn cudaMemPrefetchAsync(memory: *const c_void, size: usize, location: u64, flags: usize, stream: CUstream) {
        prefetch(memory, size, location, flags, stream, std::convert::identity)
    }

    fn cudaMemPrefetchAsync_ptsz(
        memory: *const c_void,
        size: usize,
        location: u64,
        flags: usize,
        stream: CUstream,
    ) {
        prefetch(memory, size, location, flags, stream, per_thread)
    }

    // As above, without a stream.
    fn cudaMemAdvise(memory: *const c_void, size: usize, advice: c_uint, location: u64) {
        enter()?;
        let device = if MAJOR <= 12 { location as c_int } else { location_device(location) };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemAdvise(address(memory), size, CUmem_advise(advice), device)) }
    }

    fn cudaPointerGetAttributes(attributes: Out<PointerAttributes>, memory: *const c_void) {
        use CUpointer_attribute as Attribute;

        enter()?;
        let kind = match integer_attribute(memory, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
            Err(_) => 0,
            Ok(_) if integer_attribute(memory, Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED) == Ok(1) => 3,
            Ok(kind) => kind.cast_signed(),
        };
        if kind == 0 {
            return attributes.write(PointerAttributes {
                kind,
                device: -2,
                on_device: ptr::null_mut(),
                on_host: memory.cast_mut(),
            });
        }
        let device = integer_attribute(memory, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)?;
        attributes.write(PointerAttributes {
            kind,
            device: device.cast_signed(),
            on_device: address_attribute(memory, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER),
            on_host: address_attribute(memory, Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER),
        })
    }
}

forward! {
    [cudaMemPrefetchAsync_v2_ptsz(stream)]
    unsafe fn cudaMemPrefetchAsync_v2(
        memory: *const c_void,
        size: usize,
        location: CUmemLocation,
        flags: c_uint,
        stream: CUstream,
    ) = cuMemPrefetchAsync_v2(address(memory), size, location, flags, stream);

    unsafe fn cudaMemAdvise_v2(
        memory: *const c_void,
        size: usize,
        advice: CUmem_advise,
        location: CUmemLocation,
    ) = cuMemAdvise_v2(address(memory), size, advice, location);

    unsafe fn cudaMemRangeGetAttribute(
        data: *mut c_void,
        size: usize,
        attribute: CUmem_range_attribute,
        memory: *const c_void,
        bytes: usize,
    ) = cuMemRangeGetAttribute(data, size, attribute, address(memory), bytes);

    unsafe fn cudaMemRangeGetAttributes(
        data: *mut *mut c_void,
        sizes: *mut usize,
        attributes: *mut CUmem_range_attribute,
        count: usize,
        memory: *const c_void,
        bytes: usize,
    ) = cuMemRangeGetAttributes(data, sizes, attributes, count, address(memory), bytes);

    unsafe fn cudaHostGetFlags(flags: *mut c_uint, host: *mut c_void)
        = cuMemHostGetFlags(flags, host);

    unsafe fn cudaMallocHost(memory: *mut *mut c_void, size: usize)
        = cuMemHostAlloc(memory, size, 0);

    unsafe fn cudaHostAlloc(memory: *mut *mut c_void, size: usize, flags: c_uint)
        = cuMemHostAlloc(memory, size, flags);

    unsafe fn cudaHostRegister(host: *mut c_void, size: usize, flags: c_uint)
        = cuMemHostRegister_v2(host, size, flags);

    unsafe fn cudaHostUnregister(host: *mut c_void) = cuMemHostUnregister(host);

    unsafe fn cudaFree(memory: *mut c_void) = cuMemFree_v2(address(memory));

    [cudaFreeAsync_ptsz(stream)]
    unsafe fn cudaFreeAsync(memory: *mut c_void, stream: CUstream)
        = cuMemFreeAsync(address(memory), stream);

    unsafe fn cudaMemGetInfo(free: *mut usize, total: *mut usize) = cuMemGetInfo_v2(free, total);

    unsafe fn cudaMemcpyPeer(
        to: *mut c_void,
        _to_device: c_int,
        from: *const c_void,
        _from_device: c_int,
        size: usize,
    ) = cuMemcpy(address(to), address(from), size);

    unsafe fn cudaMemcpyPeerAsync(
        to: *mut c_void,
        _to_device: c_int,
        from: *const c_void,
        _from_device: c_int,
        size: usize,
        stream: CUstream,
    ) = cuMemcpyAsync(address(to), address(from), size, stream);

    [cudaMemset_ptds = cudaMemsetAsync]
    unsafe fn cudaMemset(memory: *mut c_void, value: c_int, size: usize)
        = cuMemsetD8_v2(address(memory), value as u8, size);

    [cudaMemsetAsync_ptsz(stream)]
    unsafe fn cudaMemsetAsync(memory: *mut c_void, value: c_int, size: usize, stream: CUstream)
        = cuMemsetD8Async(address(memory), value as u8, size, stream);
}

fn integer_attribute(memory: *const c_void, attribute: CUpointer_attribute) -> Result<u32> {
    let mut value = 0_u32;
    // SAFETY: the attribute is a 32-bit integer, and the caller of the runtime function guarantees
    // the other arguments.
    unsafe {
        cu!(cuPointerGetAttribute(
            (&raw mut value).cast(),
            attribute,
            address(memory)
        ))
    }?;
    Ok(value)
}

/// Returns the address of memory on the host or the device, null if it is inaccessible there.
fn address_attribute(memory: *const c_void, attribute: CUpointer_attribute) -> *mut c_void {
    fn query(memory: *const c_void, attribute: CUpointer_attribute) -> Result<*mut c_void> {
        let mut value: *mut c_void = ptr::null_mut();
        // SAFETY: the attribute is an address, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe {
            cu!(cuPointerGetAttribute(
                (&raw mut value).cast(),
                attribute,
                address(memory)
            ))
        }?;
        Ok(value)
    }
    query(memory, attribute).unwrap_or(ptr::null_mut())
}

/// Returns the device of a location: the type is in the lower half, the identifier in the upper
/// half.
fn location_device(location: u64) -> c_int {
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
    fn pitched_rows_are_set_and_copied() {
        let _turn = simulate();
        let mut memory: *mut c_void = ptr::null_mut();
        let mut pitch = 0;
        call!(cudaMallocPitch((&mut memory).into(), &raw mut pitch, 5, 3));
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
        let mut bytes = [0_u8; 15];
        call!(cudaMemcpy2D(
            bytes.as_mut_ptr().cast(),
            5,
            memory,
            pitch,
            5,
            3,
            TO_HOST
        ));
        assert_eq!(bytes, [1, 2, 9, 9, 9, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9]);
        call!(cudaFree(memory));
        assert_eq!(
            code!(cudaFree(memory)),
            crate::state::INVALID_VALUE,
            "it is free"
        );
    }

    #[test]
    fn attributes_distinguish_memory_kinds() {
        let _turn = simulate();
        let [mut device, mut pinned, mut managed]: [*mut c_void; 3] = [ptr::null_mut(); 3];
        call!(cudaMalloc((&mut device).into(), 64));
        call!(cudaHostAlloc(&raw mut pinned, 64, 0));
        call!(cudaMallocManaged((&mut managed).into(), 64, 1));
        let mut other = 0_u8;
        for (memory, expected) in [
            (device, (2, false, true)),
            (pinned, (1, false, false)),
            (managed, (3, false, false)),
            ((&raw mut other).cast(), (0, true, false)),
        ] {
            let mut attributes = PointerAttributes {
                kind: 9,
                device: 9,
                on_device: ptr::null_mut(),
                on_host: ptr::null_mut(),
            };
            call!(cudaPointerGetAttributes((&mut attributes).into(), memory));
            let has_no_device_address = attributes.on_device.is_null();
            let has_no_host_address = attributes.on_host.is_null();
            assert_eq!(
                (attributes.kind, has_no_device_address, has_no_host_address),
                expected
            );
        }
        call!(cudaFree(device));
        call!(cudaFreeHost(pinned));
        call!(cudaFree(managed));
    }

    #[test]
    fn registered_memory_has_a_device_address() {
        let _turn = simulate();
        let mut memory = vec![3_u8; 8192];
        let start = memory.as_mut_ptr().cast::<c_void>();
        let mut mapped: *mut c_void = ptr::null_mut();
        call!(cudaHostRegister(start, 8192, 2));
        call!(cudaHostGetDevicePointer((&mut mapped).into(), start, 0));
        let mut bytes = [0_u8; 4];
        call!(cudaMemcpy(bytes.as_mut_ptr().cast(), mapped, 4, TO_HOST));
        assert_eq!(bytes, [3; 4]);
        call!(cudaHostUnregister(start));
        assert_ne!(code!(cudaHostUnregister(start)), 0);
    }

    #[test]
    fn copy_in_an_unknown_direction_is_refused() {
        let _turn = simulate();
        let mut to = 0_u8;
        let from = 1_u8;
        let code = code!(cudaMemcpy(
            (&raw mut to).cast(),
            (&raw const from).cast(),
            1,
            7
        ));
        assert_eq!((code, to), (INVALID_DIRECTION, 0));
    }
}
