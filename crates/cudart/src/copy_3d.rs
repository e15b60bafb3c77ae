//! Copies of layers of rows, between memory and arrays.

use std::ffi::{c_uint, c_void};

use curium_sys::{CUDA_MEMCPY3D, CUarray, CUmemorytype, CUstream};

use crate::array::{Extent, bytes_per_element};
use crate::memory::{address, begin_copy};
use crate::state::{INVALID_VALUE, Result};
use crate::{cu, runtime};

/// `cudaPos`: an offset in elements of an array, or in bytes of memory.
#[derive(Clone, Copy)]
#[repr(C)]
struct Position {
    x: usize,
    y: usize,
    z: usize,
}

/// `cudaPitchedPtr`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pitched {
    start: *mut c_void,
    pitch: usize,
    width: usize,
    height: usize,
}

/// One side of a copy: an array, or memory if the array is null.
#[derive(Clone, Copy)]
#[repr(C)]
struct Side {
    array: CUarray,
    position: Position,
    memory: Pitched,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
struct Copy {
    from: Side,
    to: Side,
    extent: Extent,
    direction: c_uint,
}

impl Side {
    /// Returns the bytes in a unit of the copy's width on this side; `None` for memory.
    fn element(&self) -> Result<Option<usize>> {
        if self.array.is_null() { Ok(None) } else { bytes_per_element(self.array).map(Some) }
    }

    fn kind(&self) -> CUmemorytype {
        if self.array.is_null() { CUmemorytype::CU_MEMORYTYPE_UNIFIED } else { CUmemorytype::CU_MEMORYTYPE_ARRAY }
    }
}

impl Copy {
    fn for_driver(&self) -> Result<CUDA_MEMCPY3D> {
        begin_copy(self.direction.cast_signed())?;
        let (from, to) = (self.from.element()?, self.to.element()?);
        // The width counts elements if an array takes part, and bytes otherwise.
        let unit = from.or(to).unwrap_or(1);
        Ok(CUDA_MEMCPY3D {
            srcXInBytes: self.from.position.x * from.unwrap_or(1),
            srcY: self.from.position.y,
            srcZ: self.from.position.z,
            srcMemoryType: self.from.kind(),
            srcDevice: address(self.from.memory.start),
            srcArray: self.from.array,
            srcPitch: self.from.memory.pitch,
            srcHeight: self.from.memory.height,
            dstXInBytes: self.to.position.x * to.unwrap_or(1),
            dstY: self.to.position.y,
            dstZ: self.to.position.z,
            dstMemoryType: self.to.kind(),
            dstDevice: address(self.to.memory.start),
            dstArray: self.to.array,
            dstPitch: self.to.memory.pitch,
            dstHeight: self.to.memory.height,
            WidthInBytes: self.extent.width * unit,
            Height: self.extent.height,
            Depth: self.extent.depth,
            ..CUDA_MEMCPY3D::default()
        })
    }
}

runtime! {
    fn cudaMemcpy3D(copy: *const Copy) {
        // SAFETY: the caller passes a description or null.
        let copy = unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?.for_driver()?;
        cu!(cuMemcpy3D_v2(&raw const copy))
    }

    fn cudaMemcpy3DAsync(copy: *const Copy, stream: CUstream) {
        // SAFETY: the caller passes a description or null.
        let copy = unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?.for_driver()?;
        cu!(cuMemcpy3DAsync_v2(&raw const copy, stream))
    }
}
