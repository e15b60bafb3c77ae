//! From a number of elements to a number of bytes.

use curium_driver::{Error, Result};

/// The bytes of `len` elements of type `T`, which must be at least one and fit the address space.
pub(crate) fn bytes<T>(operation: &'static str, len: usize) -> Result<usize> {
    let size = size_of::<T>();
    if len == 0 {
        return Err(Error::argument(operation, "the length is 0"));
    }
    if size == 0 {
        let name = std::any::type_name::<T>();
        return Err(Error::argument(operation, format!("an element of type {name} has no bytes")));
    }
    match len.checked_mul(size).filter(|bytes| isize::try_from(*bytes).is_ok()) {
        Some(bytes) => Ok(bytes),
        None => Err(Error::argument(
            operation,
            format!("{len} elements of {size} bytes are more than the address space holds"),
        )),
    }
}

/// An error unless both sides of a copy have the same number of elements.
pub(crate) fn same_len(operation: &'static str, buffer: usize, other: usize) -> Result<()> {
    if buffer == other {
        return Ok(());
    }
    Err(Error::argument(operation, format!("the buffer has {buffer} elements, and the other side has {other}")))
}
