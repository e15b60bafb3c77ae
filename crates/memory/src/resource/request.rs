//! What is asked of a resource.

use std::borrow::Cow;

use curium_driver::{Error, Result};

/// A request that a resource can meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
}

/// What the driver aligns device memory to at least.
pub(crate) const DRIVER_ALIGNMENT: usize = 256;

impl Request {
    /// The request of `operation`, if `bytes` is not 0 and the alignment is a power of two up to `largest`.
    #[inline]
    pub(crate) fn new(operation: &'static str, bytes: usize, alignment: usize, largest: usize) -> Result<Self> {
        let is_size = bytes != 0 && bytes <= isize::MAX as usize;
        if is_size && alignment.is_power_of_two() && alignment <= largest {
            return Ok(Self { bytes, alignment });
        }
        Err(Self::refused(operation, bytes, alignment, largest))
    }

    #[cold]
    #[inline]
    fn refused(operation: &'static str, bytes: usize, alignment: usize, largest: usize) -> Error {
        let reason: Cow<'static, str> = if bytes == 0 {
            "the size is 0".into()
        } else if isize::try_from(bytes).is_err() {
            format!("{bytes} bytes are more than the address space holds").into()
        } else if alignment.is_power_of_two() {
            format!("an alignment of {alignment} bytes is more than the {largest} that are possible").into()
        } else {
            format!("an alignment of {alignment} bytes is not a power of two").into()
        };
        Error::argument(operation, reason)
    }
}
