//! The distributions: random bits become numbers.

mod normal;
mod poisson;

use std::ffi::{c_uint, c_ulonglong};

use bytemuck::Pod;
use curium_sys::curand::{Api, curandGenerator_t, curandStatus_t};

use self::normal::quantile;
use self::poisson::Poisson;
use super::generator::{self, Generator};
use super::{Result, code};

/// A type of real numbers.
trait Real: Pod + Into<f64> {
    /// `true` if a number takes more than 32 random bits.
    const IS_WIDE: bool;

    fn narrow(number: f64) -> Self;
}

impl Real for f32 {
    const IS_WIDE: bool = false;

    fn narrow(number: f64) -> Self {
        number as Self
    }
}

impl Real for f64 {
    const IS_WIDE: bool = true;

    fn narrow(number: f64) -> Self {
        number
    }
}

/// Returns a number above 0 and up to 1: the middle of the interval that the upper 53 bits stand
/// for.
fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Returns numbers of the normal distribution with mean 0 and deviation 1.
fn standard_normal<T: Real>(generator: &mut Generator, len: usize) -> Result<Vec<f64>> {
    let is_pseudo_random = !generator.settings.is_quasi_random();
    if is_pseudo_random && !len.is_multiple_of(2) {
        return Err(curandStatus_t::CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    }
    let bits = generator.next(len, T::IS_WIDE)?;
    if !is_pseudo_random {
        return Ok(bits.into_iter().map(|bits| quantile(unit(bits))).collect());
    }
    let pairs = bits
        .as_chunks::<2>()
        .0
        .iter()
        .flat_map(|pair| normal::box_muller(unit(pair[0]), unit(pair[1])));
    Ok(pairs.collect())
}

/// Writes numbers that `make` computes.
///
/// # Safety
///
/// The output is valid for writes of the numbers if the generator is on the host.
unsafe fn write<T: Pod>(
    name: &'static str,
    raw: curandGenerator_t,
    output: *mut T,
    make: impl FnOnce(&mut Generator) -> Result<Vec<T>>,
) -> curandStatus_t {
    code(generator::with(raw, |generator| {
        let numbers = make(generator)?;
        // SAFETY: the caller guarantees the memory.
        unsafe { generator.write(name, output, &numbers) }
    }))
}

/// Returns raw numbers, of a generator whose numbers have this many bits.
fn raw_bits(generator: &mut Generator, len: usize, bits: u32) -> Result<Vec<u64>> {
    if generator.settings.is_64_bit() != (bits == u64::BITS) {
        return Err(curandStatus_t::CURAND_STATUS_TYPE_ERROR);
    }
    generator.next(len, false)
}

/// Returns numbers of a normal distribution.
fn normal_numbers<T: Real>(
    generator: &mut Generator,
    len: usize,
    mean: T,
    deviation: T,
) -> Result<impl Iterator<Item = f64>> {
    let mean = mean.into();
    let deviation = deviation.into();
    Ok(standard_normal::<T>(generator, len)?
        .into_iter()
        .map(move |number| mean + deviation * number))
}

unsafe extern "C" fn generate(
    raw: curandGenerator_t,
    output: *mut c_uint,
    len: usize,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGenerate", raw, output, |generator| {
            let numbers = raw_bits(generator, len, u32::BITS)?;
            Ok(numbers
                .into_iter()
                .map(|bits| (bits >> 32) as c_uint)
                .collect())
        })
    }
}

unsafe extern "C" fn generate_64(
    raw: curandGenerator_t,
    output: *mut c_ulonglong,
    len: usize,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGenerateLongLong", raw, output, |generator| {
            raw_bits(generator, len, u64::BITS)
        })
    }
}

unsafe extern "C" fn uniform<T: Real>(
    raw: curandGenerator_t,
    output: *mut T,
    len: usize,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGenerateUniform", raw, output, |generator| {
            let numbers = generator.next(len, T::IS_WIDE)?;
            Ok(numbers
                .into_iter()
                .map(|bits| T::narrow(unit(bits)))
                .collect())
        })
    }
}

unsafe extern "C" fn normal<T: Real>(
    raw: curandGenerator_t,
    output: *mut T,
    len: usize,
    mean: T,
    deviation: T,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGenerateNormal", raw, output, |generator| {
            let numbers = normal_numbers(generator, len, mean, deviation)?;
            Ok(numbers.map(T::narrow).collect())
        })
    }
}

unsafe extern "C" fn log_normal<T: Real>(
    raw: curandGenerator_t,
    output: *mut T,
    len: usize,
    mean: T,
    deviation: T,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGenerateLogNormal", raw, output, |generator| {
            let numbers = normal_numbers(generator, len, mean, deviation)?;
            Ok(numbers.map(|number| T::narrow(number.exp())).collect())
        })
    }
}

unsafe extern "C" fn poisson(
    raw: curandGenerator_t,
    output: *mut c_uint,
    len: usize,
    mean: f64,
) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `output` is memory for `len` numbers.
    unsafe {
        write("curandGeneratePoisson", raw, output, |generator| {
            let distribution =
                Poisson::new(mean).ok_or(curandStatus_t::CURAND_STATUS_OUT_OF_RANGE)?;
            let numbers = generator.next(len, true)?;
            Ok(numbers
                .into_iter()
                .map(|bits| distribution.quantile(unit(bits)))
                .collect())
        })
    }
}

/// Adds the functions that generate numbers.
pub(super) fn add_to(api: &mut Api) {
    api.curandGenerate = Some(generate);
    api.curandGenerateLongLong = Some(generate_64);
    api.curandGenerateUniform = Some(uniform::<f32>);
    api.curandGenerateUniformDouble = Some(uniform::<f64>);
    api.curandGenerateNormal = Some(normal::<f32>);
    api.curandGenerateNormalDouble = Some(normal::<f64>);
    api.curandGenerateLogNormal = Some(log_normal::<f32>);
    api.curandGenerateLogNormalDouble = Some(log_normal::<f64>);
    api.curandGeneratePoisson = Some(poisson);
}
