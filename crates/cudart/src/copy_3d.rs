//! Copies of layers of rows, between memory and arrays.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUmemorytype, CUstream};

use crate::array::{Extent, bytes_per_element};
use crate::memory::{DEFAULT_DIRECTION, address, begin_copy, pointer};
use crate::state::{INVALID_VALUE, Result, primary};
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
pub(crate) struct Pitched {
    pub(crate) start: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
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
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy {
    from: Side,
    to: Side,
    extent: Extent,
    direction: c_uint,
}

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
pub(crate) struct PeerCopy {
    from: Side,
    from_device: c_int,
    to: Side,
    to_device: c_int,
    extent: Extent,
}

const _: () = {
    assert!(size_of::<Copy>() == 160, "cudaMemcpy3DParms");
    assert!(size_of::<PeerCopy>() == 168, "cudaMemcpy3DPeerParms");
};

impl Side {
    /// Returns the bytes in a unit of the copy's width on this side; `None` for memory.
    fn element(&self) -> Result<Option<usize>> {
        if self.array.is_null() {
            Ok(None)
        } else {
            bytes_per_element(self.array).map(Some)
        }
    }

    /// Returns one side of a copy of the driver.
    fn from_driver(
        kind: CUmemorytype,
        memory: Pitched,
        array: CUarray,
        position: Position,
    ) -> Result<Self> {
        if kind != CUmemorytype::CU_MEMORYTYPE_ARRAY {
            return Ok(Self {
                array: CUarray::default(),
                position,
                memory,
            });
        }
        let none = Pitched {
            start: ptr::null_mut(),
            pitch: 0,
            width: 0,
            height: 0,
        };
        Ok(Self {
            array,
            position: Position {
                x: position.x / bytes_per_element(array)?,
                ..position
            },
            memory: none,
        })
    }

    fn kind(&self) -> CUmemorytype {
        if self.array.is_null() {
            CUmemorytype::CU_MEMORYTYPE_UNIFIED
        } else {
            CUmemorytype::CU_MEMORYTYPE_ARRAY
        }
    }
}

impl Copy {
    /// Returns the runtime's parameters. The driver does not record the direction, so it is the
    /// default.
    pub(crate) fn from_driver(driver: &CUDA_MEMCPY3D) -> Result<Self> {
        let from = Side::from_driver(
            driver.srcMemoryType,
            Pitched {
                start: if driver.srcMemoryType == CUmemorytype::CU_MEMORYTYPE_HOST {
                    driver.srcHost.cast_mut()
                } else {
                    pointer(driver.srcDevice)
                },
                pitch: driver.srcPitch,
                width: driver.WidthInBytes,
                height: driver.srcHeight,
            },
            driver.srcArray,
            Position {
                x: driver.srcXInBytes,
                y: driver.srcY,
                z: driver.srcZ,
            },
        )?;
        let to = Side::from_driver(
            driver.dstMemoryType,
            Pitched {
                start: if driver.dstMemoryType == CUmemorytype::CU_MEMORYTYPE_HOST {
                    driver.dstHost
                } else {
                    pointer(driver.dstDevice)
                },
                pitch: driver.dstPitch,
                width: driver.WidthInBytes,
                height: driver.dstHeight,
            },
            driver.dstArray,
            Position {
                x: driver.dstXInBytes,
                y: driver.dstY,
                z: driver.dstZ,
            },
        )?;
        let unit = from.element()?.or(to.element()?).unwrap_or(1);
        Ok(Self {
            from,
            to,
            extent: Extent {
                width: driver.WidthInBytes / unit,
                height: driver.Height,
                depth: driver.Depth,
            },
            direction: DEFAULT_DIRECTION.cast_unsigned(),
        })
    }

