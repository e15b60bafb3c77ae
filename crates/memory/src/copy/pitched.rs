//! Pitched copies.

use std::ffi::c_void;

use curium_driver::extend::PASS_THE_SCOPE;
use curium_driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUdeviceptr,
    CUextent3D, CUmemcpy3DOperand, CUmemcpy3DOperand_st__bindgen_ty_1,
    CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1, CUmemcpy3DOperandType, CUmemorytype,
};
use curium_driver::{Error, Function, Result, Stream, call};

use super::{CopyOptions, peer, spanning, transfer};

/// A pitched layout in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
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
pub(crate) struct End<'a> {
    pub(crate) end: super::End<'a>,
    pub(crate) place: Place,
}

/// An operand of the driver's parameters.
#[derive(Clone, Copy)]
enum Side {
    Device(CUdeviceptr),
    Host(*mut c_void),
}

impl Place {
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
    operation: &'static str,
    stream: &Stream,
    to: &End<'_>,
    from: &End<'_>,
) -> Result<()> {
    same_extent(operation, &to.place, &from.place)?;
    stream.expect_captured(operation, PASS_THE_SCOPE)?;
    if to.place.is_empty() {
        return Ok(());
    }
    if !to.end.is_near(&from.end) {
        peer::connect(to.end.stream().context(), from.end.stream().context())?;
    }
    transfer(operation, stream, &to.end, &from.end, || {
        enqueue(stream, to, from)
    })
}

/// Copies like [`copy`], with hints if the driver supports them and both operands are on the stream's device.
pub(crate) fn copy_with(
    name: &'static str,
    stream: &Stream,
    (to, from): (&End<'_>, &End<'_>),
    options: CopyOptions,
) -> Result<()> {
    same_extent(name, &to.place, &from.place)?;
    let is_single = stream.driver().has(Function::cuMemcpy3DWithAttributesAsync);
    // The legacy default stream does not support batches.
    let is_known = is_single || takes_batches(stream);
    let is_here = to.end.is_at(stream) && from.end.is_at(stream);
    if to.place.is_empty() || options == CopyOptions::new() || !is_known || !is_here {
        return copy(name, stream, to, from);
    }
    let (mut single, raw) = (operation(to, from, options), stream.as_raw());
    let single = &raw mut single;
    transfer(name, stream, &to.end, &from.end, || {
        stream.context().entered(|driver| {
            if is_single {
                // SAFETY: the operation is readable, both operands are live on this stream, which has waited for
                // conflicting accesses, and a context is current.
                return unsafe { call!(driver, cuMemcpy3DWithAttributesAsync(single, 0, raw)) };
            }
            // SAFETY: as above, and the array has one entry.
            unsafe { call!(driver, cuMemcpy3DBatchAsync_v2(1, single, 0, raw)) }
        })
    })
}

/// Returns `true` if pitched copies on a stream can be batched.
pub(crate) fn takes_batches(stream: &Stream) -> bool {
    !stream.as_raw().is_null()
        && !stream.is_capture_active()
        && stream.driver().has(Function::cuMemcpy3DBatchAsync_v2)
}

/// Enqueues a copy on `stream`, which has waited for conflicting accesses.
pub(crate) fn enqueue(stream: &Stream, to: &End<'_>, from: &End<'_>) -> Result<()> {
    let sides = (Side::Device(to.end.address), Side::Device(from.end.address));
    // A pitched copy of another device's memory without its context is an invalid value, or crashes the process if no
    // context is current.
    let is_reached = to.end.is_at(stream) && from.end.is_at(stream);
    if !is_reached {
        return between_devices(stream, to, from);
    }
    // SAFETY: both operands are checked to be in bounds, and are live on this stream.
    unsafe { put(stream, (sides.0, &to.place), (sides.1, &from.place)) }
}

/// Enqueues a copy from the host on `stream`.
///
/// # Safety
///
/// `from` points to memory with this layout that is not written until the copy has completed; the stream has waited for
/// the accesses that conflict with writing `to`.
pub(crate) unsafe fn from_host(
    stream: &Stream,
    to: &End<'_>,
    from: *const c_void,
    place: &Place,
) -> Result<()> {
    let (target, source) = (Side::Device(to.end.address), Side::Host(from.cast_mut()));
    let result = at_home(stream, &to.end, || {
        // SAFETY: the caller guarantees the host operand, and the other was checked.
        unsafe { put(stream, (target, &to.place), (source, place)) }
    });
    result.map_err(|error| to.end.explain(error))
}

/// Enqueues a copy to the host on `stream`.
///
/// # Safety
///
/// `to` points to memory with this layout that is not accessed until the copy has completed; the stream has waited for
/// the accesses that conflict with reading `from`.
pub(crate) unsafe fn to_host(
    stream: &Stream,
    to: *mut c_void,
    place: &Place,
    from: &End<'_>,
) -> Result<()> {
    let result = at_home(stream, &from.end, || {
        // SAFETY: the caller guarantees the host operand, and the other was checked.
        unsafe {
            put(
                stream,
                (Side::Host(to), place),
                (Side::Device(from.end.address), &from.place),
            )
        }
    });
    result.map_err(|error| from.end.explain(error))
}

