//! Size classes: eight per power of two.

/// The granularity of sizes and addresses in bytes, which equals the alignment of the driver's
/// pools.
pub const GRANULE: u64 = 512;

/// The number of classes per power of two. Rounding up wastes at most one eighth.
const STEPS: u64 = 8;
const STEPS_LOG: u32 = STEPS.ilog2();

/// The largest size with a class. Larger sizes are rounded up to a multiple of [`LARGE_GRANULE`].
const MAX_CLASS_BYTES: u64 = 32 << 20;
/// The granularity of sizes without a class.
const LARGE_GRANULE: u64 = 2 << 20;

/// A size class, by its index.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct SizeClass(u8);

/// The size of a block: a requested size, rounded up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BlockSize {
    /// A size class.
    Class(SizeClass),
    /// A size in bytes without a class.
    Large(u64),
}

impl SizeClass {
    /// The number of classes.
    pub(crate) const COUNT: usize = index(MAX_CLASS_BYTES / GRANULE) as usize + 1;

    /// Returns all classes, the smallest first.
    #[cfg(test)]
    #[inline]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the class with this index.
    #[inline]
    pub(crate) fn at(index: usize) -> Self {
        debug_assert!(index < Self::COUNT, "there are {} classes", Self::COUNT);
        Self(index as u8)
    }

    /// Returns the size in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        let index = u64::from(self.0);
        if index < STEPS {
            return (index + 1) * GRANULE;
        }
        (index % STEPS + STEPS + 1) * (GRANULE << (index / STEPS - 1))
    }
}

impl BlockSize {
    /// Rounds up `bytes`, which is neither 0 nor larger than the address space.
    #[inline]
    pub(crate) fn from_bytes(bytes: usize) -> Self {
        let bytes = bytes as u64;
        if bytes > MAX_CLASS_BYTES {
            return Self::Large(bytes.next_multiple_of(LARGE_GRANULE));
        }
        Self::Class(SizeClass(index(bytes.div_ceil(GRANULE)) as u8))
    }

    /// Returns the size in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Class(class) => class.bytes(),
            Self::Large(bytes) => bytes,
        }
    }
}

/// Returns the index of the class for a size of `granules`, which is at least 1.
#[inline]
const fn index(granules: u64) -> u64 {
    let last = granules - 1;
    if last < STEPS {
        return last;
    }
    let shift = last.ilog2() - STEPS_LOG;
    shift as u64 * STEPS + (last >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_fits_and_wastes_an_eighth_at_most() {
        let few = if cfg!(miri) { 2000 } else { 100_000 };
        let sizes = (1..few)
            .chain((1..2000).map(|step| step * 16_411))
            .chain([MAX_CLASS_BYTES as usize]);
        for bytes in sizes.filter(|bytes| *bytes <= MAX_CLASS_BYTES as usize) {
            let BlockSize::Class(class) = BlockSize::from_bytes(bytes) else {
                panic!("{bytes} bytes have no class")
            };
            let rounded = class.bytes();
            assert!(
                rounded >= bytes as u64 && rounded % GRANULE == 0,
                "{bytes} bytes become {rounded}"
            );
            let waste = rounded - bytes as u64;
            assert!(
                waste < GRANULE || waste * STEPS <= rounded,
                "{bytes} bytes become {rounded}"
            );
        }
    }

    #[test]
    fn class_is_the_smallest_that_fits() {
        let sizes: Vec<u64> = SizeClass::all().map(SizeClass::bytes).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        assert_eq!(
            (sizes[0], sizes[sizes.len() - 1]),
            (GRANULE, MAX_CLASS_BYTES)
        );
        for (class, pair) in SizeClass::all().skip(1).zip(sizes.windows(2)) {
            assert_eq!(
                BlockSize::from_bytes(pair[0] as usize + 1),
                BlockSize::Class(class)
            );
            assert_eq!(
                BlockSize::from_bytes(pair[1] as usize),
                BlockSize::Class(class)
            );
        }
    }

    #[test]
    fn large_size_is_rounded_to_large_granules() {
        assert_eq!(
            BlockSize::from_bytes(MAX_CLASS_BYTES as usize + 1),
            BlockSize::Large(MAX_CLASS_BYTES + LARGE_GRANULE)
        );
        assert_eq!(BlockSize::from_bytes(64 << 20), BlockSize::Large(64 << 20));
    }

    #[test]
    fn exact_powers_are_not_rounded() {
        for log in 9..40 {
            assert_eq!(BlockSize::from_bytes(1 << log).bytes(), 1 << log);
        }
    }
}