    pub(crate) fn to_driver(self) -> Result<CUDA_MEMCPY3D> {
        begin_copy(self.direction.cast_signed())?;
        let from = self.from.element()?;
        let to = self.to.element()?;
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

impl PeerCopy {
    fn to_driver(&self) -> Result<CUDA_MEMCPY3D_PEER> {
        let copy = Copy {
            from: self.from,
            to: self.to,
            extent: self.extent,
            direction: DEFAULT_DIRECTION.cast_unsigned(),
        };
        let copy = copy.to_driver()?;
        Ok(CUDA_MEMCPY3D_PEER {
            srcXInBytes: copy.srcXInBytes,
            srcY: copy.srcY,
            srcZ: copy.srcZ,
            srcMemoryType: copy.srcMemoryType,
            srcDevice: copy.srcDevice,
            srcArray: copy.srcArray,
            srcContext: primary(self.from_device)?,
            srcPitch: copy.srcPitch,
            srcHeight: copy.srcHeight,
            dstXInBytes: copy.dstXInBytes,
            dstY: copy.dstY,
            dstZ: copy.dstZ,
            dstMemoryType: copy.dstMemoryType,
            dstDevice: copy.dstDevice,
            dstArray: copy.dstArray,
            dstContext: primary(self.to_device)?,
            dstPitch: copy.dstPitch,
            dstHeight: copy.dstHeight,
            WidthInBytes: copy.WidthInBytes,
            Height: copy.Height,
            Depth: copy.Depth,
            ..CUDA_MEMCPY3D_PEER::default()
        })
    }
}

runtime! {
    [cudaMemcpy3DPeer_ptds = cudaMemcpy3DPeerAsync]
    fn cudaMemcpy3DPeer(copy: Option<&PeerCopy>) {
        let copy = copy.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy3DPeer(&raw const copy)) }
    }

    [cudaMemcpy3DPeerAsync_ptsz(stream)]
    fn cudaMemcpy3DPeerAsync(copy: Option<&PeerCopy>, stream: CUstream) {
        let copy = copy.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemcpy3DPeerAsync(&raw const copy, stream)) }
    }

    [cudaMemcpy3D_ptds = cudaMemcpy3DAsync]
    fn cudaMemcpy3D(copy: Option<&Copy>) {
        let copy = copy.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the memory that it names.
        unsafe { cu!(cuMemcpy3D_v2(&raw const copy)) }
    }

    [cudaMemcpy3DAsync_ptsz(stream)]
    fn cudaMemcpy3DAsync(copy: Option<&Copy>, stream: CUstream) {
        let copy = copy.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuMemcpy3DAsync_v2(&raw const copy, stream)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call, code, simulate};
    use crate::texture::Channels;

    fn memory_side(elements: &mut [u16; 12]) -> Side {
        Side {
            array: CUarray::default(),
            position: Position { x: 0, y: 0, z: 0 },
            memory: Pitched {
                start: elements.as_mut_ptr().cast(),
                pitch: 6,
                width: 3,
                height: 2,
            },
        }
    }

    fn array_side(array: CUarray, position: Position) -> Side {
        Side {
            array,
            position,
            memory: Pitched {
                start: ptr::null_mut(),
                pitch: 0,
                width: 0,
                height: 0,
            },
        }
    }

    #[test]
    fn layers_are_copied_to_an_array_and_back() {
        let _turn = simulate();
        let channels = Channels::new([16, 0, 0, 0], 1);
        let extent = Extent {
            width: 3,
            height: 2,
            depth: 2,
        };
        let mut array = CUarray::default();
        let allocate = crate::array::cudaMalloc3DArray;
        call!(allocate(&raw mut array, Some(&channels), extent, 0));
        let mut source: [u16; 12] = std::array::from_fn(|index| index as u16 + 1);
        let copy = Copy {
            from: memory_side(&mut source),
            to: array_side(array, Position { x: 0, y: 0, z: 0 }),
            extent,
            direction: 1,
        };
        call!(cudaMemcpy3D(Some(&copy)));
        let mut result = [0_u16; 12];
        // Two elements of the second layer, from the second one of its second row.
        let from = array_side(array, Position { x: 1, y: 1, z: 1 });
        let extent = Extent {
            width: 2,
            height: 1,
            depth: 1,
        };
        let copy = Copy {
            from,
            to: memory_side(&mut result),
            extent,
            direction: 2,
        };
        call!(cudaMemcpy3D(Some(&copy)));
        assert_eq!(result[..3], [11, 12, 0]);
        assert_eq!(code!(cudaMemcpy3D(None)), INVALID_VALUE);
        let free = crate::array::cudaFreeArray;
        call!(free(array));
    }
}
