//! The types of elements, and their matrix product.

use std::ops::AddAssign;

use bytemuck::Pod;
use matrixmultiply::{CGemmOption, cgemm, dgemm, sgemm, zgemm};
use num_complex::{Complex32, Complex64, ComplexFloat};

/// A type of elements.
pub(super) trait Number:
    ComplexFloat<Real = <Self as Number>::Absolute> + Pod + AddAssign + Send + Sync + 'static
{
    /// The type of its absolute value.
    type Absolute: Number + PartialOrd;

    fn from_real(value: Self::Absolute) -> Self;

    /// Returns the product of an m × k and a k × n matrix, all by columns.
    fn product(a: &[Self], b: &[Self], m: usize, k: usize, n: usize) -> Vec<Self>;
}

macro_rules! real {
    ($ty:ty, $gemm:ident) => {
        impl Number for $ty {
            type Absolute = Self;

            fn from_real(value: Self) -> Self {
                value
            }

            fn product(a: &[Self], b: &[Self], m: usize, k: usize, n: usize) -> Vec<Self> {
                assert!(
                    a.len() == m * k && b.len() == k * n,
                    "the matrices have these sizes"
                );
                let mut c = vec![0.0; m * n];
                let rows = m as isize;
                let inner = k as isize;
                // SAFETY: the matrices have these sizes, and `c` is apart from the factors.
                unsafe {
                    $gemm(
                        m,
                        k,
                        n,
                        1.0,
                        a.as_ptr(),
                        1,
                        rows,
                        b.as_ptr(),
                        1,
                        inner,
                        0.0,
                        c.as_mut_ptr(),
                        1,
                        rows,
                    );
                }
                c
            }
        }
    };
}

macro_rules! complex {
    ($ty:ty, $real:ty, $gemm:ident) => {
        impl Number for $ty {
            type Absolute = $real;

            fn from_real(value: $real) -> Self {
                Self::new(value, 0.0)
            }

            fn product(a: &[Self], b: &[Self], m: usize, k: usize, n: usize) -> Vec<Self> {
                assert!(
                    a.len() == m * k && b.len() == k * n,
                    "the matrices have these sizes"
                );
                let mut c = vec![Self::new(0.0, 0.0); m * n];
                let rows = m as isize;
                let inner = k as isize;
                let standard = CGemmOption::Standard;
                let a = a.as_ptr().cast();
                let b = b.as_ptr().cast();
                let to = c.as_mut_ptr().cast();
                // SAFETY: the matrices have these sizes, `c` is apart from the factors, and a
                // complex number is two real ones.
                unsafe {
                    $gemm(
                        standard,
                        standard,
                        m,
                        k,
                        n,
                        [1.0, 0.0],
                        a,
                        1,
                        rows,
                        b,
                        1,
                        inner,
                        [0.0, 0.0],
                        to,
                        1,
                        rows,
                    );
                }
                c
            }
        }
    };
}

real!(f32, sgemm);
real!(f64, dgemm);
complex!(Complex32, f32, cgemm);
complex!(Complex64, f64, zgemm);
