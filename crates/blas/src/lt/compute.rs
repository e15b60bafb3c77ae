//! The arithmetic of a product.

use std::fmt;

use super::ElementType;
use crate::sys::cublasComputeType_t;

/// The arithmetic of a product: the type in which products are summed, and the rounding of factors.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Compute {
    /// Sums of `f32`.
    F32,
    /// Sums of `f32`, where every step has the precision and the arithmetic of the type.
    F32Pedantic,
    /// Sums of `f32` of factors that may be rounded to TF32.
    Tf32,
    /// Sums of `f32` of factors that may be rounded to `bf16`.
    F32FromBf16,
    /// Sums of `f32` of factors that may be rounded to `f16`.
    F32FromF16,
    /// Sums of `f64`.
    F64,
    /// Sums of `i32`.
    I32,
}

impl Compute {
    const ALL: [Self; 7] = [
        Self::F32,
        Self::F32Pedantic,
        Self::Tf32,
        Self::F32FromBf16,
        Self::F32FromF16,
        Self::F64,
        Self::I32,
    ];

    /// Converts to the library's type.
    #[must_use]
    pub const fn to_raw(self) -> cublasComputeType_t {
        match self {
            Self::F32 => cublasComputeType_t::CUBLAS_COMPUTE_32F,
            Self::F32Pedantic => cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC,
            Self::Tf32 => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            Self::F32FromBf16 => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF,
            Self::F32FromF16 => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16F,
            Self::F64 => cublasComputeType_t::CUBLAS_COMPUTE_64F,
            Self::I32 => cublasComputeType_t::CUBLAS_COMPUTE_32I,
        }
    }

    /// Converts from the library's type; `None` for one that this crate does not use.
    #[must_use]
    pub fn from_raw(raw: cublasComputeType_t) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|compute| compute.to_raw() == raw)
    }

    /// Returns the arithmetic for factors of a type.
    pub(super) const fn for_factor(factor: ElementType) -> Self {
        match factor {
            ElementType::F64 => Self::F64,
            ElementType::I8 => Self::I32,
            _ => Self::F32,
        }
    }

    /// Returns the type of `alpha` and `beta` for results of a type.
    pub(super) const fn scale(self, result: ElementType) -> ElementType {
        match (self, result) {
            (Self::F64, _) => ElementType::F64,
            (Self::I32, ElementType::I32) => ElementType::I32,
            _ => ElementType::F32,
        }
    }

    /// Returns `true` if cuBLASLt multiplies factors of these types to results of a type, with an
    /// addend of another.
    pub(super) fn supports(
        self,
        a: ElementType,
        b: ElementType,
        c: ElementType,
        d: ElementType,
    ) -> bool {
        use ElementType::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32};
        if a.is_fp8() && b.is_fp8() {
            let is_result = match (a, b, d) {
                (F8E5M2, F8E5M2, _) => false,
                (F8E4M3, F8E4M3, F8E5M2) => false,
                (_, _, F8E4M3 | F8E5M2) => matches!(c, Bf16 | F16),
                (_, _, Bf16 | F16 | F32) => c == d,
                _ => false,
            };
            return self == Self::F32 && is_result;
        }
        if a != b || c != d {
            return false;
        }
        match self {
            Self::F32 | Self::F32Pedantic => match a {
                F16 => matches!(d, F16 | F32),
                Bf16 => matches!(d, Bf16 | F32),
                F32 => d == F32,
                _ => false,
            },
            Self::Tf32 | Self::F32FromBf16 | Self::F32FromF16 => (a, d) == (F32, F32),
            Self::F64 => (a, d) == (F64, F64),
            Self::I32 => a == I8 && matches!(d, I8 | I32),
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::F32 => "f32",
            Self::F32Pedantic => "pedantic f32",
            Self::Tf32 => "tf32",
            Self::F32FromBf16 => "f32 from bf16",
            Self::F32FromF16 => "f32 from f16",
            Self::F64 => "f64",
            Self::I32 => "i32",
        })
    }
}
