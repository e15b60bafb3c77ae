//! The types of elements of matrices.

use std::fmt;

use bytemuck::Pod;

use crate::sys::cudaDataType_t;

/// The type of the elements of a matrix.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ElementType {
    /// `f64`.
    F64,
    /// `f32`.
    F32,
    /// `half::f16`.
    F16,
    /// `half::bf16`.
    Bf16,
    /// `float8::F8E4M3`: 8 bits with 4 of exponent and 3 of fraction.
    F8E4M3,
    /// `float8::F8E5M2`: 8 bits with 5 of exponent and 2 of fraction.
    F8E5M2,
    /// `i8`.
    I8,
    /// `i32`.
    I32,
    /// `u8`: the bytes of a workspace, or of a mask with one bit for each element.
    U8,
}

/// A type of elements of matrices for cuBLASLt: `f32`, `f64`, `i8`, `i32`, `half::f16` and
/// `half::bf16` (feature `half`), and `float8::F8E4M3` and `float8::F8E5M2` (feature `float8`).
/// Workspaces and masks consist of `u8`. It cannot be implemented for other types.
pub trait MatmulElement: sealed::Sealed + Pod {
    /// The type.
    const TYPE: ElementType;
}

mod sealed {
    /// A type with the layout of its [`ElementType`](super::ElementType). Other crates cannot name
    /// it, so they cannot implement it.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($(#[$attribute:meta])* $ty:ty => $name:ident;)*) => {
        $(
            $(#[$attribute])*
            impl sealed::Sealed for $ty {}

            $(#[$attribute])*
            impl MatmulElement for $ty {
                const TYPE: ElementType = ElementType::$name;
            }
        )*
    };
}

elements! {
    f64 => F64;
    f32 => F32;
    i8 => I8;
    i32 => I32;
    u8 => U8;
    #[cfg(feature = "half")]
    half::f16 => F16;
    #[cfg(feature = "half")]
    half::bf16 => Bf16;
    #[cfg(feature = "float8")]
    float8::F8E4M3 => F8E4M3;
    #[cfg(feature = "float8")]
    float8::F8E5M2 => F8E5M2;
}

impl ElementType {
    const ALL: [Self; 9] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::I8,
        Self::I32,
        Self::U8,
    ];

    /// Converts to the library's type.
    #[must_use]
    pub const fn to_raw(self) -> cudaDataType_t {
        match self {
            Self::F64 => cudaDataType_t::CUDA_R_64F,
            Self::F32 => cudaDataType_t::CUDA_R_32F,
            Self::F16 => cudaDataType_t::CUDA_R_16F,
            Self::Bf16 => cudaDataType_t::CUDA_R_16BF,
            Self::F8E4M3 => cudaDataType_t::CUDA_R_8F_E4M3,
            Self::F8E5M2 => cudaDataType_t::CUDA_R_8F_E5M2,
            Self::I8 => cudaDataType_t::CUDA_R_8I,
            Self::I32 => cudaDataType_t::CUDA_R_32I,
            Self::U8 => cudaDataType_t::CUDA_R_8U,
        }
    }

    /// Converts from the library's type; `None` for one that this crate does not use.
    #[must_use]
    pub fn from_raw(raw: cudaDataType_t) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.to_raw() == raw)
    }

    /// Returns the size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::I8 | Self::U8 => 1,
        }
    }

    /// Returns `true` for the two 8-bit floating-point types.
    #[must_use]
    pub const fn is_fp8(self) -> bool {
        matches!(self, Self::F8E4M3 | Self::F8E5M2)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F8E4M3 => "e4m3",
            Self::F8E5M2 => "e5m2",
            Self::I8 => "i8",
            Self::I32 => "i32",
            Self::U8 => "u8",
        })
    }
}
