//! Copies of rows and layers.

use std::ffi::c_void;

use curium_sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUarray, CUdeviceptr,
    CUmemcpy3DOperand, CUmemcpy3DOperandType, CUmemorytype, CUresult, CUstream_st,
};

use super::{host_operand, legacy};
use crate::activity::{self, ActivityOperation};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::graph::{AccessedRange, Content, Copy3D};
use crate::driver::{Driver, Result, State};
use crate::handle::Id;
use crate::memory::{CopyOperand, HostPtr, READ, WRITE};

/// The maximum pitch: `CU_DEVICE_ATTRIBUTE_MAX_PITCH`.
const MAX_PITCH: usize = i32::MAX as usize;

/// One operand of a copy as in the structures of C.
struct Operand {
    kind: CUmemorytype,
    host: *mut c_void,
    device: CUdeviceptr,
    array: CUarray,
    /// Column in bytes, row, layer.
    origin: [usize; 3],
    pitch: usize,
    /// The number of rows from one layer to the next; 0 for a single layer.
    layer: usize,
}

/// A copy of valid rows and layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    to: Side,
    from: Side,
    extent: Extent,
}

/// One operand of a copy: the first row, and the distances of rows and layers in bytes.
#[derive(Clone, Copy, Debug)]
struct Side {
    start: Start,
    pitch: usize,
    layer: usize,
    /// `true` if the driver allocated the memory, and not the caller.
    is_allocated: bool,
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

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuMemcpy2D_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.require_current()?;
        self.copy_plane(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy2DUnaligned_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.cuMemcpy2D_v2(copy)
    }

    pub(crate) fn cuMemcpy2DAsync_v2(
        &self,
        copy: ConstPointer<CUDA_MEMCPY2D>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.working_stream(&mut self.lock(), stream)?;
        self.copy_plane(&copy.read()?, stream, false)
    }

