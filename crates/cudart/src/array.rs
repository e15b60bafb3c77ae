//! Arrays, and copies of rows between them and memory.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CU_STREAM_PER_THREAD, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES,
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUarray, CUdeviceptr, CUmemorytype, CUstream,
};

use crate::memory::{address, begin_copy, checked_pitch};
use crate::state::{INVALID_VALUE, Out, Result, enter};
use crate::texture::Channels;
use crate::{cu, forward, runtime};

/// `cudaExtent`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// Returns the driver's descriptor of an array.
pub(crate) fn descriptor(
    channels: Option<&Channels>,
    extent: Extent,
    flags: c_uint,
) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    let channels = channels.ok_or(INVALID_VALUE)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: channels.format()?,
        NumChannels: channels.count() as c_uint,
        Flags: flags,
    })
}

fn create_array(
    array: *mut CUarray,
    channels: Option<&Channels>,
    extent: Extent,
    flags: c_uint,
) -> Result<()> {
    enter()?;
    let description = descriptor(channels, extent, flags)?;
    // SAFETY: `description` lives during the call, and the caller of the runtime function
    // guarantees the other arguments.
    unsafe { cu!(cuArray3DCreate_v2(array, &raw const description)) }
}

fn description(array: CUarray) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    enter()?;
    let mut description = CUDA_ARRAY3D_DESCRIPTOR::default();
    // SAFETY: `description` is valid for writes, and the caller of the runtime function guarantees
    // the other arguments.
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

/// One side of a copy of consecutive bytes: memory, or an array whose rows follow each other.
#[derive(Clone, Copy)]
enum LinearSide {
    Memory {
        address: CUdeviceptr,
    },
    Array {
        array: CUarray,
        row_bytes: usize,
        x: usize,
        y: usize,
    },
}

impl LinearSide {
    fn from_memory(memory: *const c_void) -> Self {
        Self::Memory {
            address: address(memory),
        }
    }

    fn from_array(array: CUarray, x: usize, y: usize) -> Result<Self> {
        let description = description(array)?;
        let channels = Channels::from_driver(description.Format, description.NumChannels)?;
        let row_bytes = description.Width * channels.bytes();
        if x >= row_bytes {
            return Err(INVALID_VALUE);
        }
        Ok(Self::Array {
            array,
            row_bytes,
            x,
            y,
        })
    }

    /// Returns the bytes up to the end of the row.
    fn bytes_in_row(self) -> usize {
        match self {
            Self::Memory { .. } => usize::MAX,
            Self::Array { row_bytes, x, .. } => row_bytes - x,
        }
    }

    /// Returns the side `size` bytes further, which are at most those up to the end of the row.
    fn advanced(self, size: usize) -> Self {
        match self {
            Self::Memory { address } => Self::Memory {
                address: address + size as CUdeviceptr,
            },
            Self::Array {
                array,
                row_bytes,
                x,
                y,
            } => Self::Array {
                array,
                row_bytes,
                x: (x + size) % row_bytes,
                y: y + (x + size) / row_bytes,
            },
        }
    }
}

/// Copies consecutive bytes, row by row.
fn copy_linear(
    mut to: LinearSide,
    mut from: LinearSide,
    mut size: usize,
    stream: Option<CUstream>,
) -> Result<()> {
    while size > 0 {
        let width = size.min(to.bytes_in_row()).min(from.bytes_in_row());
        let mut copy = rows(width, 1);
        match from {
            LinearSide::Memory { address } => copy.srcDevice = address,
            LinearSide::Array { array, x, y, .. } => {
                copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                copy.srcArray = array;
                copy.srcXInBytes = x;
                copy.srcY = y;
            }
        }
        match to {
            LinearSide::Memory { address } => copy.dstDevice = address,
            LinearSide::Array { array, x, y, .. } => {
                copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                copy.dstArray = array;
                copy.dstXInBytes = x;
                copy.dstY = y;
            }
        }
        match stream {
            // SAFETY: `copy` lives during the call, and the caller of the runtime function
            // guarantees the other arguments.
            Some(stream) => unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) },
            // SAFETY: `copy` lives during the call, and the caller of the runtime function
            // guarantees the memory that it names.
            None => unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) },
        }?;
        to = to.advanced(width);
        from = from.advanced(width);
        size -= width;
    }
    Ok(())
}

/// Returns a copy of a rectangle between two arrays.
fn between_arrays(
    to: CUarray,
    to_position: [usize; 2],
    from: CUarray,
    from_position: [usize; 2],
    size: [usize; 2],
) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: from,
        srcXInBytes: from_position[0],
        srcY: from_position[1],
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: to,
        dstXInBytes: to_position[0],
        dstY: to_position[1],
        ..rows(size[0], size[1])
    }
}

