//! Types of matrices, and their content.

use bytemuck::Pod;
use curium_blas::lt::{Compute, ElementType, MatmulElement};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use float8::F8E4M3;
use half::bf16;

use crate::Result;

/// The types of a product, and its arithmetic.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) factor: ElementType,
    pub(crate) result: ElementType,
    pub(crate) compute: Compute,
}

impl Kind {
    pub(crate) const fn new<T: MatmulElement, D: MatmulElement>(
        name: &'static str,
        compute: Compute,
    ) -> Self {
        Self {
            name,
            factor: T::TYPE,
            result: D::TYPE,
            compute,
        }
    }

    /// Returns the type of `alpha` and `beta`.
    pub(crate) fn scale(&self) -> ElementType {
        if self.compute == Compute::F64 {
            ElementType::F64
        } else {
            ElementType::F32
        }
    }
}

/// A type of elements that is converted from and to `f64`.
pub(crate) trait Number: MatmulElement {
    fn from_f64(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ty: $of:expr;)*) => {
        $(
            impl Number for $ty {
                fn from_f64(value: f64) -> Self {
                    $of(value)
                }

                fn value(self) -> f64 {
                    self.into()
                }
            }
        )*
    };
}

numbers! {
    f64: |value| value;
    f32: |value| value as f32;
    bf16: bf16::from_f64;
    F8E4M3: F8E4M3::from_f64;
}

/// The number of elements after which the content repeats. It has no common divisor with the sizes
/// of matrices.
const PERIOD: usize = (1 << 20) + 7;

/// Creates a matrix of random numbers between -1 and 1: the power of a product, and thereby its
/// clock, depends on the numbers.
pub(crate) fn random<T: Number + Pod>(
    stream: &Stream,
    len: usize,
    seed: u64,
) -> Result<DeviceBuffer<T>> {
    let mut state = seed;
    let numbers: Vec<T> = (0..len.min(PERIOD))
        .map(|_| T::from_f64(next(&mut state)))
        .collect();
    let pattern = DeviceBuffer::from_slice(stream, &numbers)?;
    let mut matrix = DeviceBuffer::uninit(stream, len)?;
    for begin in (0..len).step_by(PERIOD) {
        let count = PERIOD.min(len - begin);
        matrix
            .slice_mut(begin..begin + count)?
            .copy_from_device(&pattern.slice(..count)?)?;
    }
    Ok(matrix)
}

/// Returns the next number between -1 and 1 of SplitMix64.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as f64 / 2.0_f64.powi(63) - 1.0
}
