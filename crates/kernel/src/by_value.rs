//! Values that are passed to kernels.

/// A value that is passed to a kernel by value: a scalar, an array of scalars, or a `repr(C)`
/// struct of them.
///
/// ```
/// use curium_kernel::ByValue;
///
/// #[derive(Clone, Copy, ByValue)]
/// #[repr(C)]
/// struct Viewport {
///     width: u32,
///     height: u32,
///     scale: f32,
/// }
/// ```
///
/// On the host, the derive also implements `curium::driver::ByValue`, so that the same struct is an
/// argument of kernels in CUDA C++ and PTX (`kernels!`).
///
/// # Safety
///
/// - The type is `repr(C)` or `repr(transparent)` and has no padding.
/// - It contains no references, no pointers and no interior mutability.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    label = "not a `ByValue` type",
    note = "numbers, `bool` and arrays of them are `ByValue`",
    note = "for a struct of such fields, add `#[derive(Clone, Copy, ByValue)]` and `#[repr(C)]`"
)]
pub unsafe trait ByValue: Copy + Send + Sync {
    /// The size of all fields in bytes, for derived implementations.
    #[doc(hidden)]
    const SIZE_OF_FIELDS: usize = size_of::<Self>();

    /// The size of the type in bytes. Evaluating this constant fails to compile if the type has
    /// padding.
    #[doc(hidden)]
    const SIZE: usize = {
        assert!(
            size_of::<Self>() == Self::SIZE_OF_FIELDS,
            "the type has padding, whose bytes are uninitialized: declare fields for it"
        );
        size_of::<Self>()
    };

    /// A number for the types of all fields, in order. Host and device compare it, because types of
    /// one size can have different values.
    #[doc(hidden)]
    const FORM: u64 = size_of::<Self>() as u64;
}

// The trait is not the driver's: `impl Parameter for &[T]` needs a trait of this crate, which no
// other crate can implement for slices.

macro_rules! by_value {
    ($($ty:ty = $form:literal)*) => {
        $(
            // SAFETY: a scalar.
            unsafe impl ByValue for $ty {
                const FORM: u64 = $form;
            }
        )*
    };
}

by_value!(bool = 0x101 u8 = 0x102 i8 = 0x103 u16 = 0x104 i16 = 0x105 u32 = 0x106 i32 = 0x107 f32 = 0x108);
by_value!(u64 = 0x109 i64 = 0x10a usize = 0x10b isize = 0x10c f64 = 0x10d);

// SAFETY: an array has no padding between its elements.
unsafe impl<T: ByValue, const N: usize> ByValue for [T; N] {
    const SIZE_OF_FIELDS: usize = N * T::SIZE;
    const FORM: u64 = (T::FORM ^ (N as u64).rotate_left(32)).wrapping_mul(0x0000_0100_0000_01b3);
}

#[cfg(test)]
mod tests {
    use crate::parameter::Parameter;

    #[derive(Clone, Copy, curium_macros::KernelByValue)]
    #[repr(C)]
    struct Numbers {
        first: u8,
        second: u8,
    }

    #[derive(Clone, Copy, curium_macros::KernelByValue)]
    #[repr(C)]
    struct NumberAndFlag {
        first: u8,
        second: bool,
    }

    #[derive(Clone, Copy, curium_macros::KernelByValue)]
    #[repr(C)]
    struct FlagAndNumber {
        first: bool,
        second: u8,
    }

    /// Host and device have different tables if a field of one size has another type or place.
    #[test]
    fn fields_of_values_are_compared() {
        let numbers = <Numbers as Parameter>::DESCRIPTION.extents();
        let flag_last = <NumberAndFlag as Parameter>::DESCRIPTION.extents();
        let flag_first = <FlagAndNumber as Parameter>::DESCRIPTION.extents();
        assert_ne!(numbers, flag_last);
        assert_ne!(flag_last, flag_first);
        assert_ne!(
            <[u8; 4] as Parameter>::DESCRIPTION.extents(),
            <[[u8; 2]; 2] as Parameter>::DESCRIPTION.extents()
        );
        assert_ne!(
            <[bool; 4] as Parameter>::DESCRIPTION.extents(),
            <[u8; 4] as Parameter>::DESCRIPTION.extents()
        );
    }
}
