//! The types of elements.

use bytemuck::Pod;
use num_complex::{Complex32, Complex64};

use crate::routines::{RealRoutines, Routines};

/// The types of elements, with which `unsafe` code calls the functions of the type.
pub(crate) mod sealed {
    /// A type that this crate passes to the functions of cuBLAS. Other crates cannot name it, so
    /// they cannot implement it.
    pub trait Sealed {}
}

/// A type of elements that cuBLAS computes with: `f32`, `f64`, [`Complex32`] and [`Complex64`]. It
/// cannot be implemented for other types.
pub trait Element: sealed::Sealed + Routines + Pod + PartialEq + Send + Sync {
    /// The type of its absolute value.
    type Real: Element;
    #[doc(hidden)]
    const IS_COMPLEX: bool;
    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    const ONE: Self;
}

/// A type of real numbers that cuBLAS computes with: `f32` and `f64`. It cannot be implemented for
/// other types.
pub trait RealElement: Element<Real = Self> + RealRoutines + From<i8> {}

impl RealElement for f32 {}
impl RealElement for f64 {}

macro_rules! element {
    ($($ty:ty: $real:ty, $is_complex:literal, $zero:expr, $one:expr;)*) => {
        $(
            impl sealed::Sealed for $ty {}

            impl Element for $ty {
                type Real = $real;
                const IS_COMPLEX: bool = $is_complex;
                const ZERO: Self = $zero;
                const ONE: Self = $one;
            }
        )*
    };
}

element! {
    f32: f32, false, 0.0, 1.0;
    f64: f64, false, 0.0, 1.0;
    Complex32: f32, true, Complex32::new(0.0, 0.0), Complex32::new(1.0, 0.0);
    Complex64: f64, true, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0);
}
