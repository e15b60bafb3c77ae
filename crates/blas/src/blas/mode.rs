//! The arithmetic of a handle.

use curium_sys::library_call as call;

use crate::Blas;
use crate::error::Result;
use crate::sys::{cublasAtomicsMode_t, cublasMath_t};

/// The arithmetic of matrix products.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MathMode {
    /// The library chooses the fastest arithmetic with the precision of the type.
    #[default]
    Default,
    /// Every step has the precision and the arithmetic of the type.
    Pedantic,
    /// Products of `f32` may round their factors to TF32.
    Tf32,
}

impl MathMode {
    /// Converts to the library's type.
    #[must_use]
    pub const fn to_raw(self) -> cublasMath_t {
        match self {
            Self::Default => cublasMath_t::CUBLAS_DEFAULT_MATH,
            Self::Pedantic => cublasMath_t::CUBLAS_PEDANTIC_MATH,
            Self::Tf32 => cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH,
        }
    }
}

impl Blas {
    /// Sets the arithmetic of later matrix products.
    ///
    /// CUDA: `cublasSetMathMode`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasSetMathMode")]
    pub fn set_math_mode(&mut self, mode: MathMode) -> Result<()> {
        // SAFETY: the handle is live, and its context is current.
        self.configure(|api, raw| unsafe { call!(api, cublasSetMathMode(raw, mode.to_raw())) })
    }

    /// Allows or forbids the use of atomics in later operations, which is faster but makes results
    /// differ between runs. Forbidden by default.
    ///
    /// CUDA: `cublasSetAtomicsMode`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasSetAtomicsMode")]
    pub fn allow_atomics(&mut self, allow: bool) -> Result<()> {
        let mode = if allow {
            cublasAtomicsMode_t::CUBLAS_ATOMICS_ALLOWED
        } else {
            cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED
        };
        // SAFETY: the handle is live, and its context is current.
        self.configure(|api, raw| unsafe { call!(api, cublasSetAtomicsMode(raw, mode)) })
    }
}
