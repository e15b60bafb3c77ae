//! Size classes: what sizes are rounded up to.

/// The unit of sizes and addresses, in bytes. What the driver's pools align to as well.
pub(crate) const GRANULE: u64 = 512;

/// Each doubling of the size has this many classes, so that rounding up wastes an eighth at most.
const STEPS: u64 = 8;
const STEPS_LOG: u32 = STEPS.ilog2();

/// The largest size that has a class. Larger ones are rounded to [`LARGE_GRANULE`].
const LARGEST: u64 = 32 << 20;
/// What sizes without a class are multiples of.
const LARGE_GRANULE: u64 = 2 << 20;

/// One of the sizes that small and middling blocks come in.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Class(u8);

/// A size as it is handed out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rounded {
    /// The size of a class.
    Class(Class),
    /// A size in bytes that has no class.
    Large(u64),
}

impl Class {
    /// How many classes there are.
    pub(crate) const COUNT: usize = index(LARGEST / GRANULE) as usize + 1;

    /// All classes, from the smallest on.
    #[cfg(test)]
    #[inline]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The class with this number.
    #[inline]
    pub(crate) fn at(index: usize) -> Self {
        debug_assert!(index < Self::COUNT, "there are {} classes", Self::COUNT);
        Self(index as u8)
    }

    /// The size of a block in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        let index = u64::from(self.0);
        if index < STEPS {
            return (index + 1) * GRANULE;
        }
        (index % STEPS + STEPS + 1) * (GRANULE << (index / STEPS - 1))
    }
}

impl Rounded {
    /// The size that `bytes` bytes are rounded up to, where `bytes` is neither 0 nor beyond the address space.
    #[inline]
    pub(crate) fn up(bytes: usize) -> Self {
        let bytes = bytes as u64;
        if bytes > LARGEST {
            return Self::Large(bytes.next_multiple_of(LARGE_GRANULE));
        }
        Self::Class(Class(index(bytes.div_ceil(GRANULE)) as u8))
    }

    /// The size in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Class(class) => class.bytes(),
            Self::Large(bytes) => bytes,
        }
    }
}

/// The number of the class for a size in granules, at least one.
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
    fn class_holds_what_is_rounded_to_it_and_wastes_an_eighth_at_most() {
        let few = if cfg!(miri) { 2000 } else { 100_000 };
        let sizes = (1..few).chain((1..2000).map(|step| step * 16_411)).chain([LARGEST as usize]);
        for bytes in sizes.filter(|bytes| *bytes <= LARGEST as usize) {
            let Rounded::Class(class) = Rounded::up(bytes) else { panic!("{bytes} bytes have no class") };
            let rounded = class.bytes();
            assert!(rounded >= bytes as u64 && rounded % GRANULE == 0, "{bytes} bytes become {rounded}");
            let waste = rounded - bytes as u64;
            assert!(waste < GRANULE || waste * STEPS <= rounded, "{bytes} bytes become {rounded}");
        }
    }

    #[test]
    fn class_is_the_smallest_that_fits() {
        let sizes: Vec<u64> = Class::all().map(Class::bytes).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        assert_eq!((sizes[0], sizes[sizes.len() - 1]), (GRANULE, LARGEST));
        for (class, pair) in Class::all().skip(1).zip(sizes.windows(2)) {
            assert_eq!(Rounded::up(pair[0] as usize + 1), Rounded::Class(class));
            assert_eq!(Rounded::up(pair[1] as usize), Rounded::Class(class));
        }
    }

    #[test]
    fn size_beyond_the_classes_is_rounded_to_large_granules() {
        assert_eq!(Rounded::up(LARGEST as usize + 1), Rounded::Large(LARGEST + LARGE_GRANULE));
        assert_eq!(Rounded::up(64 << 20), Rounded::Large(64 << 20));
    }

    #[test]
    fn powers_of_two_are_not_rounded() {
        for log in 9..40 {
            assert_eq!(Rounded::up(1 << log).bytes(), 1 << log);
        }
    }
}
