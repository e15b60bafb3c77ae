//! Vectors, which one instruction loads or stores.

use core::ops::{Add, AddAssign, Mul, Sub};

use bytemuck::{Pod, Zeroable};

macro_rules! vector {
    ($(#[$attribute:meta])* $name:ident, $number:ty, $align:literal, $($field:ident)*) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($align))]
        #[allow(missing_docs, reason = "the components of a vector")]
        pub struct $name {
            $(pub $field: $number,)*
        }

        // SAFETY: numbers, for which zeros are a value.
        unsafe impl Zeroable for $name {}
        // SAFETY: numbers without padding, because the alignment is their size.
        unsafe impl Pod for $name {}
        // SAFETY: numbers without padding, because the alignment is their size.
        unsafe impl crate::ByValue for $name {}
        // SAFETY: numbers without padding, because the alignment is their size, which is that of
        // the vector in CUDA C++.
        #[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
        unsafe impl curium_driver::ByValue for $name {}

        impl $name {
            /// Creates a vector.
            #[inline(always)]
            #[must_use]
            pub const fn new($($field: $number),*) -> Self {
                Self { $($field),* }
            }

            /// Applies a function to each component.
            #[inline(always)]
            #[must_use]
            pub fn map(self, code: impl Fn($number) -> $number) -> Self {
                Self { $($field: code(self.$field)),* }
            }

            /// Applies a function to each pair of components.
            #[inline(always)]
            #[must_use]
            pub fn zip(self, other: Self, code: impl Fn($number, $number) -> $number) -> Self {
                Self { $($field: code(self.$field, other.$field)),* }
            }
        }

        impl Add for $name {
            type Output = Self;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field),* }
            }
        }

        impl AddAssign for $name {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self { $($field: self.$field - other.$field),* }
            }
        }

        impl Mul<$number> for $name {
            type Output = Self;

            #[inline(always)]
            fn mul(self, factor: $number) -> Self {
                Self { $($field: self.$field * factor),* }
            }
        }
    };
}

vector! {
    /// Two `f32` (CUDA's `float2`).
    F32x2, f32, 8, x y
}
vector! {
    /// Four `f32` (CUDA's `float4`).
    F32x4, f32, 16, x y z w
}
vector! {
    /// Two `f64` (CUDA's `double2`).
    F64x2, f64, 16, x y
}
vector! {
    /// Two `u32` (CUDA's `uint2`).
    U32x2, u32, 8, x y
}
vector! {
    /// Four `u32` (CUDA's `uint4`).
    U32x4, u32, 16, x y z w
}
