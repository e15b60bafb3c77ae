//! Checked sizes, alignments and ranges.

use std::borrow::Cow;
use std::ops::{Bound, Range, RangeBounds};

use curium_driver::{Error, Result};

/// A valid allocation request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
}

/// The alignment that the driver guarantees for device memory.
pub(crate) const DRIVER_ALIGNMENT: usize = 256;

/// Returns the size of `len` elements of type `T` in bytes, or an error if it is 0 or exceeds the
/// address space.
pub(crate) fn bytes<T>(operation: &'static str, len: usize) -> Result<usize> {
    let size = size_of::<T>();
    if len == 0 {
        return Err(Error::argument(
            operation,
            "zero length; handle empty input before the call",
        ));
    }
    if size == 0 {
        let name = std::any::type_name::<T>();
        return Err(Error::argument(
            operation,
            format!("zero-sized element type ({name})"),
        ));
    }
    match len
        .checked_mul(size)
        .filter(|bytes| isize::try_from(*bytes).is_ok())
    {
        Some(bytes) => Ok(bytes),
        None => Err(Error::argument(
            operation,
            format!("size overflow ({len} elements of {size} bytes)"),
        )),
    }
}

/// Returns an error unless both operands of a copy have the same number of elements.
pub(crate) fn same_len(operation: &'static str, buffer: usize, other: usize) -> Result<()> {
    if buffer == other {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!(
            "length mismatch (the buffer has {buffer} elements, the other operand has {other})"
        ),
    ))
}

/// Returns the resolved range if it is within `len` elements.
pub(crate) fn range(
    operation: &'static str,
    len: usize,
    range: impl RangeBounds<usize>,
) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok(start..end),
        (start, end) => {
            let start = start.unwrap_or(usize::MAX);
            let end = end.unwrap_or(usize::MAX);
            Err(Error::argument(
                operation,
                format!("range out of bounds ({start}..{end} of {len} elements)"),
            ))
        }
    }
}

/// Returns an error unless `middle` is within `len` elements.
pub(crate) fn split(operation: &'static str, len: usize, middle: usize) -> Result<()> {
    if middle <= len {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("split index out of bounds ({middle} of {len} elements)"),
    ))
}

/// Returns an error unless `index` is within `len` elements.
pub(crate) fn index(operation: &'static str, len: usize, index: usize) -> Result<()> {
    if index < len {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("index out of bounds ({index} of {len} elements)"),
    ))
}

/// Returns an error if the length of a chunk is 0.
pub(crate) fn chunk(operation: &'static str, len: usize) -> Result<()> {
    if len == 0 {
        Err(Error::argument(operation, "zero chunk length"))
    } else {
        Ok(())
    }
}

/// Returns an error unless `address` is aligned for elements of type `T`.
pub(crate) fn aligned<T>(operation: &'static str, address: u64) -> Result<()> {
    let align = align_of::<T>();
    if address.is_multiple_of(align as u64) {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("misaligned address ({address:#x}, alignment {align})"),
    ))
}

impl Request {
    /// Validates the request of `operation`: `bytes` must not be 0, and the alignment must be a
    /// power of two up to `largest`.
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
