//! Pitched copies.

use std::ffi::c_void;

use curium_driver::hazard::Operation;
use curium_driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUdeviceptr,
    CUextent3D, CUmemLocation, CUmemcpy3DOperand, CUmemcpy3DOperand_st__bindgen_ty_1,
    CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1, CUmemcpy3DOperandType, CUmemorytype,
};
use curium_driver::{Error, Function, Result, Stream, call};

use super::CopyOptions;
use crate::operand::{Operand, transfer};
use crate::{enqueue, peer_access};

/// A pitched layout in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PitchedLayout {
    /// The width of a row in bytes.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    /// The distance between rows in bytes.
    pub(crate) pitch: usize,
    /// The distance between layers in rows.
    pub(crate) layer: usize,
}

/// A pitched operand in device-accessible memory.
#[derive(Clone, Copy)]
pub(crate) struct PitchedOperand<'a> {
    pub(crate) end: Operand<'a>,
    pub(crate) layout: PitchedLayout,
}

/// The memory of an operand, as the driver's parameters describe it.
#[derive(Clone, Copy)]
enum Side {
    Device(CUdeviceptr),
    Host(*mut c_void),
}

impl PitchedLayout {
    fn extent(&self) -> [usize; 3] {
        [self.width, self.height, self.depth]
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Returns the number of bytes from the first to the last byte, including padding.
    pub(crate) fn span(&self) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        let rows = (self.depth - 1)
            .checked_mul(self.layer)?
            .checked_add(self.height - 1)?;
        rows.checked_mul(self.pitch)?.checked_add(self.width)
    }
}

/// An operand of the driver's parameters.
#[derive(Clone, Copy)]
struct RawOperand<'a> {
    side: Side,
    layout: &'a PitchedLayout,
}

impl<'a> RawOperand<'a> {
    fn device(operand: &'a PitchedOperand<'_>) -> Self {
        Self {
            side: Side::Device(operand.end.address),
            layout: &operand.layout,
        }
    }
}

