//! Fragmented memory that is mapped again in one piece.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::heap::{Heap, Segment};

/// Ranges of addresses that map parts of memory a second time, one after the other.
///
/// The home of a part is the address at which it was mapped first. Mappings in a stitched range
/// remain, so that memory moves there and back without a driver call. A part is in use at one of
/// its addresses at a time, which is the only one that the [`Heap`] has.
///
/// A program that repeats its allocations needs the same ranges each time. It finds them if the
/// same memory in use always leads to the same choice: free memory [returns](Self::recall) home
/// before each search, and the oldest range that fits is chosen.
#[derive(Debug, Default)]
pub(crate) struct Stitching {
    /// The oldest range is the first.
    ranges: Vec<StitchedRange>,
    /// The home of each part in use in a range, by its address there.
    away: BTreeMap<u64, Segment>,
    /// The number of times that ranges were used.
    uses: u64,
}

/// Addresses at which parts of memory are mapped one after the other.
#[derive(Debug)]
pub(crate) struct StitchedRange {
    start: u64,
    length: u64,
    slots: Vec<Slot>,
    last_use: u64,
}

/// The addresses of a part in a stitched range.
#[derive(Clone, Copy, Debug)]
struct Slot {
    home: Segment,
    /// `false` if the part was unmapped and released.
    is_mapped: bool,
}

/// A set of addresses of parts. Each search looks up many of them.
type Addresses = HashSet<u64, BuildHasherDefault<AddressHasher>>;

/// A multiplicative hash of addresses, which do not come from others.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, address: u64) {
        // The upper half of the product depends on all bits of the address.
        let product = u128::from(self.0 ^ address) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The maximum size of all stitched ranges as a multiple of the memory.
const MAX_RANGES_PER_MEMORY: u64 = 16;

/// The fraction of the memory that a thread cache frees before it is idle, as a divisor. Half of it
/// coalesces more often than repetitions of work need, and double misses some of them.
const IDLE_DIVISOR: u64 = 32;
/// The minimum number of bytes that a thread cache frees before it is idle.
const MIN_IDLE_BYTES: u64 = 32 << 20;

impl Stitching {
    /// Returns `true` if there is no range.
    fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of bytes freed by a thread cache after which it is idle. There is no such
    /// number without ranges, since then each search finds what it needs.
    pub(crate) fn idle_limit(&self, reserved_bytes: u64) -> u64 {
        if self.is_empty() {
            return u64::MAX;
        }
        (reserved_bytes / IDLE_DIVISOR).max(MIN_IDLE_BYTES)
    }

    /// Moves parts that are available to every stream to their homes. Calls `moved` with the old
    /// and the new addresses before the heap has the new ones.
    pub(crate) fn recall(&mut self, heap: &mut Heap, mut moved: impl FnMut(Segment, Segment)) {
        let free: Vec<(u64, Segment)> = self
            .away
            .iter()
            .map(|(address, home)| (*address, *home))
            .filter(|(address, home)| heap.free_after(*address) >= home.length)
            .collect();
        // Parts that are adjacent at both places move together.
        for run in free.chunk_by(|(left, left_home), (right, right_home)| {
            left + left_home.length == *right && left_home.end() == right_home.start
        }) {
            let (address, home) = run[0];
            let from = Segment {
                start: address,
                length: run.iter().map(|(_, home)| home.length).sum(),
            };
            let is_free = heap.move_segments(from, home.start, &mut moved);
            debug_assert!(is_free, "{address:#x} is in use");
        }
        for (address, _) in free {
            self.away.remove(&address);
        }
    }

