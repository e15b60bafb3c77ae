//! Views of the same bytes with another element type.

use crate::{AnyBitPattern, NoUninit};
use curium_driver::{DevicePointer, Error, Result};

use super::{DeviceSlice, DeviceSliceMut};

impl<'a, T> DeviceSlice<'a, T> {
    /// Reinterprets the bytes as elements of type `U`.
    ///
    /// # Errors
    ///
    /// An argument error if the size is not a multiple of the size of `U`, or the address is misaligned for `U`.
    pub fn cast<U>(self) -> Result<DeviceSlice<'a, U>>
    where
        T: NoUninit,
        U: AnyBitPattern,
    {
        let len = elements::<U>("DeviceSlice::cast", self.pointer.cast(), self.byte_len())?;
        Ok(DeviceSlice::new(self.pointer.cast(), len, self.tracked))
    }

    /// Returns a view of the bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(self) -> DeviceSlice<'a, u8>
    where
        T: NoUninit,
    {
        DeviceSlice::new(self.pointer.cast(), self.byte_len(), self.tracked)
    }
}

impl<'a, T> DeviceSliceMut<'a, T> {
    /// Reinterprets the bytes as elements of type `U`. To keep this view, call [`DeviceSliceMut::reborrow`] first.
    ///
    /// # Errors
    ///
    /// An argument error if the size is not a multiple of the size of `U`, or the address is misaligned for `U`.
    pub fn cast<U>(self) -> Result<DeviceSliceMut<'a, U>>
    where
        T: NoUninit + AnyBitPattern,
        U: NoUninit + AnyBitPattern,
    {
        let len = elements::<U>(
            "DeviceSliceMut::cast",
            self.as_pointer().cast(),
            self.byte_len(),
        )?;
        Ok(DeviceSliceMut::new(
            self.as_pointer().cast(),
            len,
            self.tracked(),
        ))
    }

    /// Returns a view of the bytes. To keep this view, call [`DeviceSliceMut::reborrow`] first.
    #[must_use]
    #[inline]
    pub fn into_bytes(self) -> DeviceSliceMut<'a, u8>
    where
        T: NoUninit + AnyBitPattern,
    {
        DeviceSliceMut::new(self.as_pointer().cast(), self.byte_len(), self.tracked())
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