impl Side {
    fn kind(self) -> CUmemorytype {
        match self {
            Self::Device(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Self::Host(_) => CUmemorytype::CU_MEMORYTYPE_HOST,
        }
    }

    fn device(self) -> CUdeviceptr {
        if let Self::Device(address) = self {
            address
        } else {
            0
        }
    }

    fn host(self) -> *mut c_void {
        if let Self::Host(host) = self {
            host
        } else {
            std::ptr::null_mut()
        }
    }
}

/// Enqueues a pitched copy on a device or between devices.
pub(crate) fn copy(
    operation: Operation<'_>,
    to: &PitchedOperand<'_>,
    from: &PitchedOperand<'_>,
) -> Result<()> {
    same_extent(operation.name(), &to.layout, &from.layout)?;
    if to.layout.is_empty() {
        return Ok(());
    }
    if !to.end.is_near(&from.end) {
        peer_access::connect(to.end.stream().context(), from.end.stream().context())?;
    }
    transfer(operation, &to.end, &from.end, |operation| {
        enqueue(operation, to, from)
    })
}

/// Copies like [`copy`], with hints if the driver supports them and both operands are on the
/// stream's device.
pub(crate) fn copy_with(
    operation: Operation<'_>,
    to: &PitchedOperand<'_>,
    from: &PitchedOperand<'_>,
    options: CopyOptions,
) -> Result<()> {
    let stream = operation.stream();
    same_extent(operation.name(), &to.layout, &from.layout)?;
    let is_single = stream.driver().has(Function::cuMemcpy3DWithAttributesAsync);
    // The legacy default stream does not support batches.
    let takes_options = is_single || takes_batches(stream);
    let is_on_device = to.end.is_at(stream) && from.end.is_at(stream);
    if to.layout.is_empty() || options == CopyOptions::new() || !takes_options || !is_on_device {
        return copy(operation, to, from);
    }
    let mut single = batch_entry(to, from, options);
    let raw = operation.raw_stream();
    let single = &raw mut single;
    transfer(operation, &to.end, &from.end, |_| {
        stream.context().entered(|driver| {
            if is_single {
                // SAFETY: the operation is readable, both operands are live on this stream, which
                // has waited for conflicting accesses, and a context is current.
                return unsafe { call!(driver, cuMemcpy3DWithAttributesAsync(single, 0, raw)) };
            }
            // SAFETY: the operation is readable, both operands are live on this stream, which has
            // waited for conflicting accesses, a context is current, and the array has one entry.
            unsafe { call!(driver, cuMemcpy3DBatchAsync_v2(1, single, 0, raw)) }
        })
    })
}

/// Returns `true` if pitched copies on a stream can be batched.
pub(crate) fn takes_batches(stream: &Stream) -> bool {
    !stream.is_legacy_default()
        && !stream.is_capture_active()
        && stream.driver().has(Function::cuMemcpy3DBatchAsync_v2)
}

/// Enqueues a copy. The operation has waited for conflicting accesses.
pub(crate) fn enqueue(
    operation: &Operation<'_>,
    to: &PitchedOperand<'_>,
    from: &PitchedOperand<'_>,
) -> Result<()> {
    // A pitched copy of another device's memory without its context is an invalid value, or crashes
    // the process if no context is current.
    let is_reached = to.end.is_at(operation.stream()) && from.end.is_at(operation.stream());
    if !is_reached {
        return between_devices(operation, to, from);
    }
    // SAFETY: both operands are checked to be in bounds, and are live on this stream.
    unsafe { enqueue_on_device(operation, RawOperand::device(to), RawOperand::device(from)) }
}

/// Enqueues a copy from the host.
///
/// # Safety
///
/// `from` points to memory with this layout that is not written until the copy has completed; the
/// stream has waited for the accesses that conflict with writing `to`.
pub(crate) unsafe fn from_host(
    operation: &Operation<'_>,
    to: &PitchedOperand<'_>,
    from: *const c_void,
    layout: &PitchedLayout,
) -> Result<()> {
    let source = RawOperand {
        side: Side::Host(from.cast_mut()),
        layout,
    };
    let result = with_context_for(operation, &to.end, || {
        // SAFETY: the caller guarantees the host operand, and the other was checked.
        unsafe { enqueue_on_device(operation, RawOperand::device(to), source) }
    });
    result.map_err(|error| to.end.explain(error))
}

/// Enqueues a copy to the host.
///
/// # Safety
///
/// `to` points to memory with this layout that is not accessed until the copy has completed; the
/// stream has waited for the accesses that conflict with reading `from`.
pub(crate) unsafe fn to_host(
    operation: &Operation<'_>,
    to: *mut c_void,
    layout: &PitchedLayout,
    from: &PitchedOperand<'_>,
) -> Result<()> {
    let target = RawOperand {
        side: Side::Host(to),
        layout,
    };
    let result = with_context_for(operation, &from.end, || {
        // SAFETY: the caller guarantees the host operand, and the other was checked.
        unsafe { enqueue_on_device(operation, target, RawOperand::device(from)) }
    });
    result.map_err(|error| from.end.explain(error))
}

/// Enqueues a copy. Makes its context current if the memory is on another device, since drivers
/// otherwise crash the process.
fn with_context_for(
    operation: &Operation<'_>,
    end: &Operand<'_>,
    enqueue: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if end.is_at(operation.stream()) {
        enqueue()
    } else {
        operation.stream().context().entered(|_| enqueue())
    }
}

/// Enqueues a two- or three-dimensional copy.
///
/// # Safety
///
/// Both operands are in bounds, and are live until the copy has completed.
unsafe fn enqueue_on_device(
    operation: &Operation<'_>,
    to: RawOperand<'_>,
    from: RawOperand<'_>,
) -> Result<()> {
    if to.layout.depth == 1 {
        let copy = two_dimensional(to, from);
        return enqueue::spanning(operation, || {
            // SAFETY: the caller guarantees both operands.
            unsafe {
                call!(
                    operation.driver(),
                    cuMemcpy2DAsync_v2(&raw const copy, operation.raw_stream())
                )
            }
        });
    }
    let copy = three_dimensional(to, from);
    enqueue::spanning(operation, || {
        // SAFETY: the caller guarantees both operands.
        unsafe {
            call!(
                operation.driver(),
                cuMemcpy3DAsync_v2(&raw const copy, operation.raw_stream())
            )
        }
    })
}

fn two_dimensional(to: RawOperand<'_>, from: RawOperand<'_>) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: from.side.kind(),
        srcHost: from.side.host(),
        srcDevice: from.side.device(),
        srcPitch: from.layout.pitch,
        dstMemoryType: to.side.kind(),
        dstHost: to.side.host(),
        dstDevice: to.side.device(),
        dstPitch: to.layout.pitch,
        WidthInBytes: to.layout.width,
        Height: to.layout.height,
        ..CUDA_MEMCPY2D::default()
    }
}

