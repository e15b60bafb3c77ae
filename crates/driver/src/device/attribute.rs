//! Device attributes, each with the type of its value.

mod list;
mod value;

use std::fmt;
use std::marker::PhantomData;

use curium_sys::CUdevice_attribute;

pub use self::value::{
    ComputeMode, DecompressAlgorithms, EndpointHandleTypes, MemoryHandleTypes, NumaConfig,
    RdmaFlushOptions, RdmaWritesOrdering,
};

/// A device attribute whose value is a `T`: the argument of
/// [`Device::attribute`](crate::Device::attribute).
///
/// The attributes are constants of this type, named as in CUDA without the prefix
/// `CU_DEVICE_ATTRIBUTE_`. Query an attribute that this version of Curium does not define by its
/// [`CUdevice_attribute`].
///
/// ```no_run
/// use curium_driver::{Device, DeviceAttribute};
///
/// let device = Device::first()?;
/// let warp: u32 = device.attribute(DeviceAttribute::WARP_SIZE)?;
/// let clusters: bool = device.attribute(DeviceAttribute::CLUSTER_LAUNCH)?;
/// # Ok::<(), curium_driver::Error>(())
/// ```
pub struct DeviceAttribute<T = ()> {
    raw: CUdevice_attribute,
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

/// The argument of [`Device::attribute`](crate::Device::attribute): a [`DeviceAttribute`] or a raw
/// [`CUdevice_attribute`]. It cannot be implemented for other types.
pub trait AttributeKey: sealed::Sealed + Copy {
    /// The type of the attribute's value.
    type Value;

    /// Returns the raw attribute.
    fn raw(self) -> CUdevice_attribute;

    /// Returns CUDA's name of the attribute without its prefix, if it is defined here.
    fn name(self) -> Option<&'static str>;

    /// Converts the value that the driver returned.
    fn value(self, raw: i32) -> Self::Value;
}

mod sealed {
    pub trait Sealed {}
}

/// The type of an attribute's value. A closed set.
pub(crate) trait AttributeValue {
    fn from_raw(raw: i32) -> Self;
}

impl<T> DeviceAttribute<T> {
    /// Returns the raw attribute.
    #[must_use]
    pub const fn as_raw(self) -> CUdevice_attribute {
        self.raw
    }

    /// Returns CUDA's name of the attribute without its prefix, such as `WARP_SIZE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<T> sealed::Sealed for DeviceAttribute<T> {}

impl<T: AttributeValue> AttributeKey for DeviceAttribute<T> {
    type Value = T;

    fn raw(self) -> CUdevice_attribute {
        self.raw
    }

    fn name(self) -> Option<&'static str> {
        Some(self.name)
    }

    fn value(self, raw: i32) -> T {
        T::from_raw(raw)
    }
}

impl sealed::Sealed for CUdevice_attribute {}

impl AttributeKey for CUdevice_attribute {
    type Value = i32;

    fn raw(self) -> CUdevice_attribute {
        self
    }

    fn name(self) -> Option<&'static str> {
        DeviceAttribute::ALL
            .iter()
            .find(|attribute| attribute.as_raw() == self)
            .map(|attribute| attribute.name)
    }

    fn value(self, raw: i32) -> i32 {
        raw
    }
}

impl<T> Clone for DeviceAttribute<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceAttribute<T> {}

impl<T> fmt::Debug for DeviceAttribute<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeviceAttribute({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A newer header extends the range of attributes; this test lists those that are missing here.
    #[test]
    fn list_contains_each_header_number_once() {
        let listed: Vec<u32> = DeviceAttribute::ALL
            .iter()
            .map(|attribute| attribute.as_raw().0)
            .collect();
        let distinct: BTreeSet<u32> = listed.iter().copied().collect();
        assert_eq!(distinct.len(), listed.len(), "a number is listed twice");
        let expected: BTreeSet<u32> = (1..CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX.0).collect();
        let missing: Vec<&u32> = expected.difference(&distinct).collect();
        assert!(missing.is_empty(), "the list lacks {missing:?}");
        assert_eq!(distinct, expected);
    }

    #[test]
    fn listed_number_has_its_name() {
        assert_eq!(
            AttributeKey::name(CUdevice_attribute(10)),
            Some("WARP_SIZE")
        );
        assert_eq!(AttributeKey::name(CUdevice_attribute(100_000)), None);
    }
}