    pub(crate) fn cuMemcpy3D_v2(&self, copy: ConstPointer<CUDA_MEMCPY3D>) -> Result {
        self.require_current()?;
        self.copy_local_volume(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy3DAsync_v2(
        &self,
        copy: ConstPointer<CUDA_MEMCPY3D>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.working_stream(&mut self.lock(), stream)?;
        self.copy_local_volume(&copy.read()?, stream, false)
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
        self.uncaptured_stream(&mut self.lock(), stream)?;
        self.copy_peer_volume(&copy.read()?, stream, false)
    }
}

impl Driver {
    /// Converts the description of a plane to that of a volume with one layer.
    fn copy_plane(
        &self,
        copy: &CUDA_MEMCPY2D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let volume = CUDA_MEMCPY3D {
            srcXInBytes: copy.srcXInBytes,
            srcY: copy.srcY,
            srcMemoryType: copy.srcMemoryType,
            srcHost: copy.srcHost,
            srcDevice: copy.srcDevice,
            srcArray: copy.srcArray,
            srcPitch: copy.srcPitch,
            dstXInBytes: copy.dstXInBytes,
            dstY: copy.dstY,
            dstMemoryType: copy.dstMemoryType,
            dstHost: copy.dstHost,
            dstDevice: copy.dstDevice,
            dstArray: copy.dstArray,
            dstPitch: copy.dstPitch,
            WidthInBytes: copy.WidthInBytes,
            Height: copy.Height,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_local_volume(&volume, stream, is_synchronous)
    }

    /// Performs a copy in the context of the stream, which needs access to the pools of both operands.
    fn copy_local_volume(
        &self,
        copy: &CUDA_MEMCPY3D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let sides = [
            (copy.srcMemoryType, copy.srcDevice, READ),
            (copy.dstMemoryType, copy.dstDevice, WRITE),
        ];
        let accesses: Vec<_> = sides
            .into_iter()
            .filter(|(kind, address, _)| match *kind {
                CUmemorytype::CU_MEMORYTYPE_DEVICE => true,
                CUmemorytype::CU_MEMORYTYPE_UNIFIED => {
                    !self.is_unified_host(*address, 0).unwrap_or_default()
                }
                _ => false,
            })
            .map(|(_, address, rights)| (address, rights))
            .collect();
        self.expect_pool_access(stream, &accesses)?;
        self.copy_volume(copy, stream, is_synchronous)
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

    /// Performs one copy of a batch of copies of rows and layers.
    pub(super) fn copy_operation(
        &self,
        operation: &CUDA_MEMCPY3D_BATCH_OP,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let elements = [
            self.element_size(&operation.src)?,
            self.element_size(&operation.dst)?,
        ];
        let element = match elements {
            [Some(from), Some(to)] if from != to => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            [from, to] => from.or(to).unwrap_or(1),
        };
        let from = batch_operand(&operation.src, element)?;
        let to = batch_operand(&operation.dst, element)?;
        let volume = CUDA_MEMCPY3D {
            srcMemoryType: from.kind,
            srcDevice: from.device,
            srcArray: from.array,
            srcXInBytes: from.origin[0],
            srcY: from.origin[1],
            srcZ: from.origin[2],
            srcPitch: from.pitch,
            srcHeight: from.layer,
            dstMemoryType: to.kind,
            dstDevice: to.device,
            dstArray: to.array,
            dstXInBytes: to.origin[0],
            dstY: to.origin[1],
            dstZ: to.origin[2],
            dstPitch: to.pitch,
            dstHeight: to.layer,
            WidthInBytes: byte_count(operation.extent.width, element)?,
            Height: operation.extent.height,
            Depth: operation.extent.depth,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_volume(&volume, stream, false)
    }

    /// Returns the bytes of an element, if the operand is an array: then all lengths are in these.
    fn element_size(&self, raw: &CUmemcpy3DOperand) -> Result<Option<usize>> {
        if raw.type_ != CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY {
            return Ok(None);
        }
        // SAFETY: the type selects this member, which the caller has initialized.
        let array = unsafe { raw.op.array };
        // SAFETY: a handle is only looked up.
        let array = unsafe { Pointer::from_raw(array.array) };
        Ok(self.lock().array(Id::from(array))?.shape.element())
    }

    /// Converts a description of a copy, if all its rows and layers exist.
    pub(crate) fn resolve_rows(&self, state: &State, copy: &CUDA_MEMCPY3D) -> Result<Rows> {
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
        let extent = Extent {
            width: copy.WidthInBytes,
            height: copy.Height,
            depth: copy.Depth,
        };
        Ok(Rows {
            to: self.side(state, &to, extent)?,
            from: self.side(state, &from, extent)?,
            extent,
        })
    }

    pub(in crate::driver) fn copy_volume(
        &self,
        copy: &CUDA_MEMCPY3D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let mut state = self.lock();
        let rows = self.resolve_rows(&state, copy)?;
        let stream = self.working_stream(&mut state, stream)?;
        if rows.extent.is_empty() {
            return Ok(());
        }
        let content = Content::Copy(Copy3D::new(*copy, rows));
        if !state.is_capturing(stream) && self.is_waited_for(&rows, is_synchronous) {
            return self.queue_and_wait(state, stream, content.into_work());
        }
        self.enqueue(&mut state, stream, content)
    }

    /// Returns `true` if the caller waits for the copy: by request unless all is device memory, or because of the kind of memory.
    fn is_waited_for(&self, rows: &Rows, is_synchronous: bool) -> bool {
        [&rows.to, &rows.from]
            .into_iter()
            .any(|side| match side.start {
                Start::Host(host) => is_synchronous || !self.is_known(host),
                Start::Device(address) if is_synchronous => !self.memory().is_on_device(address),
                Start::Device(address) => self.memory().is_synchronous(address),
            })
    }

    /// Converts an operand, if all its rows and layers exist.
    fn side(&self, state: &State, operand: &Operand, extent: Extent) -> Result<Side> {
        let [x, y, z] = operand.origin;
        if operand.kind == CUmemorytype::CU_MEMORYTYPE_ARRAY {
            return array_side(state, operand, extent);
        }
        let row = x
            .checked_add(extent.width)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let rows = y
            .checked_add(extent.height)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // As on hardware, 0 stands for rows and layers without gaps.
        let pitch = if operand.pitch == 0 {
            row
        } else {
            operand.pitch
        };
        let height = if operand.layer == 0 {
            rows
        } else {
            operand.layer
        };
        let too_low = height < rows;
        if extent.is_empty() {
            return Ok(Side {
                start: Start::Device(0),
                pitch: 0,
                layer: 0,
                is_allocated: false,
            });
        }
        if pitch < row || too_low || pitch > MAX_PITCH {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // A single layer has no next one.
        let layer = if extent.depth > 1 || z > 0 {
            height
                .checked_mul(pitch)
                .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?
        } else {
            0
        };
        let offset = offset_in_volume([x, y, z], pitch, layer)?;
        // The extent is not empty.
        let last_row = [extent.width, extent.height - 1, extent.depth - 1];
        let span = offset_in_volume(last_row, pitch, layer)?;
        let start = self.start(operand, offset, span)?;
        let is_allocated = match start {
            Start::Device(_) => true,
            Start::Host(host) => self.memory().is_pinned(host),
        };
        Ok(Side {
            start,
            pitch,
            layer,
            is_allocated,
        })
    }

    fn start(&self, operand: &Operand, offset: usize, span: usize) -> Result<Start> {
        let is_host = match operand.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                !self.memory().is_closed_to_host(operand.host.addr() as u64)
            }
            CUmemorytype::CU_MEMORYTYPE_DEVICE => false,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => self.is_unified_host(operand.device, span)?,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let is_by_host_pointer = operand.kind == CUmemorytype::CU_MEMORYTYPE_HOST;
        let end = match is_host {
            true if is_by_host_pointer => host_operand(operand.host, span)?,
            true => host_operand(HostPtr::from_exposed(operand.device).0.cast(), span)?,
            false => {
                let start = if is_by_host_pointer {
                    operand.host.addr() as u64
                } else {
                    operand.device
                };
                let address = start.checked_add(offset as u64);
                let address = address.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
                self.device_operand(address, span)?
            }
        };
        match end {
            CopyOperand::Host(host) => Ok(Start::Host(HostPtr(host.0.wrapping_add(offset)))),
            CopyOperand::Device(address) => Ok(Start::Device(address)),
            CopyOperand::Staged(_) => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

impl Rows {
    /// Returns the memory of the driver that the copy reads and writes.
    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        let sides = [(&self.from, false), (&self.to, true)];
        sides
            .into_iter()
            .filter_map(|(side, write)| side.touched(self.extent, write))
            .collect()
    }

    /// Copies one row after the other.
    pub(crate) fn run(&self, driver: &Driver) -> Result {
        let Extent {
            width,
            height,
            depth,
        } = self.extent;
        let mut rows = (0..depth).flat_map(|layer| (0..height).map(move |row| (layer, row)));
        activity::measured(
            || ActivityOperation::Copy {
                from: driver.activity_memory(&self.from.row(0, 0)),
                to: driver.activity_memory(&self.to.row(0, 0)),
                bytes: width as u64 * height as u64 * depth as u64,
            },
            || {
                rows.try_for_each(|(layer, row)| {
                    let to = self.to.row(layer, row);
                    let from = self.from.row(layer, row);
                    driver.report_transfer(driver.memory().copy(&to, &from, width))
                })
            },
        )
    }
}

impl Side {
    /// Returns the addresses from the first byte to the last; none for memory that the driver does not manage.
    fn touched(&self, extent: Extent, write: bool) -> Option<AccessedRange> {
        let address = match self.start {
            Start::Device(address) => address,
            Start::Host(host) if self.is_allocated => host.0.addr() as u64,
            Start::Host(_) => return None,
        };
        let Extent {
            width,
            height,
            depth,
        } = extent;
        let last_layer = depth.saturating_sub(1) * self.layer;
        let last_row = height.saturating_sub(1) * self.pitch;
        let size = (last_layer + last_row + width) as u64;
        (!extent.is_empty()).then_some(AccessedRange {
            address,
            size,
            write,
        })
    }

    fn row(&self, layer: usize, row: usize) -> CopyOperand {
        let offset = layer * self.layer + row * self.pitch;
        match self.start {
            Start::Device(address) => CopyOperand::Device(address + offset as u64),
            Start::Host(host) => CopyOperand::Host(HostPtr(host.0.wrapping_add(offset))),
        }
    }
}

impl Extent {
    fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }
}

/// Returns the operand of a copy that is an array, whose rows and layers have no gaps.
fn array_side(state: &State, operand: &Operand, extent: Extent) -> Result<Side> {
    // SAFETY: an array is a handle, which is only compared.
    let array = unsafe { Pointer::from_raw(operand.array) };
    let array = *state.array(Id::from(array.required()?))?;
    let ([x, y, z], shape) = (operand.origin, array.shape);
    let ends = [
        x.checked_add(extent.width),
        y.checked_add(extent.height),
        z.checked_add(extent.depth),
    ];
    let bounds = [shape.pitch(), shape.rows(), shape.layers()];
    let is_within = ends
        .into_iter()
        .zip(bounds)
        .all(|(end, bound)| end.is_some_and(|end| end <= bound));
    // As on hardware, copies may begin and end within an element.
    if !is_within {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let pitch = shape.pitch();
    let layer = pitch * shape.rows();
    let offset = z * layer + y * pitch + x;
    Ok(Side {
        start: Start::Device(array.base + offset as u64),
        pitch,
        layer,
        is_allocated: true,
    })
}

/// Returns the offset in bytes of a column, row and layer.
fn offset_in_volume([x, y, z]: [usize; 3], pitch: usize, layer: usize) -> Result<usize> {
    let rows = y.checked_mul(pitch);
    let layers = z.checked_mul(layer);
    rows.zip(layers)
        .and_then(|(rows, layers)| layers.checked_add(rows)?.checked_add(x))
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// Returns the bytes of a number of elements.
fn byte_count(elements: usize, element: usize) -> Result<usize> {
    elements
        .checked_mul(element)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// Returns the operand of a batch, whose lengths are in elements of this many bytes.
fn batch_operand(raw: &CUmemcpy3DOperand, element: usize) -> Result<Operand> {
    let mut operand = Operand {
        kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        host: std::ptr::null_mut(),
        device: 0,
        array: std::ptr::null_mut(),
        origin: [0; 3],
        pitch: 0,
        layer: 0,
    };
    match raw.type_ {
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => {
            // SAFETY: the type selects this member, which the caller has initialized.
            let pointer = unsafe { raw.op.ptr };
            (operand.device, operand.pitch, operand.layer) = (
                pointer.ptr,
                byte_count(pointer.rowLength, element)?,
                pointer.layerHeight,
            );
        }
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the type selects this member, which the caller has initialized.
            let array = unsafe { raw.op.array };
            operand.kind = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            operand.array = array.array;
            operand.origin = [
                byte_count(array.offset.x, element)?,
                array.offset.y,
                array.offset.z,
            ];
        }
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
    Ok(operand)
}
