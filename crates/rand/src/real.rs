//! The types of real random numbers.

use curium_sys::library_call as call;

use crate::error::Result;
use crate::sys::{Api, curandGenerator_t};

/// A type of real numbers: `f32` or `f64`.
pub trait Real: Copy + Into<f64> + 'static + sealed::Functions {}

impl Real for f32 {}
impl Real for f64 {}

/// A distribution of real numbers.
#[derive(Clone, Copy, Debug)]
pub enum Distribution<T> {
    /// Evenly between 0 (excluded) and 1 (included).
    Uniform,
    /// The normal distribution with this mean and standard deviation.
    Normal(T, T),
    /// The log-normal distribution with this mean and standard deviation of the logarithms.
    LogNormal(T, T),
}

pub(crate) mod sealed {
    use super::*;

    /// The functions of cuRAND for a type.
    pub trait Functions: Sized {
        /// Writes numbers of a distribution.
        ///
        /// # Safety
        ///
        /// The generator is live, and the output is valid for writes of `len` numbers.
        unsafe fn generate(
            api: &Api,
            raw: curandGenerator_t,
            output: *mut Self,
            len: usize,
            distribution: Distribution<Self>,
        ) -> Result<()>;
    }

    macro_rules! functions {
        ($real:ty: $uniform:ident, $normal:ident, $log_normal:ident) => {
            impl Functions for $real {
                #[inline(always)]
                unsafe fn generate(
                    api: &Api,
                    raw: curandGenerator_t,
                    output: *mut Self,
                    len: usize,
                    distribution: Distribution<Self>,
                ) -> Result<()> {
                    // SAFETY: the generator and the output are those of the contract of this
                    // method.
                    unsafe {
                        match distribution {
                            Distribution::Uniform => call!(api, $uniform(raw, output, len)),
                            Distribution::Normal(mean, deviation) => {
                                call!(api, $normal(raw, output, len, mean, deviation))
                            }
                            Distribution::LogNormal(mean, deviation) => {
                                call!(api, $log_normal(raw, output, len, mean, deviation))
                            }
                        }
                    }
                }
            }
        };
    }

    functions!(f32: curandGenerateUniform, curandGenerateNormal, curandGenerateLogNormal);
    functions!(f64: curandGenerateUniformDouble, curandGenerateNormalDouble, curandGenerateLogNormalDouble);
}