/// Enqueues a copy on `stream`. Makes its context current if the memory is on another device, since drivers otherwise
/// crash the process.
fn at_home(stream: &Stream, end: &super::End<'_>, put: impl FnOnce() -> Result<()>) -> Result<()> {
    if end.is_at(stream) {
        put()
    } else {
        stream.context().entered(|_| put())
    }
}

/// Enqueues a two- or three-dimensional copy on `stream`.
///
/// # Safety
///
/// Both operands are in bounds, and are live until the copy has completed.
unsafe fn put(
    stream: &Stream,
    (to, target): (Side, &Place),
    (from, source): (Side, &Place),
) -> Result<()> {
    if target.depth == 1 {
        let copy = two_dimensional((to, target), (from, source));
        return spanning::enqueue(stream, || {
            // SAFETY: the caller guarantees both operands.
            unsafe {
                call!(
                    stream.driver(),
                    cuMemcpy2DAsync_v2(&raw const copy, stream.as_raw())
                )
            }
        });
    }
    let copy = three_dimensional((to, target), (from, source));
    spanning::enqueue(stream, || {
        // SAFETY: the caller guarantees both operands.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpy3DAsync_v2(&raw const copy, stream.as_raw())
            )
        }
    })
}

fn two_dimensional((to, target): (Side, &Place), (from, source): (Side, &Place)) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: from.kind(),
        srcHost: from.host(),
        srcDevice: from.device(),
        srcPitch: source.pitch,
        dstMemoryType: to.kind(),
        dstHost: to.host(),
        dstDevice: to.device(),
        dstPitch: target.pitch,
        WidthInBytes: target.width,
        Height: target.height,
        ..CUDA_MEMCPY2D::default()
    }
}

fn three_dimensional(
    (to, target): (Side, &Place),
    (from, source): (Side, &Place),
) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: from.kind(),
        srcHost: from.host(),
        srcDevice: from.device(),
        srcPitch: source.pitch,
        srcHeight: source.layer,
        dstMemoryType: to.kind(),
        dstHost: to.host(),
        dstDevice: to.device(),
        dstPitch: target.pitch,
        dstHeight: target.layer,
        WidthInBytes: target.width,
        Height: target.height,
        Depth: target.depth,
        ..CUDA_MEMCPY3D::default()
    }
}

fn between_devices(stream: &Stream, to: &End<'_>, from: &End<'_>) -> Result<()> {
    let copy = CUDA_MEMCPY3D_PEER {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from.end.address,
        srcContext: from.end.stream().context().as_raw(),
        srcPitch: from.place.pitch,
        srcHeight: from.place.layer,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to.end.address,
        dstContext: to.end.stream().context().as_raw(),
        dstPitch: to.place.pitch,
        dstHeight: to.place.layer,
        WidthInBytes: to.place.width,
        Height: to.place.height,
        Depth: to.place.depth,
        ..CUDA_MEMCPY3D_PEER::default()
    };
    // SAFETY: both operands are checked to be in bounds, belong to the given contexts, and are live on this stream.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpy3DPeerAsync(&raw const copy, stream.as_raw())
        )
    }
}

/// Converts the copy to an operation of a batch.
pub(crate) fn operation(
    to: &End<'_>,
    from: &End<'_>,
    options: CopyOptions,
) -> CUDA_MEMCPY3D_BATCH_OP {
    let hints = options.to_raw();
    let operand = |end: &End<'_>, hint| CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
        op: CUmemcpy3DOperand_st__bindgen_ty_1 {
            ptr: CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1 {
                ptr: end.end.address,
                rowLength: end.place.pitch,
                layerHeight: end.place.layer,
                locHint: hint,
            },
        },
    };
    CUDA_MEMCPY3D_BATCH_OP {
        src: operand(from, hints.srcLocHint),
        dst: operand(to, hints.dstLocHint),
        extent: CUextent3D {
            width: to.place.width,
            height: to.place.height,
            depth: to.place.depth,
        },
        srcAccessOrder: hints.srcAccessOrder,
        flags: hints.flags,
    }
}

/// Returns an error unless both operands have the same extent.
pub(crate) fn same_extent(operation: &'static str, one: &Place, other: &Place) -> Result<()> {
    let extent = |place: &Place| (place.width, place.height, place.depth);
    if extent(one) == extent(other) {
        return Ok(());
    }
    let text = |place: &Place| format!("{} × {} × {}", place.width, place.height, place.depth);
    let reason = format!(
        "extent mismatch ({} and {} bytes, rows and layers)",
        text(one),
        text(other)
    );
    Err(Error::argument(operation, reason))
}
