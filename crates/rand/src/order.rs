//! The order of pseudo-random numbers in memory.

use crate::sys::curandOrdering_t;

/// The order of pseudo-random numbers in memory. Every version since CUDA 11.8 has all of them, but
/// not every algorithm supports each.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum GeneratorOrdering {
    /// The default of the algorithm, which stays the same within a major version of cuRAND.
    #[default]
    Default,
    /// The best performance and statistical quality that all devices share.
    Best,
    /// A fast start with fewer guarantees on the quality.
    Seeded,
    /// The order of the first releases, which never changes.
    Legacy,
    /// The best performance on this device. The numbers depend on the device and on the version of
    /// cuRAND.
    Dynamic,
}

impl GeneratorOrdering {
    /// Converts to the library's type.
    #[must_use]
    pub const fn to_raw(self) -> curandOrdering_t {
        match self {
            Self::Default => curandOrdering_t::CURAND_ORDERING_PSEUDO_DEFAULT,
            Self::Best => curandOrdering_t::CURAND_ORDERING_PSEUDO_BEST,
            Self::Seeded => curandOrdering_t::CURAND_ORDERING_PSEUDO_SEEDED,
            Self::Legacy => curandOrdering_t::CURAND_ORDERING_PSEUDO_LEGACY,
            Self::Dynamic => curandOrdering_t::CURAND_ORDERING_PSEUDO_DYNAMIC,
        }
    }
}
