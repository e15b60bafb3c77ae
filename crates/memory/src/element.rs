//! The element types of memory, by what may be done with them.
//!
//! The traits are those of [`bytemuck`], under the same names. They exist for the message of the
//! compiler, which names the derive macro: the message of a foreign trait cannot be chosen. Each is
//! implemented exactly for the types that implement the trait of `bytemuck`.

/// A type without padding or uninitialized bytes, which can be copied to a device.
///
/// Implemented for every type that implements [`bytemuck::NoUninit`], and for no other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied to a device: it may contain padding, a pointer or a reference",
    label = "not an element type that can be copied to a device",
    note = "for a struct without padding, add `#[repr(C)]` and `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]`",
    note = "for an enum without fields, derive `bytemuck::NoUninit`"
)]
pub trait NoUninit: bytemuck::NoUninit {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::NoUninit> NoUninit for T {}

/// A type that is valid for every bit pattern, which can be copied from a device: a kernel may
/// write any bytes.
///
/// Implemented for every type that implements [`bytemuck::AnyBitPattern`], and for no other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a device: a kernel may write bytes that are not a valid `{Self}`",
    label = "not valid for every bit pattern",
    note = "for a struct of numbers, add `#[repr(C)]` and `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]`",
    note = "read `bool`, `char` and enums as integers (`DeviceSlice::cast`), and convert them with `bytemuck::checked`"
)]
pub trait AnyBitPattern: bytemuck::AnyBitPattern {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::AnyBitPattern> AnyBitPattern for T {}

/// A type for which zero bytes are a valid value, so that memory can be zeroed.
///
/// Implemented for every type that implements [`bytemuck::Zeroable`], and for no other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be zeroed: zero bytes may not be a valid `{Self}`",
    label = "not valid when zeroed",
    note = "if zero bytes are a valid value, derive `bytemuck::Zeroable`"
)]
pub trait Zeroable: bytemuck::Zeroable {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::Zeroable> Zeroable for T {}
