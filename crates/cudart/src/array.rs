//! Arrays, and copies of rows between them and memory.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUarray, CUmemorytype, CUstream};

use crate::memory::{address, begin_copy, checked_pitch};
use crate::state::{INVALID_VALUE, Out, Result, enter};
use crate::texture::Channels;
use crate::{cu, runtime};

/// `cudaExtent`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

fn create_array(
    array: *mut CUarray,
    channels: Option<&Channels>,
    extent: Extent,
    flags: c_uint,
) -> Result<()> {
    enter()?;
    let channels = channels.ok_or(INVALID_VALUE)?;
    let description = CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: channels.format()?,
        NumChannels: channels.count() as c_uint,
        Flags: flags,
    };
    // SAFETY: `description` lives during the call, and the caller of the runtime function guarantees the other arguments.
    unsafe { cu!(cuArray3DCreate_v2(array, &raw const description)) }
}

fn description(array: CUarray) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    enter()?;
    let mut description = CUDA_ARRAY3D_DESCRIPTOR::default();
    // SAFETY: `description` is valid for writes, and the caller of the runtime function guarantees the other arguments.
    unsafe { cu!(cuArray3DGetDescriptor_v2(&raw mut description, array)) }?;
    Ok(description)
}

/// Returns the size of an array's elements.
pub(crate) fn bytes_per_element(array: CUarray) -> Result<usize> {
    let description = description(array)?;
    let channels = Channels::from_driver(description.Format, description.NumChannels)?;
    Ok(channels.bytes())
}

/// Returns the parameters of a copy of rows between memory and an array.
fn rows(width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    }
}

fn to_array(
    to: CUarray,
    position: [usize; 2],
    from: *const c_void,
    pitch: usize,
    size: [usize; 2],
) -> Result<CUDA_MEMCPY2D> {
    Ok(CUDA_MEMCPY2D {
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: to,
        dstXInBytes: position[0],
        dstY: position[1],
        srcDevice: address(from),
        srcPitch: checked_pitch(pitch, size[0], size[1])?,
        ..rows(size[0], size[1])
    })
}

fn from_array(
    to: *mut c_void,
    pitch: usize,
    from: CUarray,
    position: [usize; 2],
    size: [usize; 2],
) -> Result<CUDA_MEMCPY2D> {
    Ok(CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: from,
        srcXInBytes: position[0],
        srcY: position[1],
        dstDevice: address(to),
        dstPitch: checked_pitch(pitch, size[0], size[1])?,
        ..rows(size[0], size[1])
    })
}

runtime! {
    fn cudaMallocArray(
        array: *mut CUarray,
        channels: Option<&Channels>,
        width: usize,
        height: usize,
        flags: c_uint,
    ) {
        create_array(array, channels, Extent { width, height, depth: 0 }, flags)
    }

    fn cudaMalloc3DArray(array: *mut CUarray, channels: Option<&Channels>, extent: Extent, flags: c_uint) {
        create_array(array, channels, extent, flags)
    }

    fn cudaFreeArray(array: CUarray) {
        enter()?;
        if array.is_null() {
            Ok(())
        } else {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            unsafe { cu!(cuArrayDestroy(array)) }
        }
    }

    fn cudaMemcpy2DToArray(
        to: CUarray,
        x: usize,
        y: usize,
        from: *const c_void,
        pitch: usize,
        width: usize,
        height: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = to_array(to, [x, y], from, pitch, [width, height])?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    fn cudaMemcpy2DToArrayAsync(
        to: CUarray,
        x: usize,
        y: usize,
        from: *const c_void,
        pitch: usize,
        width: usize,
        height: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let copy = to_array(to, [x, y], from, pitch, [width, height])?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    fn cudaMemcpy2DFromArray(
        to: *mut c_void,
        pitch: usize,
        from: CUarray,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = from_array(to, pitch, from, [x, y], [width, height])?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    fn cudaMemcpy2DFromArrayAsync(
        to: *mut c_void,
        pitch: usize,
        from: CUarray,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let copy = from_array(to, pitch, from, [x, y], [width, height])?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    fn cudaGetChannelDesc(channels: Out<Channels>, array: CUarray) {
        let description = description(array)?;
        channels.write(Channels::from_driver(description.Format, description.NumChannels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn array_rows_are_copied_in_and_out() {
        let _turn = simulate();
        let channels = Channels::new([32, 32, 0, 0], 0);
        let mut array = CUarray::default();
        call!(cudaMallocArray(&raw mut array, Some(&channels), 3, 2, 0));
        let source: [i32; 12] = std::array::from_fn(|index| index as i32);
        call!(cudaMemcpy2DToArray(
            array,
            0,
            0,
            source.as_ptr().cast(),
            24,
            24,
            2,
            1
        ));
        let mut row = [0_i32; 4];
        // From the second element of the second row.
        call!(cudaMemcpy2DFromArray(
            row.as_mut_ptr().cast(),
            16,
            array,
            8,
            1,
            16,
            1,
            2
        ));
        assert_eq!(row, [8, 9, 10, 11]);
        let mut described = Channels::default();
        call!(cudaGetChannelDesc((&mut described).into(), array));
        assert_eq!((described.count(), described.bytes()), (2, 8));
        call!(cudaFreeArray(array));
    }

    #[test]
    fn array_requires_a_valid_description() {
        let _turn = simulate();
        let mut array = CUarray::default();
        assert_eq!(
            code!(cudaMallocArray(&raw mut array, None, 3, 2, 0)),
            INVALID_VALUE
        );
        let odd = Channels::new([7, 0, 0, 0], 0);
        assert_eq!(
            code!(cudaMallocArray(&raw mut array, Some(&odd), 3, 2, 0)),
            20,
            "cudaErrorInvalidChannelDescriptor"
        );
    }
}
