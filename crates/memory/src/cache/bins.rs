//! The free blocks of one thread and one stream.

use super::class::{Class, Rounded};

/// Free blocks by size class, the last one freed on top, which is the one most likely in the device's caches.
#[derive(Debug)]
pub(crate) struct Bins {
    classes: Box<[Vec<u64>]>,
    /// Blocks without a class, each with its size.
    large: Vec<(u64, u64)>,
}

/// Blocks that found no room.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Overflow {
    pub(crate) addresses: Vec<u64>,
}

/// A bin holds about this many bytes,
const BIN_BYTES: u64 = 16 << 20;
/// but at least this many blocks,
const FEWEST: u64 = 2;
/// and at most this many.
const MOST: u64 = 64;
/// How many blocks without a class are held.
const MOST_LARGE: usize = 4;

impl Bins {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { classes: std::iter::repeat_with(Vec::new).take(Class::COUNT).collect(), large: Vec::new() }
    }

    /// How many blocks of `class` are held at most.
    #[inline]
    pub(crate) fn capacity(class: Class) -> usize {
        (BIN_BYTES / class.bytes()).clamp(FEWEST, MOST) as usize
    }

    /// A free block of the size.
    #[inline]
    pub(crate) fn take(&mut self, size: Rounded) -> Option<u64> {
        match size {
            Rounded::Class(class) => self.classes[class.index()].pop(),
            Rounded::Large(bytes) => {
                let position = self.large.iter().rposition(|(size, _)| *size == bytes)?;
                Some(self.large.remove(position).1)
            }
        }
    }

    /// Holds a free block, and says whether there was room.
    #[inline]
    pub(crate) fn put(&mut self, size: Rounded, address: u64) -> bool {
        match size {
            Rounded::Class(class) => {
                let bin = &mut self.classes[class.index()];
                if bin.len() == bin.capacity() && !Self::grow(bin, class) {
                    return false;
                }
                bin.push(address);
            }
            Rounded::Large(bytes) => {
                if self.large.len() == MOST_LARGE {
                    return false;
                }
                self.large.push((bytes, address));
            }
        }
        true
    }

    /// Takes out the older half of the blocks of a size, to make room.
    #[cold]
    #[inline]
    pub(crate) fn overflow(&mut self, size: Rounded) -> Overflow {
        let Rounded::Class(class) = size else { return Overflow::default() };
        let bin = &mut self.classes[class.index()];
        let half = bin.len().div_ceil(2);
        Overflow { addresses: bin.drain(..half).collect() }
    }

    /// Takes all blocks out.
    #[inline]
    pub(crate) fn drain(&mut self, mut block: impl FnMut(Rounded, u64)) {
        for (index, bin) in self.classes.iter_mut().enumerate() {
            bin.drain(..).for_each(|address| block(Rounded::Class(Class::at(index)), address));
        }
        self.large.drain(..).for_each(|(bytes, address)| block(Rounded::Large(bytes), address));
    }

    /// The bytes that are held.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        let classes = self.classes.iter().enumerate();
        let small: u64 = classes.map(|(index, bin)| Class::at(index).bytes() * bin.len() as u64).sum();
        small + self.large.iter().map(|(bytes, _)| bytes).sum::<u64>()
    }

    /// Makes room for all that a bin may hold, once.
    #[cold]
    #[inline]
    fn grow(bin: &mut Vec<u64>, class: Class) -> bool {
        let capacity = Self::capacity(class);
        if bin.len() >= capacity {
            return false;
        }
        bin.reserve_exact(capacity - bin.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_freed_last_is_taken_first() {
        let mut bins = Bins::new();
        let size = Rounded::up(4096);
        assert_eq!(bins.take(size), None);
        assert!(bins.put(size, 512) && bins.put(size, 1024));
        assert_eq!(bins.take(Rounded::up(8192)), None);
        assert_eq!((bins.take(size), bins.take(size), bins.take(size)), (Some(1024), Some(512), None));
    }

    #[test]
    fn full_bin_gives_up_its_older_half() {
        let (mut bins, size) = (Bins::new(), Rounded::up(1 << 20));
        let Rounded::Class(class) = size else { panic!("1 MiB has a class") };
        let capacity = Bins::capacity(class) as u64;
        assert!((0..capacity).all(|block| bins.put(size, block)));
        assert!(!bins.put(size, capacity));
        assert_eq!(bins.bytes(), capacity << 20);
        let overflow = bins.overflow(size);
        assert_eq!(overflow.addresses, (0..capacity / 2).collect::<Vec<_>>());
        assert!(bins.put(size, capacity));
        assert_eq!(bins.take(size), Some(capacity));
    }

    #[test]
    fn large_blocks_are_held_by_their_exact_size() {
        let mut bins = Bins::new();
        let (size, other) = (Rounded::up(64 << 20), Rounded::up(66 << 20));
        assert!(bins.put(size, 1) && bins.put(other, 2) && bins.put(size, 3) && bins.put(size, 4));
        assert!(!bins.put(size, 5));
        assert_eq!((bins.take(size), bins.take(other), bins.take(other)), (Some(4), Some(2), None));
        let mut drained = Vec::new();
        bins.drain(|size, address| drained.push((size, address)));
        assert_eq!(drained, [(size, 1), (size, 3)]);
        assert_eq!(bins.bytes(), 0);
    }
}