fn three_dimensional(to: RawOperand<'_>, from: RawOperand<'_>) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: from.side.kind(),
        srcHost: from.side.host(),
        srcDevice: from.side.device(),
        srcPitch: from.layout.pitch,
        srcHeight: from.layout.layer,
        dstMemoryType: to.side.kind(),
        dstHost: to.side.host(),
        dstDevice: to.side.device(),
        dstPitch: to.layout.pitch,
        dstHeight: to.layout.layer,
        WidthInBytes: to.layout.width,
        Height: to.layout.height,
        Depth: to.layout.depth,
        ..CUDA_MEMCPY3D::default()
    }
}

fn between_devices(
    operation: &Operation<'_>,
    to: &PitchedOperand<'_>,
    from: &PitchedOperand<'_>,
) -> Result<()> {
    let copy = CUDA_MEMCPY3D_PEER {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from.end.address,
        srcContext: from.end.stream().context().as_raw(),
        srcPitch: from.layout.pitch,
        srcHeight: from.layout.layer,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to.end.address,
        dstContext: to.end.stream().context().as_raw(),
        dstPitch: to.layout.pitch,
        dstHeight: to.layout.layer,
        WidthInBytes: to.layout.width,
        Height: to.layout.height,
        Depth: to.layout.depth,
        ..CUDA_MEMCPY3D_PEER::default()
    };
    // SAFETY: both operands are checked to be in bounds, belong to the given contexts, and are live
    // on this stream.
    unsafe {
        call!(
            operation.driver(),
            cuMemcpy3DPeerAsync(&raw const copy, operation.raw_stream())
        )
    }
}

/// Converts the copy to an entry of a batch.
pub(crate) fn batch_entry(
    to: &PitchedOperand<'_>,
    from: &PitchedOperand<'_>,
    options: CopyOptions,
) -> CUDA_MEMCPY3D_BATCH_OP {
    let hints = options.to_raw();
    CUDA_MEMCPY3D_BATCH_OP {
        src: raw_operand(from, hints.srcLocHint),
        dst: raw_operand(to, hints.dstLocHint),
        extent: CUextent3D {
            width: to.layout.width,
            height: to.layout.height,
            depth: to.layout.depth,
        },
        srcAccessOrder: hints.srcAccessOrder,
        flags: hints.flags,
    }
}

fn raw_operand(operand: &PitchedOperand<'_>, hint: CUmemLocation) -> CUmemcpy3DOperand {
    CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
        op: CUmemcpy3DOperand_st__bindgen_ty_1 {
            ptr: CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1 {
                ptr: operand.end.address,
                rowLength: operand.layout.pitch,
                layerHeight: operand.layout.layer,
                locHint: hint,
            },
        },
    }
}

/// Returns an error unless both operands have the same extent.
pub(crate) fn same_extent(
    operation: &'static str,
    one: &PitchedLayout,
    other: &PitchedLayout,
) -> Result<()> {
    if one.extent() == other.extent() {
        return Ok(());
    }
    let [width, height, depth] = one.extent();
    let [other_width, other_height, other_depth] = other.extent();
    let reason = format!(
        "extent mismatch ({width} × {height} × {depth} and \
         {other_width} × {other_height} × {other_depth} bytes, rows and layers)"
    );
    Err(Error::argument(operation, reason))
}
