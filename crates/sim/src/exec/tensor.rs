//! Copies of parts of tensors, as maps of them say.
//!
//! Everything goes by granules of 16 bytes: a row of a box is whole ones in shared memory, and begins at a multiple of 16 bytes in the
//! tensor, so that of each granule the first bytes are inside of the tensor and the rest is beyond its edge.

mod copy;
mod element;
mod map;
mod reduction;
mod swizzle;
mod walk;

pub(crate) use self::copy::{Mode, TensorAccess, Way, run};
pub(crate) use self::reduction::{Change, change, read_bytes, update};
