//! Filling memory with random numbers: raw bits, and each distribution.

use curium_sys::library_call as call;

use super::Generator;
use crate::algorithm::{Algorithm, sealed};
use crate::error::{ArgumentError, Result};
use crate::location::Location;
use crate::real::{Distribution, Real};
use crate::sys::{Api, curandGenerator_t};

/// The largest mean of a Poisson distribution.
const MAX_POISSON_MEAN: f64 = 400_000.0;

impl<A: Algorithm, P: Location> Generator<A, P> {
    /// Fills `output` with raw numbers, in which every bit is random.
    ///
    /// CUDA: `curandGenerate`, `curandGenerateLongLong`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the length is not a multiple of the
    /// dimensions; an error of the library or of the driver.
    #[doc(alias = "curandGenerate")]
    #[doc(alias = "curandGenerateLongLong")]
    pub fn bits(&mut self, output: &mut P::Memory<A::Bits>) -> Result<()> {
        self.fill(
            "Generator::bits",
            output,
            |_len| Ok(()),
            |api, raw, output, len| {
                // SAFETY: the generator is live and makes these numbers, and `fill` passes memory
                // of this length.
                unsafe { <A::Bits as sealed::Bits>::generate(api, raw, output, len) }
            },
        )
    }

    /// Fills `output` with numbers of the uniform distribution between 0 (excluded) and 1
    /// (included).
    ///
    /// CUDA: `curandGenerateUniform`, `curandGenerateUniformDouble`.
    ///
    /// # Errors
    ///
    /// As for [`Generator::bits`].
    #[doc(alias = "curandGenerateUniform")]
    pub fn uniform<T: Real>(&mut self, output: &mut P::Memory<T>) -> Result<()> {
        self.fill_with("Generator::uniform", output, Distribution::Uniform)
    }

    /// Fills `output` with numbers of the normal distribution with this mean and standard
    /// deviation.
    ///
    /// CUDA: `curandGenerateNormal`, `curandGenerateNormalDouble`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the deviation is negative, if a parameter is
    /// not finite, if the length is odd and the numbers are pseudo-random, or if the length is not
    /// a multiple of the dimensions; an error of the library or of the driver.
    #[doc(alias = "curandGenerateNormal")]
    pub fn normal<T: Real>(
        &mut self,
        output: &mut P::Memory<T>,
        mean: T,
        deviation: T,
    ) -> Result<()> {
        self.fill_with(
            "Generator::normal",
            output,
            Distribution::Normal(mean, deviation),
        )
    }

    /// Fills `output` with numbers of the log-normal distribution, whose logarithms have this mean
    /// and standard deviation.
    ///
    /// CUDA: `curandGenerateLogNormal`, `curandGenerateLogNormalDouble`.
    ///
    /// # Errors
    ///
    /// As for [`Generator::normal`].
    #[doc(alias = "curandGenerateLogNormal")]
    pub fn log_normal<T: Real>(
        &mut self,
        output: &mut P::Memory<T>,
        mean: T,
        deviation: T,
    ) -> Result<()> {
        self.fill_with(
            "Generator::log_normal",
            output,
            Distribution::LogNormal(mean, deviation),
        )
    }

    /// Fills `output` with numbers of the Poisson distribution with this mean, which is at most
    /// 400,000.
    ///
    /// CUDA: `curandGeneratePoisson`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the mean is out of range or the length is not
    /// a multiple of the dimensions; an error of the library or of the driver.
    #[doc(alias = "curandGeneratePoisson")]
    pub fn poisson(&mut self, output: &mut P::Memory<u32>, mean: f64) -> Result<()> {
        const OPERATION: &str = "Generator::poisson";
        if !(mean > 0.0 && mean <= MAX_POISSON_MEAN) {
            let problem =
                format!("unsupported mean ({mean}, allowed: positive, at most {MAX_POISSON_MEAN})");
            return Err(ArgumentError::refused(OPERATION, problem));
        }
        self.fill(
            OPERATION,
            output,
            |_len| Ok(()),
            |api, raw, output, len| {
                // SAFETY: the generator is live, and `fill` passes memory of this length.
                unsafe { call!(api, curandGeneratePoisson(raw, output, len, mean)) }
            },
        )
    }

    /// Fills memory with real numbers of a distribution.
    #[inline(always)]
    fn fill_with<T: Real>(
        &mut self,
        operation: &'static str,
        output: &mut P::Memory<T>,
        distribution: Distribution<T>,
    ) -> Result<()> {
        self.fill(
            operation,
            output,
            |len| match distribution {
                Distribution::Uniform => Ok(()),
                Distribution::Normal(mean, deviation)
                | Distribution::LogNormal(mean, deviation) => {
                    check_normal::<A, T>(operation, len, mean, deviation)
                }
            },
            |api, raw, output, len| {
                // SAFETY: the generator is live, and `fill` passes memory of this length.
                unsafe { T::generate(api, raw, output, len, distribution) }
            },
        )
    }

    /// Calls a function that fills memory, after `check` has accepted its length.
    // Inlined: docs/performance.md, "Functions around a call".
    #[inline(always)]
    fn fill<T>(
        &mut self,
        operation: &'static str,
        output: &mut P::Memory<T>,
        check: impl FnOnce(usize) -> Result<()>,
        call: impl FnOnce(&Api, curandGenerator_t, *mut T, usize) -> Result<()>,
    ) -> Result<()> {
        let Self {
            handle,
            location,
            dimensions,
        } = self;
        let dimensions = *dimensions;
        location.fill(
            operation,
            output,
            handle,
            |len| {
                check(len)?;
                // A division takes longer than the other checks together.
                if dimensions == 1 || len.is_multiple_of(dimensions as usize) {
                    return Ok(());
                }
                let problem = format!(
                    "length is not a multiple of the dimensions ({len} elements, {dimensions} dimensions)"
                );
                Err(ArgumentError::refused(operation, problem))
            },
            |address, len| {
                handle.entered(|| call(handle.library().api(), handle.raw(), address, len))
            },
        )
    }
}

/// Checks the arguments of a normal distribution, whose pseudo-random numbers are computed in
/// pairs.
fn check_normal<A: Algorithm, T: Real>(
    operation: &'static str,
    len: usize,
    mean: T,
    deviation: T,
) -> Result<()> {
    let mean: f64 = mean.into();
    let deviation: f64 = deviation.into();
    if !mean.is_finite() || !deviation.is_finite() || deviation < 0.0 {
        let problem =
            format!("invalid normal distribution (mean {mean}, standard deviation {deviation})");
        return Err(ArgumentError::refused(operation, problem));
    }
    if A::IS_PSEUDO_RANDOM && !len.is_multiple_of(2) {
        let problem =
            format!("odd length ({len} elements); pseudo-random normal numbers come in pairs");
        return Err(ArgumentError::refused(operation, problem));
    }
    Ok(())
}