runtime! {
    [cudaMemcpyToArray_ptds = cudaMemcpyToArrayAsync]
    fn cudaMemcpyToArray(
        to: CUarray,
        x: usize,
        y: usize,
        from: *const c_void,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let to = LinearSide::from_array(to, x, y)?;
        copy_linear(to, LinearSide::from_memory(from), size, None)
    }

    [cudaMemcpyToArrayAsync_ptsz(stream)]
    fn cudaMemcpyToArrayAsync(
        to: CUarray,
        x: usize,
        y: usize,
        from: *const c_void,
        size: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let to = LinearSide::from_array(to, x, y)?;
        copy_linear(to, LinearSide::from_memory(from), size, Some(stream))
    }

    [cudaMemcpyFromArray_ptds = cudaMemcpyFromArrayAsync]
    fn cudaMemcpyFromArray(
        to: *mut c_void,
        from: CUarray,
        x: usize,
        y: usize,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let from = LinearSide::from_array(from, x, y)?;
        copy_linear(LinearSide::from_memory(to), from, size, None)
    }

    [cudaMemcpyFromArrayAsync_ptsz(stream)]
    fn cudaMemcpyFromArrayAsync(
        to: *mut c_void,
        from: CUarray,
        x: usize,
        y: usize,
        size: usize,
        direction: c_int,
        stream: CUstream,
    ) {
        begin_copy(direction)?;
        let from = LinearSide::from_array(from, x, y)?;
        copy_linear(LinearSide::from_memory(to), from, size, Some(stream))
    }

    fn cudaMemcpyArrayToArray(
        to: CUarray,
        to_x: usize,
        to_y: usize,
        from: CUarray,
        from_x: usize,
        from_y: usize,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let to = LinearSide::from_array(to, to_x, to_y)?;
        copy_linear(to, LinearSide::from_array(from, from_x, from_y)?, size, None)
    }

    fn cudaMemcpyArrayToArray_ptds(
        to: CUarray,
        to_x: usize,
        to_y: usize,
        from: CUarray,
        from_x: usize,
        from_y: usize,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let to = LinearSide::from_array(to, to_x, to_y)?;
        let from = LinearSide::from_array(from, from_x, from_y)?;
        copy_linear(to, from, size, Some(CU_STREAM_PER_THREAD))
    }

    fn cudaMemcpy2DArrayToArray(
        to: CUarray,
        to_x: usize,
        to_y: usize,
        from: CUarray,
        from_x: usize,
        from_y: usize,
        width: usize,
        height: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = between_arrays(to, [to_x, to_y], from, [from_x, from_y], [width, height]);
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    fn cudaMemcpy2DArrayToArray_ptds(
        to: CUarray,
        to_x: usize,
        to_y: usize,
        from: CUarray,
        from_x: usize,
        from_y: usize,
        width: usize,
        height: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = between_arrays(to, [to_x, to_y], from, [from_x, from_y], [width, height]);
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, CU_STREAM_PER_THREAD)) }
    }

    fn cudaArrayGetInfo(
        channels: *mut Channels,
        extent: *mut Extent,
        flags: *mut c_uint,
        array: CUarray,
    ) {
        let description = description(array)?;
        let described = Channels::from_driver(description.Format, description.NumChannels)?;
        // SAFETY: by the contract of the function, the output is null or valid for writes.
        if let Some(channels) = unsafe { channels.as_mut() } {
            *channels = described;
        }
        // SAFETY: by the contract of the function, the output is null or valid for writes.
        if let Some(extent) = unsafe { extent.as_mut() } {
            *extent = Extent {
                width: description.Width,
                height: description.Height,
                depth: description.Depth,
            };
        }
        // SAFETY: by the contract of the function, the output is null or valid for writes.
        if let Some(flags) = unsafe { flags.as_mut() } {
            *flags = description.Flags;
        }
        Ok(())
    }

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

    [cudaMemcpy2DToArray_ptds = cudaMemcpy2DToArrayAsync]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    [cudaMemcpy2DToArrayAsync_ptsz(stream)]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    [cudaMemcpy2DFromArray_ptds = cudaMemcpy2DFromArrayAsync]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy2DUnaligned_v2(&raw const copy)) }
    }

    [cudaMemcpy2DFromArrayAsync_ptsz(stream)]
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
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, stream)) }
    }

    fn cudaGetChannelDesc(channels: Out<Channels>, array: CUarray) {
        let description = description(array)?;
        channels.write(Channels::from_driver(description.Format, description.NumChannels)?)
    }
}

forward! {
    unsafe fn cudaArrayGetMemoryRequirements(
        requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        array: CUarray,
        device: c_int,
    ) = cuArrayGetMemoryRequirements(requirements, array, device);

    unsafe fn cudaArrayGetPlane(plane: *mut CUarray, array: CUarray, index: c_uint)
        = cuArrayGetPlane(plane, array, index);

    unsafe fn cudaArrayGetSparseProperties(
        properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
        array: CUarray,
    ) = cuArrayGetSparseProperties(properties, array);
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