    /// Moves free parts into a range, so that `bytes` bytes are free there. Returns `false` if no
    /// range fits.
    pub(crate) fn reuse(
        &mut self,
        heap: &mut Heap,
        bytes: u64,
        mut moved: impl FnMut(Segment, Segment),
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        self.recall(heap, &mut moved);
        let free: Addresses = heap
            .free_segments()
            .iter()
            .map(|segment| segment.start)
            .collect();
        let window = self
            .ranges
            .iter_mut()
            .find_map(|range| Some((range.window(bytes, &free)?, range)));
        let Some((window, range)) = window else {
            return false;
        };
        self.uses += 1;
        range.last_use = self.uses;
        let addresses = range.addresses().skip(window.start);
        let parts: Vec<_> = addresses.zip(&range.slots[window]).collect();
        for run in parts.chunk_by(|(_, left), (_, right)| left.home.end() == right.home.start) {
            let (to, first) = &run[0];
            let from = Segment {
                start: first.home.start,
                length: run.iter().map(|(_, slot)| slot.home.length).sum(),
            };
            let is_free = heap.move_segments(from, to.start, &mut moved);
            debug_assert!(is_free, "{:#x} is in use", from.start);
        }
        let away = parts.iter().map(|(to, slot)| (to.start, slot.home));
        self.away.extend(away);
        true
    }

    /// Adds a range that maps parts from `start` on, which are free, and which the heap does not
    /// have. They are now in use in the range.
    pub(crate) fn insert(
        &mut self,
        heap: &mut Heap,
        start: u64,
        parts: &[Segment],
        mut moved: impl FnMut(Segment, Segment),
    ) {
        self.uses += 1;
        let slots = parts.iter().map(|home| Slot {
            home: *home,
            is_mapped: true,
        });
        let range = StitchedRange {
            start,
            length: parts.iter().map(|part| part.length).sum(),
            slots: slots.collect(),
            last_use: self.uses,
        };
        for (to, home) in range.addresses().zip(parts) {
            moved(*home, to);
            heap.add_segment(to);
            self.away.insert(to.start, *home);
        }
        self.ranges.push(range);
    }

    /// Returns the address at which the memory in use at `address` has its home.
    #[cfg(test)]
    pub(crate) fn home(&self, address: u64) -> u64 {
        let before = self.away.range(..=address).next_back();
        match before {
            Some((start, home)) if address < start + home.length => home.start + (address - start),
            _ => address,
        }
    }

    /// Takes out the least recently used range of which no part is in use, if the ranges and one of
    /// `bytes` bytes would be too large for a memory of `reserved_bytes` bytes.
    pub(crate) fn take_excess(&mut self, bytes: u64, reserved_bytes: u64) -> Option<StitchedRange> {
        let total: u64 = self.ranges.iter().map(|range| range.segment().length).sum();
        if total + bytes <= reserved_bytes.saturating_mul(MAX_RANGES_PER_MEMORY) {
            return None;
        }
        self.take_unused()
    }

    /// Takes out the least recently used range of which no part is in use.
    pub(crate) fn take_unused(&mut self) -> Option<StitchedRange> {
        let away = &self.away;
        let unused = self.ranges.iter().enumerate().filter(|(_, range)| {
            let Segment { start, length } = range.segment();
            away.range(start..start + length).next().is_none()
        });
        let (index, _) = unused.min_by_key(|(_, range)| range.last_use)?;
        Some(self.ranges.remove(index))
    }

    /// Adds a range back that could not be unmapped.
    pub(crate) fn restore(&mut self, range: StitchedRange) {
        self.ranges.push(range);
    }

    /// Calls `unmap` with the addresses of the part with this home in every range.
    pub(crate) fn remove_part<E>(
        &mut self,
        home: u64,
        mut unmap: impl FnMut(Segment) -> Result<(), E>,
    ) -> Result<(), E> {
        for range in &mut self.ranges {
            let addresses: Vec<_> = range.addresses().collect();
            for (slot, addresses) in range.slots.iter_mut().zip(addresses) {
                if slot.is_mapped && slot.home.start == home {
                    unmap(addresses)?;
                    slot.is_mapped = false;
                }
            }
        }
        Ok(())
    }
}

