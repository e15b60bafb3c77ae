//! The state of a sequence: words of random bits, by the type of the generator.

use curium_sys::curand::{curandRngType_t as Kind, curandStatus_t};

use super::Result;
use super::algorithm::{Algorithm, Mrg, Philox, Xorwow};
use super::sobol::Sequence;

/// The settings of a generator, which determine its sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) kind: Kind,
    pub(super) seed: u64,
    pub(super) offset: u64,
    pub(super) dimensions: u32,
}

/// A sequence at some position.
#[derive(Clone)]
pub(super) enum Engine {
    PseudoRandom(Algorithm),
    Quasi(Sequence),
}

impl Settings {
    pub(super) fn new(kind: Kind) -> Result<Self> {
        let kind = match kind {
            Kind::CURAND_RNG_PSEUDO_DEFAULT => Kind::CURAND_RNG_PSEUDO_XORWOW,
            Kind::CURAND_RNG_QUASI_DEFAULT => Kind::CURAND_RNG_QUASI_SOBOL32,
            kind => kind,
        };
        let supported = [
            Kind::CURAND_RNG_PSEUDO_XORWOW,
            Kind::CURAND_RNG_PSEUDO_MRG32K3A,
            Kind::CURAND_RNG_PSEUDO_MTGP32,
            Kind::CURAND_RNG_PSEUDO_MT19937,
            Kind::CURAND_RNG_PSEUDO_PHILOX4_32_10,
            Kind::CURAND_RNG_QUASI_SOBOL32,
            Kind::CURAND_RNG_QUASI_SCRAMBLED_SOBOL32,
            Kind::CURAND_RNG_QUASI_SOBOL64,
            Kind::CURAND_RNG_QUASI_SCRAMBLED_SOBOL64,
        ];
        if !supported.contains(&kind) {
            return Err(curandStatus_t::CURAND_STATUS_TYPE_ERROR);
        }
        Ok(Self {
            kind,
            seed: 0,
            offset: 0,
            dimensions: 1,
        })
    }

    pub(super) fn is_quasi_random(&self) -> bool {
        self.kind.0 >= Kind::CURAND_RNG_QUASI_DEFAULT.0
    }

    pub(super) fn is_64_bit(&self) -> bool {
        matches!(
            self.kind,
            Kind::CURAND_RNG_QUASI_SOBOL64 | Kind::CURAND_RNG_QUASI_SCRAMBLED_SOBOL64
        )
    }

    pub(super) fn has_offset(&self) -> bool {
        !matches!(
            self.kind,
            Kind::CURAND_RNG_PSEUDO_MTGP32 | Kind::CURAND_RNG_PSEUDO_MT19937
        )
    }

    /// Returns the sequence at the offset. MTGP32 is MT19937 with another seed.
    pub(super) fn start(&self) -> Engine {
        if self.is_quasi_random() {
            let is_scrambled = matches!(
                self.kind,
                Kind::CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 | Kind::CURAND_RNG_QUASI_SCRAMBLED_SOBOL64
            );
            let mut sequence =
                Sequence::new(self.dimensions as usize, is_scrambled, self.is_64_bit());
            sequence.position = self.offset;
            return Engine::Quasi(sequence);
        }
        let mut algorithm = match self.kind {
            Kind::CURAND_RNG_PSEUDO_PHILOX4_32_10 => Algorithm::Philox(Philox::new(self.seed)),
            Kind::CURAND_RNG_PSEUDO_MRG32K3A => Algorithm::Mrg(Mrg::new(self.seed)),
            Kind::CURAND_RNG_PSEUDO_MT19937 => Algorithm::twister(self.seed),
            Kind::CURAND_RNG_PSEUDO_MTGP32 => Algorithm::twister(!self.seed),
            _ => Algorithm::Xorwow(Xorwow::new(self.seed)),
        };
        algorithm.skip(self.offset);
        Engine::PseudoRandom(algorithm)
    }
}

impl Engine {
    /// Returns `count` numbers of 64 bits, of which the upper 32 are random at least. A
    /// pseudo-random one of `is_wide` has twice as many.
    pub(super) fn next(&mut self, count: usize, is_wide: bool) -> Vec<u64> {
        match self {
            Self::PseudoRandom(algorithm) => (0..count).map(|_| wide(algorithm, is_wide)).collect(),
            Self::Quasi(sequence) => {
                let dimensions = sequence.dimensions();
                sequence.next(count / dimensions)
            }
        }
    }
}

fn wide(algorithm: &mut Algorithm, is_wide: bool) -> u64 {
    let upper = u64::from(algorithm.next()) << 32;
    if is_wide {
        upper | u64::from(algorithm.next())
    } else {
        upper
    }
}
