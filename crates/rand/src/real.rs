//! The types of real random numbers.

use curium_driver::sys::call;

use crate::error::Result;
use crate::sys::{Api, curandGenerator_t};

/// A type of real numbers: `f32` or `f64`.
pub trait Real: Copy + Into<f64> + 'static + sealed::Functions {}

impl Real for f32 {}
impl Real for f64 {}

pub(crate) mod sealed {
    use super::*;

    /// The functions of cuRAND for a type.
    ///
    /// # Safety
    ///
    /// For each function: the generator is live, and the output is valid for writes of `len` numbers.
    pub trait Functions: Sized {
        unsafe fn uniform(api: &Api, raw: curandGenerator_t, output: *mut Self, len: usize) -> Result<()>;

        unsafe fn normal(
            api: &Api,
            raw: curandGenerator_t,
            output: *mut Self,
            len: usize,
            parameters: (Self, Self),
        ) -> Result<()>;

        unsafe fn log_normal(
            api: &Api,
            raw: curandGenerator_t,
            output: *mut Self,
            len: usize,
            parameters: (Self, Self),
        ) -> Result<()>;
    }

    macro_rules! functions {
        ($real:ty: $uniform:ident, $normal:ident, $log_normal:ident) => {
            impl Functions for $real {
                unsafe fn uniform(api: &Api, raw: curandGenerator_t, output: *mut Self, len: usize) -> Result<()> {
                    // SAFETY: the caller upholds the same conditions.
                    unsafe { call!(api, $uniform(raw, output, len)) }
                }

                unsafe fn normal(
                    api: &Api,
                    raw: curandGenerator_t,
                    output: *mut Self,
                    len: usize,
                    (mean, deviation): (Self, Self),
                ) -> Result<()> {
                    // SAFETY: the caller upholds the same conditions.
                    unsafe { call!(api, $normal(raw, output, len, mean, deviation)) }
                }

                unsafe fn log_normal(
                    api: &Api,
                    raw: curandGenerator_t,
                    output: *mut Self,
                    len: usize,
                    (mean, deviation): (Self, Self),
                ) -> Result<()> {
                    // SAFETY: the caller upholds the same conditions.
                    unsafe { call!(api, $log_normal(raw, output, len, mean, deviation)) }
                }
            }
        };
    }

    functions!(f32: curandGenerateUniform, curandGenerateNormal, curandGenerateLogNormal);
    functions!(f64: curandGenerateUniformDouble, curandGenerateNormalDouble, curandGenerateLogNormalDouble);
}
