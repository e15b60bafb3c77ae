//! Views of the same bytes with another element type.

use crate::{AnyBitPattern, NoUninit};
use curium_driver::{DevicePointer, Error, Result};

use super::{DeviceSlice, DeviceView, DeviceViewMut};

impl<T> DeviceSlice<T> {
    /// Reinterprets the bytes as elements of type `U`.
    ///
    /// # Errors
    ///
    /// An argument error if the size is not a multiple of the size of `U`, or the address is
    /// misaligned for `U`.
    pub fn cast<U>(&self) -> Result<DeviceView<'_, U>>
    where
        T: NoUninit,
        U: AnyBitPattern,
    {
        let origin = self.origin();
        let pointer = self.as_pointer().cast();
        let len = elements::<U>(origin.names.cast, pointer.cast(), self.byte_len())?;
        Ok(DeviceView::with_origin(pointer, len, origin.part()))
    }

    /// Reinterprets the bytes as mutable elements of type `U`.
    ///
    /// # Errors
    ///
    /// An argument error if the size is not a multiple of the size of `U`, or the address is
    /// misaligned for `U`.
    pub fn cast_mut<U>(&mut self) -> Result<DeviceViewMut<'_, U>>
    where
        T: NoUninit + AnyBitPattern,
        U: NoUninit + AnyBitPattern,
    {
        let origin = self.origin();
        let pointer = self.as_pointer().cast();
        let len = elements::<U>(origin.names.cast_mut, pointer.cast(), self.byte_len())?;
        Ok(DeviceViewMut::with_origin(pointer, len, origin.part()))
    }

    /// Returns a view of the bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> DeviceView<'_, u8>
    where
        T: NoUninit,
    {
        let pointer = self.as_pointer().cast();
        DeviceView::with_origin(pointer, self.byte_len(), self.origin().part())
    }

    /// Returns a mutable view of the bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes_mut(&mut self) -> DeviceViewMut<'_, u8>
    where
        T: NoUninit + AnyBitPattern,
    {
        let pointer = self.as_pointer().cast();
        DeviceViewMut::with_origin(pointer, self.byte_len(), self.origin().part())
    }
}

/// Returns the number of elements of type `U` in these bytes.
fn elements<U>(operation: &'static str, pointer: DevicePointer<u8>, bytes: usize) -> Result<usize> {
    let name = std::any::type_name::<U>();
    let size = size_of::<U>();
    let align = align_of::<U>();
    if size == 0 {
        return Err(Error::argument(
            operation,
            format!("zero-sized element type ({name})"),
        ));
    }
    if !bytes.is_multiple_of(size) {
        let reason = format!(
            "size mismatch ({bytes} bytes are not a multiple of the {size} bytes of {name})"
        );
        return Err(Error::argument(operation, reason));
    }
    if !pointer.as_raw().is_multiple_of(align as u64) {
        let reason = format!("misaligned address ({pointer:?}, {name} requires alignment {align})");
        return Err(Error::argument(operation, reason));
    }
    Ok(bytes / size)
}
