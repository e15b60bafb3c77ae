//! Building blocks for crates that extend this one.
//!
//! `curium-interop` and `curium-diagnostics` use the items of this module and the following
//! methods:
//!
//! - Segments: [`Resource::segment_changes`](crate::Resource::segment_changes) returns what a
//!   resource has added and removed, and
//!   [`CachingResource::segments`](crate::CachingResource::segments) what it has. A
//!   [`SimulatedCache`] computes them without a device.
//! - Arrays: [`array_descriptor`] describes an array to the driver, and
//!   [`MipmappedArray::from_raw_with_owner`](crate::MipmappedArray::from_raw_with_owner) takes
//!   ownership of one in memory of other code.
//! - Buffers: [`BorrowedBuffer::new`](crate::BorrowedBuffer::new) makes a buffer of memory that
//!   another type owns, and [`LibraryMemory`](crate::LibraryMemory) is the memory of a library's
//!   handle.
//!
//! The rules for operations on streams and for destructors are those of [`curium_driver::extend`].

use curium_driver::Result;
use curium_driver::sys::CUDA_ARRAY3D_DESCRIPTOR;

use crate::array::check_levels;
pub use crate::cache::{GRANULE, SimulatedBlock, SimulatedCache};
use crate::{ArrayFlags, ArrayShape, Texel};

/// Describes a mipmapped array with `levels` levels of elements of type `T` to the driver. `shape`
/// is the shape of level 0.
///
/// # Errors
///
/// An argument error of `operation` for a shape without elements, for 0 levels, and for more levels
/// than the shape allows.
pub fn array_descriptor<T: Texel>(
    operation: &'static str,
    shape: ArrayShape,
    levels: u32,
    flags: ArrayFlags,
) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    check_levels(operation, shape, levels)?;
    Ok(shape.to_raw::<T>(flags))
}
