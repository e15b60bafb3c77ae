//! Free memory: blocks by size class, and ranges that coalesce.

use std::collections::{BTreeMap, BTreeSet};

use super::free_lists::FreeLists;
use super::size_class::{BlockSize, GRANULE, SizeClass};

/// The identity of a stream.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct StreamId(pub(crate) u64);

/// A point in the order in which a stream frees memory. Memory freed later has a later epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Epoch(pub(crate) u64);

/// A range of memory obtained in one piece.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) length: u64,
}

/// A free range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FreeRange {
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// The stream to which it is available.
    pub(crate) stream: StreamId,
    /// The latest epoch of memory in the range. Unused if the range is available to every stream.
    pub(crate) epoch: Epoch,
}

/// The free memory of a set of segments, by stream.
///
/// Freed blocks are kept in lists by size class until an allocation fails. Then they become ranges,
/// which coalesce with adjacent ranges of the same stream. Allocations use the best fit: the
/// smallest sufficient range.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// `true` if ranges coalesce across segments, as in one reserved virtual address range.
    is_contiguous: bool,
    /// The length of each segment, by start address.
    segments: BTreeMap<u64, u64>,
    /// The free ranges by address.
    ranges: BTreeMap<u64, FreeRange>,
    streams: BTreeMap<StreamId, StreamHeap>,
}

/// The free memory of one stream.
#[derive(Debug, Default)]
struct StreamHeap {
    blocks: FreeLists,
    /// The free ranges, by length and address.
    ranges: BTreeSet<(u64, u64)>,
    /// The epoch of memory that is freed now.
    epoch: Epoch,
    /// `true` if memory was freed in this epoch.
    has_freed: bool,
}

/// The size in bytes of the ranges that small blocks are cut from, so that they are adjacent.
const SPAN: u64 = 64 << 10;

impl StreamId {
    /// Every stream: work that used the memory has completed.
    pub(crate) const ANY: Self = Self(0);
}

impl Epoch {
    /// The epoch that covers all memory.
    pub(crate) const LAST: Self = Self(u64::MAX);
}

impl Segment {
    /// No addresses.
    pub(crate) const EMPTY: Self = Self {
        start: 0,
        length: 0,
    };

    pub(crate) fn end(self) -> u64 {
        self.start + self.length
    }
}

impl FreeRange {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }
}

impl Heap {
    /// Creates an empty heap.
    pub(crate) fn new(is_contiguous: bool) -> Self {
        Self {
            is_contiguous,
            ..Self::default()
        }
    }

    /// Adds a segment, which is available to every stream.
    pub(crate) fn add_segment(&mut self, segment: Segment) {
        self.segments.insert(segment.start, segment.length);
        self.free_range(StreamId::ANY, segment.start, segment.length);
    }

    /// Removes a segment if all of it is available to every stream.
    pub(crate) fn remove_segment(&mut self, segment: Segment) -> bool {
        let Some(around) = self.free_around(segment) else {
            return false;
        };
        let Segment { start, length } = segment;
        self.carve(around, start, length);
        self.segments.remove(&start);
        true
    }

    /// Moves the segments in `from` to the addresses from `to` on, if all of them are available to
    /// every stream. Calls `moved` with the old and the new addresses of each before it is free
    /// there.
    pub(crate) fn move_segments(
        &mut self,
        from: Segment,
        to: u64,
        mut moved: impl FnMut(Segment, Segment),
    ) -> bool {
        let Some(around) = self.free_around(from) else {
            return false;
        };
        self.carve(around, from.start, from.length);
        let old: Vec<_> = self
            .segments
            .range(from.start..from.end())
            .map(|(&start, &length)| Segment { start, length })
            .collect();
        for segment in old {
            let new = Segment {
                start: to + (segment.start - from.start),
                length: segment.length,
            };
            moved(segment, new);
            self.segments.remove(&segment.start);
            self.segments.insert(new.start, new.length);
        }
        self.free_range(StreamId::ANY, to, from.length);
        true
    }

    /// Returns the number of bytes from `start` on that are available to every stream.
    pub(crate) fn free_after(&self, start: u64) -> u64 {
        let byte = Segment { start, length: 1 };
        self.free_around(byte)
            .map_or(0, |range| range.end() - start)
    }

