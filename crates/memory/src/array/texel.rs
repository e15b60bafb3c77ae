//! Array elements.

use std::fmt;

use crate::{AnyBitPattern, NoUninit};
use curium_driver::sys::CUarray_format;

/// The format of an array's elements: the type and the number of components.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayFormat {
    /// The component type.
    pub component: CUarray_format,
    /// The number of components: 1, 2 or 4.
    pub channels: u32,
}

/// An array element (texel): a scalar, or a vector of two or four scalars. With the feature `half`,
/// `half::f16` is a scalar.
///
/// # Safety
///
/// The type has the size and layout of [`Texel::FORMAT`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a texel format",
    label = "an array cannot hold elements of this type",
    note = "texels are `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32`, `half::f16` (feature `half`), and arrays of 2 or 4 of them"
)]
pub unsafe trait Texel: AnyBitPattern + NoUninit + Send + Sync {
    /// The format.
    const FORMAT: ArrayFormat;
}

macro_rules! texels {
    ($($ty:ty: $component:ident),*) => {$(
        // SAFETY: the scalar has this type.
        unsafe impl Texel for $ty {
            const FORMAT: ArrayFormat = ArrayFormat { component: CUarray_format::$component, channels: 1 };
        }
        // SAFETY: two adjacent scalars.
        unsafe impl Texel for [$ty; 2] {
            const FORMAT: ArrayFormat = ArrayFormat { component: CUarray_format::$component, channels: 2 };
        }
        // SAFETY: four adjacent scalars.
        unsafe impl Texel for [$ty; 4] {
            const FORMAT: ArrayFormat = ArrayFormat { component: CUarray_format::$component, channels: 4 };
        }
    )*};
}

texels! {
    u8: CU_AD_FORMAT_UNSIGNED_INT8,
    u16: CU_AD_FORMAT_UNSIGNED_INT16,
    u32: CU_AD_FORMAT_UNSIGNED_INT32,
    i8: CU_AD_FORMAT_SIGNED_INT8,
    i16: CU_AD_FORMAT_SIGNED_INT16,
    i32: CU_AD_FORMAT_SIGNED_INT32,
    f32: CU_AD_FORMAT_FLOAT
}

#[cfg(feature = "half")]
texels! { half::f16: CU_AD_FORMAT_HALF }

impl fmt::Display for ArrayFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let component = match self.component {
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 => "u8",
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16 => "u16",
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 => "u32",
            CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => "i8",
            CUarray_format::CU_AD_FORMAT_SIGNED_INT16 => "i16",
            CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => "i32",
            CUarray_format::CU_AD_FORMAT_HALF => "f16",
            CUarray_format::CU_AD_FORMAT_FLOAT => "f32",
            CUarray_format(other) => {
                return write!(formatter, "format {other} with {} channels", self.channels);
            }
        };
        write!(formatter, "{} × {component}", self.channels)
    }
}