impl StitchedRange {
    /// Returns all addresses.
    pub(crate) fn segment(&self) -> Segment {
        Segment {
            start: self.start,
            length: self.length,
        }
    }

    /// Returns the addresses with memory, in as few segments as possible.
    pub(crate) fn mapped(&self) -> Vec<Segment> {
        let mut runs: Vec<Segment> = Vec::new();
        for (addresses, slot) in self.addresses().zip(&self.slots) {
            if !slot.is_mapped {
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end() == addresses.start => last.length += addresses.length,
                _ => runs.push(addresses),
            }
        }
        runs
    }

    /// Records that addresses, which are those of whole slots, are unmapped.
    pub(crate) fn set_unmapped(&mut self, unmapped: Segment) {
        let addresses: Vec<_> = self.addresses().collect();
        for (slot, addresses) in self.slots.iter_mut().zip(addresses) {
            let is_unmapped = (unmapped.start..unmapped.end()).contains(&addresses.start);
            slot.is_mapped &= !is_unmapped;
        }
    }

    /// Returns the addresses of each slot.
    fn addresses(&self) -> impl Iterator<Item = Segment> {
        self.slots.iter().scan(self.start, |next, slot| {
            let start = *next;
            *next += slot.home.length;
            Some(Segment {
                start,
                length: slot.home.length,
            })
        })
    }