    /// Returns the range around a segment that is available to every stream.
    fn free_around(&self, Segment { start, length }: Segment) -> Option<FreeRange> {
        let (_, range) = self.ranges.range(..=start).next_back()?;
        (range.stream == StreamId::ANY && range.end() >= start + length).then_some(*range)
    }

    /// Returns the segments that are available to every stream. Those in the shortest ranges come
    /// first.
    pub(crate) fn free_segments(&self) -> Vec<Segment> {
        let Some(any) = self.streams.get(&StreamId::ANY) else {
            return Vec::new();
        };
        let mut free = Vec::new();
        for &(range_length, range) in &any.ranges {
            let end = range + range_length;
            let segments = self.segments.range(range..end);
            let segments = segments.map(|(&start, &length)| Segment { start, length });
            free.extend(segments.take_while(|segment| segment.end() <= end));
        }
        free
    }

    /// Removes segments that are available to every stream until they have `bytes` bytes in all,
    /// and returns them. Those in the shortest ranges come first. Returns `None` if there are too
    /// few.
    pub(crate) fn remove_free_segments(&mut self, bytes: u64) -> Option<Vec<Segment>> {
        let mut free = self.free_segments();
        let mut total = 0;
        let sufficient = free.iter().position(|segment| {
            total += segment.length;
            total >= bytes
        })?;
        free.truncate(sufficient + 1);
        free.retain(|segment| self.remove_segment(*segment));
        Some(free)
    }

    /// Returns the segments by address. Adjacent ones across which memory coalesces are one.
    pub(crate) fn joined_segments(&self) -> Vec<Segment> {
        let mut joined: Vec<Segment> = Vec::new();
        for segment in self.segments() {
            match joined.last_mut() {
                Some(last) if self.is_contiguous && last.end() == segment.start => {
                    last.length += segment.length;
                }
                _ => joined.push(segment),
            }
        }
        joined
    }

