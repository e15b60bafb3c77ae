//! Copies of rows and layers.

use std::ffi::c_void;

use curium_sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUarray, CUdeviceptr, CUmemcpy3DOperand,
    CUmemcpy3DOperandType, CUmemorytype, CUresult, CUstream_st,
};

use super::{Wait, host_end, legacy};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, Result};
use crate::handle::Id;
use crate::memory::{End, HostPtr};
use crate::schedule::Work;

/// The most bytes from one row to the next: `CU_DEVICE_ATTRIBUTE_MAX_PITCH`.
const MAX_PITCH: usize = i32::MAX as usize;

/// One side of a copy as the structures of C have it.
struct Operand {
    kind: CUmemorytype,
    host: *mut c_void,
    device: CUdeviceptr,
    array: CUarray,
    /// Column in bytes, row, layer.
    origin: [usize; 3],
    pitch: usize,
    /// Rows from one layer to the next; 0 where there is one layer.
    layer: usize,
}

/// One side of a copy: where the first row begins, and how far apart rows and layers are, in bytes.
#[derive(Clone, Copy, Debug)]
struct Side {
    start: Start,
    pitch: usize,
    layer: usize,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    Device(u64),
    Host(HostPtr),
}

/// The bytes of a row, the rows of a layer, the layers.
#[derive(Clone, Copy, Debug)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuMemcpy2D_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.require_current()?;
        self.copy_plane(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy2DUnaligned_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.cuMemcpy2D_v2(copy)
    }

    pub(crate) fn cuMemcpy2DAsync_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>, stream: Pointer<CUstream_st>) -> Result {
        self.copy_plane(&copy.read()?, stream, false)
    }

    pub(crate) fn cuMemcpy3D_v2(&self, copy: ConstPointer<CUDA_MEMCPY3D>) -> Result {
        self.require_current()?;
        self.copy_volume(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy3DAsync_v2(&self, copy: ConstPointer<CUDA_MEMCPY3D>, stream: Pointer<CUstream_st>) -> Result {
        self.copy_volume(&copy.read()?, stream, false)
    }

    pub(crate) fn cuMemcpy3DPeer(&self, copy: ConstPointer<CUDA_MEMCPY3D_PEER>) -> Result {
        self.require_current()?;
        self.copy_peer_volume(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy3DPeerAsync(
        &self,
        copy: ConstPointer<CUDA_MEMCPY3D_PEER>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.copy_peer_volume(&copy.read()?, stream, false)
    }
}

impl Driver {
    fn copy_plane(&self, copy: &CUDA_MEMCPY2D, stream: Pointer<CUstream_st>, is_synchronous: bool) -> Result {
        let from = Operand {
            kind: copy.srcMemoryType,
            host: copy.srcHost.cast_mut(),
            device: copy.srcDevice,
            array: copy.srcArray,
            origin: [copy.srcXInBytes, copy.srcY, 0],
            pitch: copy.srcPitch,
            layer: 0,
        };
        let to = Operand {
            kind: copy.dstMemoryType,
            host: copy.dstHost,
            device: copy.dstDevice,
            array: copy.dstArray,
            origin: [copy.dstXInBytes, copy.dstY, 0],
            pitch: copy.dstPitch,
            layer: 0,
        };
        let extent = Extent { width: copy.WidthInBytes, height: copy.Height, depth: 1 };
        self.copy_rows((&to, &from), extent, stream, is_synchronous)
    }

    fn copy_volume(&self, copy: &CUDA_MEMCPY3D, stream: Pointer<CUstream_st>, is_synchronous: bool) -> Result {
        if !copy.reserved0.is_null() || !copy.reserved1.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let from = Operand {
            kind: copy.srcMemoryType,
            host: copy.srcHost.cast_mut(),
            device: copy.srcDevice,
            array: copy.srcArray,
            origin: [copy.srcXInBytes, copy.srcY, copy.srcZ],
            pitch: copy.srcPitch,
            layer: copy.srcHeight,
        };
        let to = Operand {
            kind: copy.dstMemoryType,
            host: copy.dstHost,
            device: copy.dstDevice,
            array: copy.dstArray,
            origin: [copy.dstXInBytes, copy.dstY, copy.dstZ],
            pitch: copy.dstPitch,
            layer: copy.dstHeight,
        };
        let extent = Extent { width: copy.WidthInBytes, height: copy.Height, depth: copy.Depth };
        self.copy_rows((&to, &from), extent, stream, is_synchronous)
    }

    fn copy_peer_volume(
        &self,
        copy: &CUDA_MEMCPY3D_PEER,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        self.expect_live_contexts(copy.dstContext, copy.srcContext)?;
        let local = CUDA_MEMCPY3D {
            srcXInBytes: copy.srcXInBytes,
            srcY: copy.srcY,
            srcZ: copy.srcZ,
            srcMemoryType: copy.srcMemoryType,
            srcHost: copy.srcHost,
            srcDevice: copy.srcDevice,
            srcArray: copy.srcArray,
            srcPitch: copy.srcPitch,
            srcHeight: copy.srcHeight,
            dstXInBytes: copy.dstXInBytes,
            dstY: copy.dstY,
            dstZ: copy.dstZ,
            dstMemoryType: copy.dstMemoryType,
            dstHost: copy.dstHost,
            dstDevice: copy.dstDevice,
            dstArray: copy.dstArray,
            dstPitch: copy.dstPitch,
            dstHeight: copy.dstHeight,
            WidthInBytes: copy.WidthInBytes,
            Height: copy.Height,
            Depth: copy.Depth,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_volume(&local, stream, is_synchronous)
    }

    /// One copy of a batch of copies of rows and layers.
    pub(super) fn copy_operation(&self, operation: &CUDA_MEMCPY3D_BATCH_OP, stream: Pointer<CUstream_st>) -> Result {
        let (to, from) = (operand_of(&operation.dst)?, operand_of(&operation.src)?);
        let extent = operation.extent;
        let extent = Extent { width: extent.width, height: extent.height, depth: extent.depth };
        self.copy_rows((&to, &from), extent, stream, false)
    }

    fn copy_rows(
        &self,
        (to, from): (&Operand, &Operand),
        extent: Extent,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let (to, from) = (self.side(to, extent)?, self.side(from, extent)?);
        let is_pageable = |side: &Side| matches!(side.start, Start::Host(host) if !self.is_known(host));
        let is_on_host = |side: &Side| matches!(side.start, Start::Host(_));
        let is_slow =
            |side: &Side| matches!(side.start, Start::Device(address) if self.memory().is_synchronous(address));
        let waits = |side: &Side| is_pageable(side) || is_slow(side) || (is_synchronous && is_on_host(side));
        let wait = if waits(&to) || waits(&from) { Wait::Until } else { Wait::Never };
        let mut state = self.lock();
        let stream = self.stream(&mut state, stream)?;
        if extent.is_empty() {
            return Ok(());
        }
        let work = Work::Device(Box::new(move |driver| driver.run_rows(to, from, extent)));
        if wait == Wait::Until {
            return self.queue_and_wait(state, stream, work);
        }
        self.queue(&mut state, stream, work);
        Ok(())
    }

    fn run_rows(&self, to: Side, from: Side, extent: Extent) -> Result {
        for layer in 0..extent.depth {
            for row in 0..extent.height {
                self.memory().copy(&to.row(layer, row), &from.row(layer, row), extent.width)?;
            }
        }
        Ok(())
    }

    /// What an operand stands for, if all its rows and layers are there.
    fn side(&self, operand: &Operand, extent: Extent) -> Result<Side> {
        let [x, y, z] = operand.origin;
        if operand.kind == CUmemorytype::CU_MEMORYTYPE_ARRAY {
            return self.array_side(operand, extent);
        }
        let too_narrow = x.checked_add(extent.width).is_none_or(|row| operand.pitch < row);
        let too_low = extent.depth > 1 && y.checked_add(extent.height).is_none_or(|rows| operand.layer < rows);
        if extent.is_empty() {
            return Ok(Side { start: Start::Device(0), pitch: 0, layer: 0 });
        }
        if too_narrow || too_low || operand.pitch > MAX_PITCH {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let layer = operand.layer.checked_mul(operand.pitch).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let offset = z * layer + y * operand.pitch + x;
        let span = (extent.depth - 1) * layer + (extent.height - 1) * operand.pitch + extent.width;
        let start = self.start(operand, offset, span)?;
        Ok(Side { start, pitch: operand.pitch, layer })
    }

    /// The side of a copy that is an array, whose rows and layers have no gaps.
    fn array_side(&self, operand: &Operand, extent: Extent) -> Result<Side> {
        // SAFETY: an array is a handle, which is only compared.
        let id = Id::from(unsafe { Pointer::from_raw(operand.array) });
        let array = *self.lock().array(id)?;
        let ([x, y, z], shape) = (operand.origin, array.shape);
        let ends = [x.checked_add(extent.width), y.checked_add(extent.height), z.checked_add(extent.depth)];
        let bounds = [shape.pitch(), shape.rows(), shape.layers()];
        let is_within = ends.into_iter().zip(bounds).all(|(end, bound)| end.is_some_and(|end| end <= bound));
        let element = shape.element().unwrap_or(1);
        if !is_within || !x.is_multiple_of(element) || !extent.width.is_multiple_of(element) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let (pitch, layer) = (shape.pitch(), shape.pitch() * shape.rows());
        let offset = z * layer + y * pitch + x;
        Ok(Side { start: Start::Device(array.base + offset as u64), pitch, layer })
    }

    fn start(&self, operand: &Operand, offset: usize, span: usize) -> Result<Start> {
        let is_host = match operand.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => true,
            CUmemorytype::CU_MEMORYTYPE_DEVICE => false,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => self.is_pageable(operand.device),
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let end = match operand.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => host_end(operand.host, span)?,
            _ if is_host => host_end(HostPtr::from_exposed(operand.device).0.cast(), span)?,
            _ => self.device_end(operand.device + offset as u64, span)?,
        };
        match end {
            End::Host(host) => Ok(Start::Host(HostPtr(host.0.wrapping_add(offset)))),
            End::Device(address) => Ok(Start::Device(address)),
            End::Staged(_) => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

impl Side {
    fn row(&self, layer: usize, row: usize) -> End {
        let offset = layer * self.layer + row * self.pitch;
        match self.start {
            Start::Device(address) => End::Device(address + offset as u64),
            Start::Host(host) => End::Host(HostPtr(host.0.wrapping_add(offset))),
        }
    }
}

impl Extent {
    fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }
}

/// The operand of a batch, whose lengths are bytes for memory that is no array.
fn operand_of(raw: &CUmemcpy3DOperand) -> Result<Operand> {
    if raw.type_ != CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER {
        return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    // SAFETY: the type says that the caller filled in this member.
    let pointer = unsafe { raw.op.ptr };
    Ok(Operand {
        kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        host: std::ptr::null_mut(),
        device: pointer.ptr,
        array: std::ptr::null_mut(),
        origin: [0; 3],
        pitch: pointer.rowLength,
        layer: pointer.layerHeight,
    })
}
