//! Copies of operands, which slices, buffers, arrays and batches are made of.

pub(crate) mod device;
pub(crate) mod host;
mod options;
pub(crate) mod peer;
pub(crate) mod pitched;

pub use self::options::CopyOptions;