    /// Returns the first adjacent slots that have `bytes` bytes, and whose parts are all in `free`.
    fn window(&self, bytes: u64, free: &Addresses) -> Option<Range<usize>> {
        if self.length < bytes {
            return None;
        }
        let mut first = 0;
        let mut total = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            if !slot.is_mapped || !free.contains(&slot.home.start) {
                first = index + 1;
                total = 0;
                continue;
            }
            total += slot.home.length;
            if total >= bytes {
                return Some(first..index + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::StreamId;

    const PART: u64 = 0x1000;
    const BYTES: u64 = 4 * PART;

    fn part(start: u64) -> Segment {
        Segment {
            start,
            length: PART,
        }
    }

    /// Returns a heap of eight parts, every second of which is in use, and a stitched range of the
    /// others at 0x100000.
    fn stitched() -> (Heap, Stitching) {
        let mut heap = Heap::new(true);
        for index in 0..8 {
            heap.add_segment(part((index + 1) * PART));
        }
        for index in 0..8 {
            assert_eq!(
                heap.take_range(StreamId(1), PART, 1),
                Some((index + 1) * PART)
            );
        }
        for index in (0..8).step_by(2) {
            heap.free_range(StreamId::ANY, (index + 1) * PART, PART);
        }
        let mut stitching = Stitching::default();
        assert_eq!(stitching.idle_limit(1 << 40), u64::MAX);
        let parts = heap
            .remove_free_segments(BYTES)
            .expect("four parts are free");
        let mut moves = Vec::new();
        stitching.insert(&mut heap, 0x10_0000, &parts, |from, to| {
            moves.push((from.start, to.start));
        });
        assert_eq!(
            moves,
            [
                (0x1000, 0x10_0000),
                (0x3000, 0x10_1000),
                (0x5000, 0x10_2000),
                (0x7000, 0x10_3000)
            ]
        );
        (heap, stitching)
    }

    #[test]
    fn memory_returns_home_when_all_of_a_part_is_free() {
        let (mut heap, mut stitching) = stitched();
        let block = heap.take_range(StreamId(1), PART + 0x200, 1);
        assert_eq!(block, Some(0x10_0000));
        stitching.recall(&mut heap, |_, _| {});
        assert_eq!(stitching.home(0x10_1200), 0x3200);
        assert_eq!(stitching.home(0x10_2000), 0x10_2000, "it is at home");
        assert_eq!(heap.free_before(0x10_2000), PART - 0x200);
        assert!(stitching.take_unused().is_none());
        heap.free_range(StreamId(1), 0x10_0000, PART + 0x200);
        stitching.recall(&mut heap, |_, _| {});
        assert_eq!(stitching.home(0x10_1200), 0x3200, "only a stream has it");
        heap.release(StreamId(1), crate::cache::Epoch::LAST);
        stitching.recall(&mut heap, |_, _| {});
        assert_eq!(heap.segments().len(), 8);
        assert_eq!(heap.free_before(0x2000), PART);
        assert!(stitching.take_unused().is_some());
    }

    #[test]
    fn range_is_used_again_without_a_part_that_is_in_use() {
        let (mut heap, mut stitching) = stitched();
        stitching.recall(&mut heap, |_, _| {});
        assert_eq!(heap.take_range(StreamId(1), PART, 1), Some(0x1000));
        assert!(!stitching.reuse(&mut heap, BYTES, |_, _| {}));
        let mut moves = Vec::new();
        assert!(stitching.reuse(&mut heap, 2 * PART, |from, to| {
            moves.push((from.start, to.start));
        }));
        assert_eq!(moves, [(0x3000, 0x10_1000), (0x5000, 0x10_2000)]);
        assert_eq!(heap.take_range(StreamId(2), 2 * PART, 1), Some(0x10_1000));
        assert!(
            !stitching.reuse(&mut heap, 2 * PART, |_, _| {}),
            "one part is left"
        );
    }

    /// The least recently used range is unmapped first.
    #[test]
    fn ranges_are_bounded() {
        let (mut heap, mut stitching) = stitched();
        stitching.recall(&mut heap, |_, _| {});
        let parts = heap
            .remove_free_segments(2 * PART)
            .expect("four parts are free");
        stitching.insert(&mut heap, 0x20_0000, &parts, |_, _| {});
        assert!(stitching.reuse(&mut heap, BYTES, |_, _| {}));
        stitching.recall(&mut heap, |_, _| {});
        assert!(stitching.take_excess(PART, PART).is_none());
        let excess = stitching
            .take_excess(11 * PART, PART)
            .map(|range| range.mapped());
        let expected = Segment {
            start: 0x20_0000,
            length: 2 * PART,
        };
        assert_eq!(excess, Some(vec![expected]));
        assert!(stitching.take_excess(11 * PART, PART).is_none());
        assert_eq!(stitching.idle_limit(1 << 40), 1 << 35);
        assert_eq!(stitching.idle_limit(1), MIN_IDLE_BYTES);
    }

    #[test]
    fn removed_part_leaves_a_hole() {
        let (mut heap, mut stitching) = stitched();
        stitching.recall(&mut heap, |_, _| {});
        let mut unmapped = Vec::new();
        let removed = stitching.remove_part(0x3000, |addresses| {
            unmapped.push(addresses);
            Ok::<_, ()>(())
        });
        assert_eq!(removed, Ok(()));
        assert_eq!(unmapped, [part(0x10_1000)]);
        assert!(heap.remove_segment(part(0x3000)));
        assert_eq!(
            stitching.remove_part(0x5000, |_| Err("refused")),
            Err("refused")
        );
        assert!(!stitching.reuse(&mut heap, 3 * PART, |_, _| {}));
        assert!(stitching.reuse(&mut heap, 2 * PART, |_, _| {}));
        stitching.recall(&mut heap, |_, _| {});
        let mut range = stitching.take_unused().expect("nothing is in use");
        let runs = [
            part(0x10_0000),
            Segment {
                start: 0x10_2000,
                length: 2 * PART,
            },
        ];
        assert_eq!(range.mapped(), runs);
        assert_eq!(range.segment().length, BYTES);
        range.set_unmapped(runs[1]);
        assert_eq!(range.mapped(), runs[..1]);
        stitching.restore(range);
        assert!(stitching.reuse(&mut heap, PART, |_, _| {}));
        assert!(!stitching.reuse(&mut heap, 2 * PART, |_, _| {}));
    }
}
