//! Tensor copies, as tensor maps describe them.
//!
//! Copies work on granules of 16 bytes. A row of a box is a whole number of granules in shared
//! memory, and begins at a multiple of 16 bytes in the tensor. In each granule, the first bytes are
//! therefore inside the tensor, and the rest is beyond its edge.

mod copy;
mod element;
mod map;
mod reduction;
mod swizzle;
mod walk;

pub(crate) use self::copy::run;
pub(crate) use self::reduction::{Location, change, read_bytes, update};
