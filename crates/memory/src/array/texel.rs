//! What an element of an array is.

use std::fmt;

use bytemuck::{AnyBitPattern, NoUninit};
use curium_driver::sys::CUarray_format;

/// The format of an array's elements: the type of a component, and how many there are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayFormat {
    /// The type of a component, as C names it.
    pub component: CUarray_format,
    /// The number of components: 1, 2 or 4.
    pub channels: u32,
}

/// An element of an array: a number, or two or four numbers side by side.
///
/// # Safety
///
/// The type has the size and the layout of [`Texel::FORMAT`].
pub unsafe trait Texel: AnyBitPattern + NoUninit + Send + Sync {
    /// Its format.
    const FORMAT: ArrayFormat;
}

macro_rules! texels {
    ($($ty:ty: $component:ident),*) => {$(
        // SAFETY: the component is of this type.
        unsafe impl Texel for $ty {
            const FORMAT: ArrayFormat = ArrayFormat { component: CUarray_format::$component, channels: 1 };
        }
        // SAFETY: two components side by side.
        unsafe impl Texel for [$ty; 2] {
            const FORMAT: ArrayFormat = ArrayFormat { component: CUarray_format::$component, channels: 2 };
        }
        // SAFETY: four components side by side.
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
    f32: CU_AD_FORMAT_FLOAT,
    Half: CU_AD_FORMAT_HALF
}

/// A floating-point number of 16 bits, by its bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(transparent)]
pub struct Half(pub u16);

// SAFETY: all bits of a `u16` are a value.
unsafe impl bytemuck::Zeroable for Half {}
// SAFETY: it is `repr(transparent)` over `u16`, which is plain data.
unsafe impl bytemuck::Pod for Half {}

impl fmt::Display for ArrayFormat {
    #[inline]
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
            CUarray_format(other) => return write!(formatter, "format {other} with {} channels", self.channels),
        };
        write!(formatter, "{} × {component}", self.channels)
    }
}
