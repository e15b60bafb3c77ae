//! Allocation requests.

use std::borrow::Cow;

use curium_driver::{Error, Result};

/// A valid allocation request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
}

/// The alignment that the driver guarantees for device memory.
pub(crate) const DRIVER_ALIGNMENT: usize = 256;

impl Request {
    /// Validates the request of `operation`: `bytes` must not be 0, and the alignment must be a power of two up to
    /// `largest`.
    pub(crate) fn new(
        operation: &'static str,
        bytes: usize,
        alignment: usize,
        largest: usize,
    ) -> Result<Self> {
        let is_size = bytes != 0 && bytes <= isize::MAX as usize;
        if is_size && alignment.is_power_of_two() && alignment <= largest {
            return Ok(Self { bytes, alignment });
        }
        Err(Self::refused(operation, bytes, alignment, largest))
    }

    #[cold]
    fn refused(operation: &'static str, bytes: usize, alignment: usize, largest: usize) -> Error {
        let reason: Cow<'static, str> = if bytes == 0 {
            "zero size".into()
        } else if isize::try_from(bytes).is_err() {
            format!("size overflow ({bytes} bytes)").into()
        } else if alignment.is_power_of_two() {
            format!("unsupported alignment ({alignment} bytes, at most {largest})").into()
        } else {
            format!("invalid alignment ({alignment} bytes is not a power of two)").into()
        };
        Error::argument(operation, reason)
    }
}
