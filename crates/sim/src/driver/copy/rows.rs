//! Copies of rows and layers.

use std::ffi::c_void;

use curium_sys::{CUDA_MEMCPY3D, CUarray, CUdeviceptr, CUmemorytype, CUresult};

use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::copy::host_operand;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::memory::CopyOperand;
use crate::object::copy::{Extent, Rows, Side, Start};
use crate::result::Result;

/// The maximum pitch: `CU_DEVICE_ATTRIBUTE_MAX_PITCH`.
const MAX_PITCH: usize = i32::MAX as usize;

/// One operand of a copy as in the structures of C.
pub(crate) struct Operand {
    pub(crate) kind: CUmemorytype,
    pub(crate) host: *mut c_void,
    pub(crate) device: CUdeviceptr,
    pub(crate) array: CUarray,
    /// Column in bytes, row, layer.
    pub(crate) origin: [usize; 3],
    pub(crate) pitch: usize,
    /// The number of rows from one layer to the next; 0 for a single layer.
    pub(crate) layer: usize,
}

impl Driver {
    pub(crate) fn start(&self, operand: &Operand, offset: usize, span: usize) -> Result<Start> {
        let is_host = match operand.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                !self.memory().is_closed_to_host(operand.host.addr() as u64)
            }
            CUmemorytype::CU_MEMORYTYPE_DEVICE => false,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => {
                self.operands().is_unified_host(operand.device, span)?
            }
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

impl Locked<'_> {
    /// Converts a description of a copy, if all its rows and layers exist.
    pub(crate) fn resolve_rows(&self, copy: &CUDA_MEMCPY3D) -> Result<Rows> {
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
            to: self.side(&to, extent)?,
            from: self.side(&from, extent)?,
            extent,
        })
    }

    /// Converts an operand, if all its rows and layers exist.
    fn side(&self, operand: &Operand, extent: Extent) -> Result<Side> {
        let driver = self.driver;
        let [x, y, z] = operand.origin;
        if operand.kind == CUmemorytype::CU_MEMORYTYPE_ARRAY {
            return array_side(self, operand, extent);
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
        let start = driver.start(operand, offset, span)?;
        let is_allocated = match start {
            Start::Device(_) => true,
            Start::Host(host) => driver.memory().is_pinned(host),
        };
        Ok(Side {
            start,
            pitch,
            layer,
            is_allocated,
        })
    }
}

impl Rows {
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
                from: driver.operands().activity_memory(&self.from.row(0, 0)),
                to: driver.operands().activity_memory(&self.to.row(0, 0)),
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

/// Returns the operand of a copy that is an array, whose rows and layers have no gaps.
fn array_side(state: &State, operand: &Operand, extent: Extent) -> Result<Side> {
    // SAFETY: an array is a handle, which is only compared.
    let array = unsafe { Pointer::from_raw(operand.array) };
    let array = *state.textures.array(Id::from(array.required()?))?;
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
