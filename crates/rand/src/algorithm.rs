//! The algorithms, as types: an operation that an algorithm lacks does not compile.

use std::fmt::Debug;

use crate::sys::curandRngType_t;

/// An algorithm of cuRAND.
pub trait Algorithm: Copy + Debug + Send + Sync + 'static + sealed::Sealed {
    /// The type of its raw numbers: `u64` for the 64-bit Sobol sequences, otherwise `u32`.
    type Bits: Bits;

    /// Returns the library's constant.
    #[must_use]
    fn to_raw() -> curandRngType_t;

    /// `true` if the numbers are pseudo-random: normal distributions come in pairs then.
    #[doc(hidden)]
    const IS_PSEUDO_RANDOM: bool;
}

/// An algorithm of pseudo-random numbers, which starts from a seed.
pub trait PseudoRandom: Algorithm {}

/// An algorithm of quasi-random numbers, which fill a space of one or more dimensions evenly.
pub trait QuasiRandom: Algorithm {}

/// An algorithm that can start at any offset of its sequence.
pub trait SkipAhead: Algorithm {}

/// The type of raw numbers: `u32` or `u64`.
pub trait Bits: Copy + 'static + sealed::Bits {}

impl Bits for u32 {}
impl Bits for u64 {}

/// Declares an algorithm with its properties.
macro_rules! algorithm {
    ($(#[doc = $doc:literal] $name:ident($bits:ty) = $raw:ident: $($property:ident)+, $is_pseudo_random:literal;)+) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
            pub struct $name;

            impl sealed::Sealed for $name {}

            impl Algorithm for $name {
                type Bits = $bits;

                const IS_PSEUDO_RANDOM: bool = $is_pseudo_random;

                fn to_raw() -> curandRngType_t {
                    curandRngType_t::$raw
                }
            }

            $(impl $property for $name {})+
        )+
    };
}

algorithm! {
    #[doc = "XORWOW, a xorshift generator by Marsaglia."]
    Xorwow(u32) = CURAND_RNG_PSEUDO_XORWOW: PseudoRandom SkipAhead, true;
    #[doc = "Philox4x32-10, a counter-based generator by Salmon and others."]
    Philox4x32(u32) = CURAND_RNG_PSEUDO_PHILOX4_32_10: PseudoRandom SkipAhead, true;
    #[doc = "MRG32k3a, a combined multiple recursive generator by L'Ecuyer."]
    Mrg32k3a(u32) = CURAND_RNG_PSEUDO_MRG32K3A: PseudoRandom SkipAhead, true;
    #[doc = "MT19937, the Mersenne Twister by Matsumoto and Nishimura."]
    Mt19937(u32) = CURAND_RNG_PSEUDO_MT19937: PseudoRandom, true;
    #[doc = "MTGP32, the Mersenne Twister for GPUs by Saito."]
    Mtgp32(u32) = CURAND_RNG_PSEUDO_MTGP32: PseudoRandom, true;
    #[doc = "The Sobol sequence of 32 bits."]
    Sobol32(u32) = CURAND_RNG_QUASI_SOBOL32: QuasiRandom SkipAhead, false;
    #[doc = "The scrambled Sobol sequence of 32 bits."]
    ScrambledSobol32(u32) = CURAND_RNG_QUASI_SCRAMBLED_SOBOL32: QuasiRandom SkipAhead, false;
    #[doc = "The Sobol sequence of 64 bits."]
    Sobol64(u64) = CURAND_RNG_QUASI_SOBOL64: QuasiRandom SkipAhead, false;
    #[doc = "The scrambled Sobol sequence of 64 bits."]
    ScrambledSobol64(u64) = CURAND_RNG_QUASI_SCRAMBLED_SOBOL64: QuasiRandom SkipAhead, false;
}

pub(crate) mod sealed {
    use curium_sys::library_call as call;

    use crate::error::Result;
    use crate::sys::{Api, curandGenerator_t};

    pub trait Sealed {}

    /// The function that writes raw numbers of a type.
    pub trait Bits: Sized {
        /// Calls the function that generates numbers of this type.
        ///
        /// # Safety
        ///
        /// The generator is live and makes numbers of this type, and the output is valid for writes
        /// of `len` numbers.
        unsafe fn generate(
            api: &Api,
            generator: curandGenerator_t,
            output: *mut Self,
            len: usize,
        ) -> Result<()>;
    }

    impl Bits for u32 {
        unsafe fn generate(
            api: &Api,
            generator: curandGenerator_t,
            output: *mut Self,
            len: usize,
        ) -> Result<()> {
            // SAFETY: the generator and the output are those of the contract of this method.
            unsafe { call!(api, curandGenerate(generator, output, len)) }
        }
    }

    impl Bits for u64 {
        unsafe fn generate(
            api: &Api,
            generator: curandGenerator_t,
            output: *mut Self,
            len: usize,
        ) -> Result<()> {
            // SAFETY: the generator and the output are those of the contract of this method.
            unsafe { call!(api, curandGenerateLongLong(generator, output, len)) }
        }
    }
}