    /// Returns the segments by address.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.segments
            .iter()
            .map(|(start, length)| Segment {
                start: *start,
                length: *length,
            })
            .collect()
    }

    /// Returns the size of all segments in bytes.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.segments.values().sum()
    }

    /// Takes up to `most` blocks of a class for `stream` and appends them to `blocks`.
    pub(crate) fn take_blocks(
        &mut self,
        stream: StreamId,
        class: SizeClass,
        most: usize,
        blocks: &mut Vec<u64>,
    ) {
        let list = self
            .streams
            .get_mut(&stream)
            .map(|heap| heap.blocks.list(class))
            .filter(|list| !list.is_empty());
        if let Some(list) = list {
            blocks.extend(list.drain(list.len().saturating_sub(most)..));
            return;
        }
        let bytes = class.bytes();
        let count = (SPAN / bytes).clamp(1, most.max(1) as u64);
        if let Some(start) = self.take_range(stream, bytes * count, GRANULE) {
            // In this order, the lowest address is allocated first.
            blocks.extend((0..count).rev().map(|block| start + block * bytes));
        } else if count > 1 {
            blocks.extend(self.take_range(stream, bytes, GRANULE));
        }
    }

    /// Takes `length` bytes for `stream`, aligned to `alignment`, from the smallest sufficient
    /// range: one of the stream if possible, otherwise one available to every stream.
    pub(crate) fn take_range(
        &mut self,
        stream: StreamId,
        length: u64,
        alignment: u64,
    ) -> Option<u64> {
        let take =
            |heap: &mut Self, stream| heap.take_range_from(stream, length, alignment.max(GRANULE));
        take(self, stream).or_else(|| take(self, StreamId::ANY))
    }

    /// Frees a block for `stream`.
    pub(crate) fn free(&mut self, stream: StreamId, size: BlockSize, address: u64) {
        match size {
            BlockSize::Class(class) => {
                let heap = self.streams.entry(stream).or_default();
                heap.blocks.list(class).push(address);
                heap.has_freed = true;
            }
            BlockSize::Large(length) => self.free_range(stream, address, length),
        }
    }

    /// Frees a range for `stream`.
    pub(crate) fn free_range(&mut self, stream: StreamId, start: u64, length: u64) {
        let heap = self.streams.entry(stream).or_default();
        heap.has_freed = true;
        let epoch = heap.epoch;
        self.coalesce(FreeRange {
            start,
            length,
            stream,
            epoch,
        });
    }

    /// Coalesces the blocks freed on a stream.
    pub(crate) fn coalesce_blocks(&mut self, stream: StreamId) {
        let Some(heap) = self.streams.get_mut(&stream) else {
            return;
        };
        let mut blocks = Vec::new();
        let epoch = heap.epoch;
        heap.blocks.drain(|class, start| {
            blocks.push(FreeRange {
                start,
                length: class.bytes(),
                stream,
                epoch,
            });
        });
        blocks.into_iter().for_each(|block| self.coalesce(block));
    }

    /// Coalesces the blocks of all streams.
    pub(crate) fn coalesce_all(&mut self) {
        self.streams()
            .into_iter()
            .for_each(|stream| self.coalesce_blocks(stream));
    }

    /// Begins a new epoch of a stream if the stream freed memory in the current one, which is
    /// returned. Once the stream has passed a point recorded after this call, the returned epoch
    /// may be [released](Heap::release).
    pub(crate) fn begin_epoch(&mut self, stream: StreamId) -> Option<Epoch> {
        self.coalesce_blocks(stream);
        let heap = self
            .streams
            .get_mut(&stream)
            .filter(|heap| heap.has_freed)?;
        let epoch = heap.epoch;
        (heap.epoch, heap.has_freed) = (Epoch(epoch.0 + 1), false);
        Some(epoch)
    }

    /// Begins a new epoch of every stream. Returns the epochs that cover all memory freed so far.
    pub(crate) fn begin_epochs(&mut self) -> Vec<(StreamId, Epoch)> {
        let streams = self
            .streams()
            .into_iter()
            .filter(|stream| *stream != StreamId::ANY);
        let begun = streams
            .filter_map(|stream| {
                self.begin_epoch(stream);
                let last = self.streams.get(&stream)?.epoch.0.checked_sub(1)?;
                Some((stream, Epoch(last)))
            })
            .collect();
        self.coalesce_blocks(StreamId::ANY);
        begun
    }

    /// Makes the memory that a stream freed up to an epoch available to every stream.
    pub(crate) fn release(&mut self, stream: StreamId, epoch: Epoch) {
        let Some(heap) = self.streams.get(&stream) else {
            return;
        };
        let ranges = heap
            .ranges
            .iter()
            .map(|(_, start)| self.ranges[start])
            .filter(|range| range.epoch <= epoch);
        for range in ranges.collect::<Vec<_>>() {
            self.remove(range);
            self.coalesce(FreeRange {
                stream: StreamId::ANY,
                ..range
            });
        }
    }

    /// Removes a stream that frees no more memory. Returns `false` if memory is available to this
    /// stream only.
    pub(crate) fn forget(&mut self, stream: StreamId) -> bool {
        let is_empty = self
            .streams
            .get(&stream)
            .is_none_or(|heap| heap.blocks.is_empty() && heap.ranges.is_empty());
        if is_empty {
            self.streams.remove(&stream);
        }
        is_empty
    }

    /// Returns `true` if a coalesced range is available to `stream` only.
    pub(crate) fn has_ranges(&self, stream: StreamId) -> bool {
        self.streams
            .get(&stream)
            .is_some_and(|heap| !heap.ranges.is_empty())
    }

    /// Returns the size of all free memory in bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        let blocks: u64 = self.streams.values().map(|heap| heap.blocks.bytes()).sum();
        blocks + self.ranges.values().map(|range| range.length).sum::<u64>()
    }

    /// Returns the length of the longest range available to `stream`.
    pub(crate) fn longest(&self, stream: StreamId) -> u64 {
        [stream, StreamId::ANY]
            .iter()
            .filter_map(|stream| Some(self.streams.get(stream)?.ranges.last()?.0))
            .max()
            .unwrap_or_default()
    }

    /// Returns the length of the range that ends at `end` and is available to every stream.
    pub(crate) fn free_before(&self, end: u64) -> u64 {
        let before = self
            .before(end)
            .filter(|range| range.end() == end && range.stream == StreamId::ANY);
        before.map_or(0, |range| range.length)
    }

    /// Returns the free ranges by address, including blocks.
    #[cfg(test)]
    pub(crate) fn free_ranges(&self) -> Vec<FreeRange> {
        let blocks = self.streams.iter().flat_map(|(stream, heap)| {
            heap.blocks.iter().map(|(class, start)| FreeRange {
                start,
                length: class.bytes(),
                stream: *stream,
                epoch: heap.epoch,
            })
        });
        let mut ranges: Vec<FreeRange> = self.ranges.values().copied().chain(blocks).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }

    fn streams(&self) -> Vec<StreamId> {
        self.streams.keys().copied().collect()
    }

    fn take_range_from(&mut self, stream: StreamId, length: u64, alignment: u64) -> Option<u64> {
        let ranges = self.streams.get(&stream)?.ranges.range((length, 0)..);
        let aligned = ranges
            .map(|(available, start)| (*available, *start, start.next_multiple_of(alignment)));
        let (_, start, aligned) = { aligned }
            .find(|(available, start, aligned)| aligned - start + length <= *available)?;
        self.carve(self.ranges[&start], aligned, length);
        Some(aligned)
    }

    /// Splits a part out of a range and keeps the rest.
    fn carve(&mut self, range: FreeRange, start: u64, length: u64) {
        self.remove(range);
        let before = start - range.start;
        let after = range.end() - (start + length);
        if before != 0 {
            self.insert(FreeRange {
                length: before,
                ..range
            });
        }
        if after != 0 {
            self.insert(FreeRange {
                start: start + length,
                length: after,
                ..range
            });
        }
    }

    /// Inserts a range, coalescing it with adjacent ranges.
    fn coalesce(&mut self, mut range: FreeRange) {
        debug_assert!(!self.overlaps(&range), "{:#x} is freed twice", range.start);
        if let Some(before) = self
            .before(range.start)
            .filter(|before| self.are_adjacent(before, &range))
        {
            self.remove(before);
            (range.start, range.length) = (before.start, range.length + before.length);
            range.epoch = range.epoch.max(before.epoch);
        }
        if let Some(after) = self
            .ranges
            .get(&range.end())
            .copied()
            .filter(|after| self.are_adjacent(&range, after))
        {
            self.remove(after);
            range.length += after.length;
            range.epoch = range.epoch.max(after.epoch);
        }
        self.insert(range);
    }

    fn insert(&mut self, range: FreeRange) {
        self.ranges.insert(range.start, range);
        self.streams
            .entry(range.stream)
            .or_default()
            .ranges
            .insert((range.length, range.start));
    }

    fn remove(&mut self, range: FreeRange) {
        self.ranges.remove(&range.start);
        if let Some(heap) = self.streams.get_mut(&range.stream) {
            heap.ranges.remove(&(range.length, range.start));
        }
    }

    /// Returns the last range that starts before `address`.
    fn before(&self, address: u64) -> Option<FreeRange> {
        self.ranges
            .range(..address)
            .next_back()
            .map(|(_, range)| *range)
    }

    /// Returns `true` if two ranges may be joined.
    fn are_adjacent(&self, left: &FreeRange, right: &FreeRange) -> bool {
        let is_boundary = !self.is_contiguous && self.segments.contains_key(&right.start);
        left.end() == right.start && left.stream == right.stream && !is_boundary
    }

    fn overlaps(&self, range: &FreeRange) -> bool {
        self.before(range.end())
            .is_some_and(|before| before.end() > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(7);
    const B: StreamId = StreamId(8);

    fn segment(start: u64, length: u64) -> Segment {
        Segment { start, length }
    }

    fn heap() -> Heap {
        let mut heap = Heap::default();
        heap.add_segment(segment(0x1000, 0x1000));
        heap
    }

    fn ranges(heap: &Heap) -> Vec<(u64, u64, StreamId)> {
        heap.free_ranges()
            .iter()
            .map(|range| (range.start, range.length, range.stream))
            .collect()
    }

    #[test]
    fn neighbors_on_a_stream_are_joined() {
        let mut heap = heap();
        let blocks: Vec<u64> = (0..4)
            .map(|_| heap.take_range(A, 0x200, 0x200).expect("no free range"))
            .collect();
        assert_eq!(blocks, [0x1000, 0x1200, 0x1400, 0x1600]);
        heap.free_range(A, 0x1000, 0x200);
        heap.free_range(A, 0x1400, 0x200);
        assert_eq!(heap.longest(A), 0x800);
        let old = heap.begin_epoch(A).expect("memory was freed");
        heap.free_range(A, 0x1200, 0x200);
        assert_eq!(
            ranges(&heap),
            [(0x1000, 0x600, A), (0x1800, 0x800, StreamId::ANY)]
        );
        heap.release(A, old);
        assert_eq!(
            ranges(&heap).len(),
            2,
            "a joined range is as new as its newest part"
        );
        let new = heap.begin_epoch(A).expect("memory was freed");
        assert_eq!(heap.begin_epoch(A), None, "nothing was freed since");
        heap.release(A, new);
        assert_eq!(
            ranges(&heap),
            [
                (0x1000, 0x600, StreamId::ANY),
                (0x1800, 0x800, StreamId::ANY)
            ]
        );
        heap.free_range(StreamId::ANY, 0x1600, 0x200);
        assert_eq!(ranges(&heap), [(0x1000, 0x1000, StreamId::ANY)]);
    }

    #[test]
    fn memory_is_not_reused_across_streams() {
        let mut heap = heap();
        let all = heap.take_range(A, 0x1000, 0x200).expect("no free range");
        heap.free_range(A, all, 0x1000);
        assert_eq!(heap.take_range(B, 0x200, 0x200), None);
        assert_eq!(heap.take_range(A, 0x200, 0x200), Some(0x1000));
    }

    #[test]
    fn segments_are_joined_only_in_a_contiguous_heap() {
        for is_contiguous in [false, true] {
            let mut heap = Heap::new(is_contiguous);
            heap.add_segment(segment(0x1000, 0x1000));
            heap.add_segment(segment(0x2000, 0x800));
            assert_eq!(heap.take_range(A, 0x1200, 0x200).is_some(), is_contiguous);
        }
    }

    /// A segment is removed only if it is available to every stream.
    #[test]
    fn segment_in_use_is_not_removed() {
        let mut heap = heap();
        heap.add_segment(segment(0x2000, 0x800));
        let block = heap.take_range(A, 0x800, 0x200).expect("no free range");
        assert_eq!(block, 0x2000, "the shortest range that fits");
        assert!(!heap.remove_segment(segment(0x2000, 0x800)));
        heap.free_range(A, block, 0x800);
        assert!(!heap.remove_segment(segment(0x2000, 0x800)));
        heap.release(A, Epoch::LAST);
        assert_eq!(
            (heap.free_before(0x2800), heap.free_before(0x2700)),
            (0x800, 0)
        );
        assert!(heap.remove_segment(segment(0x2000, 0x800)));
        assert_eq!(heap.segments(), [segment(0x1000, 0x1000)]);
        assert_eq!((heap.reserved_bytes(), heap.free_bytes()), (0x1000, 0x1000));
    }

    /// Segments in the shortest ranges are removed first, and none that is partly in use.
    #[test]
    fn free_segments_are_removed() {
        let mut heap = Heap::new(true);
        for start in 1..=8 {
            heap.add_segment(segment(start * 0x1000, 0x1000));
        }
        for _ in 0..8 {
            heap.take_range(A, 0x1000, 0x200);
        }
        for start in [0x2000, 0x4000, 0x5000] {
            heap.free_range(StreamId::ANY, start, 0x1000);
        }
        heap.free_range(A, 0x7000, 0x1000);
        // Half of it is in use.
        heap.free_range(StreamId::ANY, 0x1000, 0x800);
        assert_eq!(heap.remove_free_segments(0x3800), None);
        assert_eq!(
            heap.remove_free_segments(0x1800),
            Some(vec![segment(0x2000, 0x1000), segment(0x4000, 0x1000)])
        );
        assert_eq!(
            heap.remove_free_segments(0x1000),
            Some(vec![segment(0x5000, 0x1000)])
        );
        assert_eq!(heap.reserved_bytes(), 0x5000);
        assert_eq!(
            heap.joined_segments(),
            [
                segment(0x1000, 0x1000),
                segment(0x3000, 0x1000),
                segment(0x6000, 0x3000)
            ]
        );
    }

    #[test]
    fn alignment_leaves_the_memory_before_the_block() {
        let mut heap = heap();
        assert_eq!(heap.take_range(A, 0x200, 0x200), Some(0x1000));
        assert_eq!(heap.take_range(A, 0x200, 0x800), Some(0x1800));
        assert_eq!(
            ranges(&heap),
            [
                (0x1200, 0x600, StreamId::ANY),
                (0x1a00, 0x600, StreamId::ANY)
            ]
        );
        assert_eq!(heap.take_range(A, 0x200, 0x1000), None);
    }
}
