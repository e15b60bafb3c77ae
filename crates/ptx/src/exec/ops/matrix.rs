//! Matrix fragments: the distribution of a matrix's elements over the lanes of a warp.

pub(crate) mod dense;
pub(crate) mod product;
mod quads;
pub(crate) mod registers;
