//! The types of elements.

use bytemuck::Pod;
use num_complex::{Complex32, Complex64};

use crate::routines::{RealRoutines, Routines};

/// A type of elements that cuBLAS computes with: `f32`, `f64`, [`Complex32`] and [`Complex64`].
pub trait Element: Routines + Pod + PartialEq + Send + Sync {
    /// The type of its absolute value.
    type Real: Element;
    #[doc(hidden)]
    const IS_COMPLEX: bool;
    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    const ONE: Self;
}

/// A type of real numbers that cuBLAS computes with: `f32` and `f64`.
pub trait RealElement: Element<Real = Self> + RealRoutines + From<i8> {}

impl RealElement for f32 {}
impl RealElement for f64 {}

macro_rules! element {
    ($($ty:ty: $real:ty, $is_complex:literal, $zero:expr, $one:expr;)*) => {
        $(
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
