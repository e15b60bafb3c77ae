//! The element types, and the transforms between them.

use num_complex::Complex;

use crate::sys::cudaDataType;

/// A type of real numbers: `f32`, `f64`, and with the feature `half` `half::f16`.
pub trait Real: Copy + 'static + sealed::Types {}

impl Real for f32 {}
impl Real for f64 {}
#[cfg(feature = "half")]
impl Real for half::f16 {}

/// An input type from which cuFFT transforms to `O`: complex to complex, real to complex, or
/// complex to real numbers of one precision.
pub trait Transform<O>: sealed::Transform<O> {}

impl<R: Real> Transform<Complex<R>> for Complex<R> {}
impl<R: Real> Transform<Complex<R>> for R {}
impl<R: Real> Transform<R> for Complex<R> {}

/// The kind of a transform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    ComplexToComplex,
    RealToComplex,
    ComplexToReal,
}

pub(crate) mod sealed {
    use super::{Complex, Form, Real, cudaDataType};

    /// The library's constants for a precision.
    pub trait Types {
        const REAL: cudaDataType;
        const COMPLEX: cudaDataType;
        /// `true` if the library transforms only lengths that are powers of two.
        const NEEDS_POWERS_OF_TWO: bool = false;
    }

    impl Types for f32 {
        const REAL: cudaDataType = cudaDataType::CUDA_R_32F;
        const COMPLEX: cudaDataType = cudaDataType::CUDA_C_32F;
    }

    impl Types for f64 {
        const REAL: cudaDataType = cudaDataType::CUDA_R_64F;
        const COMPLEX: cudaDataType = cudaDataType::CUDA_C_64F;
    }

    #[cfg(feature = "half")]
    impl Types for half::f16 {
        const REAL: cudaDataType = cudaDataType::CUDA_R_16F;
        const COMPLEX: cudaDataType = cudaDataType::CUDA_C_16F;
        const NEEDS_POWERS_OF_TWO: bool = true;
    }

    #[allow(
        private_interfaces,
        reason = "the trait cannot be named outside the crate"
    )]
    pub trait Transform<O> {
        const FORM: Form;
        const INPUT: cudaDataType;
        const OUTPUT: cudaDataType;
        const EXECUTION: cudaDataType;
        const NEEDS_POWERS_OF_TWO: bool;
    }

    macro_rules! transform {
        ($input:ty, $output:ty, $form:ident, $input_type:ident, $output_type:ident) => {
            #[allow(
                private_interfaces,
                reason = "the trait cannot be named outside the crate"
            )]
            impl<R: Real> Transform<$output> for $input {
                const FORM: Form = Form::$form;
                const INPUT: cudaDataType = R::$input_type;
                const OUTPUT: cudaDataType = R::$output_type;
                const EXECUTION: cudaDataType = R::COMPLEX;
                const NEEDS_POWERS_OF_TWO: bool = R::NEEDS_POWERS_OF_TWO;
            }
        };
    }

    transform!(Complex<R>, Complex<R>, ComplexToComplex, COMPLEX, COMPLEX);
    transform!(R, Complex<R>, RealToComplex, REAL, COMPLEX);
    transform!(Complex<R>, R, ComplexToReal, COMPLEX, REAL);
}
