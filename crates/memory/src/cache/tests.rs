//! The heap against a model that records the state of every granule.

use super::size_class::SizeClass;
use super::thread_cache::ThreadCache;
use super::{BlockSize, Epoch, GRANULE, Heap, Segment, StreamId};

/// The expected state of a granule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Granule {
    InUse,
    Free(StreamId, Epoch),
}

/// A small pseudorandom number generator: splitmix64.
struct Numbers(fastrand::Rng);

/// A heap, its expected contents, and the blocks in use.
struct Model {
    heap: Heap,
    granules: Vec<Granule>,
    live: Vec<(u64, BlockSize)>,
    marked: Vec<(StreamId, Epoch)>,
    /// The current epoch of each stream, by stream number.
    epochs: Vec<Epoch>,
}

const BASE: u64 = 1 << 40;
/// The number of granules in each of two adjacent regions.
const REGION: usize = if cfg!(miri) { 2048 } else { 40_960 };
const STREAMS: u64 = 3;

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Returns a size whose logarithm is uniformly distributed.
    fn size(&mut self) -> usize {
        let log = self.below(23);
        (1 + self.below(1 << log)) as usize
    }
}

impl Model {
    fn new() -> Self {
        let mut heap = Heap::default();
        for region in 0..2 {
            let start = BASE + (region * REGION) as u64 * GRANULE;
            let length = REGION as u64 * GRANULE;
            heap.add_segment(Segment { start, length });
        }
        Self {
            heap,
            granules: vec![Granule::Free(StreamId::ANY, Epoch::default()); 2 * REGION],
            live: Vec::new(),
            marked: Vec::new(),
            epochs: vec![Epoch::default(); STREAMS as usize + 1],
        }
    }

    fn range(&self, address: u64, size: BlockSize) -> std::ops::Range<usize> {
        assert!(
            address >= BASE && (address - BASE).is_multiple_of(GRANULE),
            "{address:#x} is no block"
        );
        let first = ((address - BASE) / GRANULE) as usize;
        let last = first + (size.bytes() / GRANULE) as usize;
        assert!(
            last <= self.granules.len(),
            "{address:#x} with {size:?} is outside"
        );
        assert!(
            first / REGION == (last - 1) / REGION,
            "{address:#x} with {size:?} is in two regions"
        );
        first..last
    }

    /// Records that the heap allocated a block.
    fn took(&mut self, stream: StreamId, address: u64, size: BlockSize) {
        for granule in self.range(address, size) {
            let free = self.granules[granule];
            let may = matches!(free, Granule::Free(whose, _) if whose == stream || whose == StreamId::ANY);
            assert!(may, "{stream:?} got granule {granule}, which is {free:?}");
            self.granules[granule] = Granule::InUse;
        }
        self.live.push((address, size));
    }

    fn take(&mut self, stream: StreamId, numbers: &mut Numbers) {
        let size = BlockSize::from_bytes(numbers.size());
        match size {
            BlockSize::Class(class) if numbers.below(4) != 0 => {
                let mut blocks = Vec::new();
                let most = 1 + numbers.below(64) as usize;
                self.heap.take_blocks(stream, class, most, &mut blocks);
                assert!(blocks.len() <= most, "more than {most} blocks: {blocks:?}");
                blocks
                    .into_iter()
                    .for_each(|address| self.took(stream, address, size));
            }
            _ => {
                let alignment = GRANULE << numbers.below(4);
                if let Some(address) = self.heap.take_range(stream, size.bytes(), alignment) {
                    assert!(
                        address.is_multiple_of(alignment),
                        "{address:#x} is not aligned to {alignment}"
                    );
                    self.took(stream, address, size);
                }
            }
        }
    }

    fn give(&mut self, stream: StreamId, numbers: &mut Numbers) {
        if self.live.is_empty() {
            return;
        }
        let index = numbers.below(self.live.len() as u64) as usize;
        let (address, size) = self.live.swap_remove(index);
        self.heap.free(stream, size, address);
        let free = Granule::Free(stream, self.epochs[stream.0 as usize]);
        for granule in self.range(address, size) {
            assert_eq!(self.granules[granule], Granule::InUse);
            self.granules[granule] = free;
        }
    }

    fn begin_epoch(&mut self, stream: StreamId) {
        if let Some(epoch) = self.heap.begin_epoch(stream) {
            self.marked.push((stream, epoch));
            self.epochs[stream.0 as usize] = Epoch(epoch.0 + 1);
        }
    }

    fn release(&mut self, numbers: &mut Numbers) {
        if self.marked.is_empty() {
            return;
        }
        let index = numbers.below(self.marked.len() as u64) as usize;
        let (stream, epoch) = self.marked.swap_remove(index);
        self.heap.release(stream, epoch);
        for granule in &mut self.granules {
            if matches!(granule, Granule::Free(whose, freed) if *whose == stream && *freed <= epoch)
            {
                *granule = Granule::Free(StreamId::ANY, Epoch::default());
            }
        }
        self.assert_free_ranges();
    }

    /// Asserts that the heap's free ranges match the model's free granules. A coalesced range may
    /// have a later epoch than its granules.
    fn assert_free_ranges(&self) {
        let mut seen = 0;
        for range in self.heap.free_ranges() {
            for granule in self.range(range.start, BlockSize::Large(range.length)) {
                let Granule::Free(stream, epoch) = self.granules[granule] else {
                    panic!("granule {granule} is in use and free");
                };
                // Memory that was coalesced with newer memory is released with it.
                assert!(
                    stream == range.stream || range.stream != StreamId::ANY,
                    "granule {granule}: {stream:?}, {range:?}"
                );
                assert!(
                    epoch <= range.epoch || stream == StreamId::ANY,
                    "granule {granule}: {range:?}"
                );
                seen += 1;
            }
        }
        let free = self
            .granules
            .iter()
            .filter(|granule| matches!(granule, Granule::Free(..)))
            .count();
        assert_eq!(seen, free, "free granules");
    }

    /// Frees everything and asserts that the heap returns to its initial state.
    fn end(mut self, numbers: &mut Numbers) {
        while !self.live.is_empty() {
            let stream = StreamId(1 + numbers.below(STREAMS));
            self.give(stream, numbers);
        }
        for stream in (1..=STREAMS).map(StreamId) {
            self.heap.begin_epoch(stream);
            self.heap.release(stream, Epoch::LAST);
            assert!(
                self.heap.forget(stream),
                "all memory of {stream:?} is released"
            );
        }
        let ranges: Vec<_> = self
            .heap
            .free_ranges()
            .iter()
            .map(|range| (range.start, range.length))
            .collect();
        let length = REGION as u64 * GRANULE;
        assert_eq!(ranges, [(BASE, length), (BASE + length, length)]);
    }
}

#[test]
fn heap_matches_the_model() {
    let (seeds, steps) = if cfg!(miri) { (1, 40) } else { (40, 1500) };
    for seed in 0..seeds {
        let mut numbers = Numbers(fastrand::Rng::with_seed(seed));
        let mut model = Model::new();
        for _ in 0..steps {
            let stream = StreamId(1 + numbers.below(STREAMS));
            match numbers.below(20) {
                0..10 => model.take(stream, &mut numbers),
                10..17 => model.give(stream, &mut numbers),
                17 => model.heap.coalesce_blocks(stream),
                18 => model.begin_epoch(stream),
                _ => model.release(&mut numbers),
            }
        }
        model.assert_free_ranges();
        model.end(&mut numbers);
    }
}

#[test]
fn no_block_is_leaked() {
    let mut numbers = Numbers(fastrand::Rng::with_seed(3));
    let mut model = Model::new();
    let stream = StreamId(1);
    let size = BlockSize::from_bytes(4096);
    let BlockSize::Class(class) = size else {
        panic!("4 KiB have a class")
    };
    let mut cache = ThreadCache::with_idle_limit(u64::MAX);
    let mut used = Vec::new();
    for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
        if numbers.below(2) == 0 {
            let block = cache.take(size).or_else(|| {
                let mut blocks = Vec::new();
                model.heap.take_blocks(
                    stream,
                    class,
                    ThreadCache::capacity(class) / 2,
                    &mut blocks,
                );
                let block = blocks.pop();
                assert!(
                    blocks.into_iter().all(|block| cache.insert(size, block)),
                    "an empty bin has room"
                );
                block
            });
            used.push(block.expect("the region suffices"));
        } else if let Some(block) = used.pop()
            && !cache.insert(size, block)
        {
            cache
                .take_older_half(size)
                .into_iter()
                .for_each(|block| model.heap.free(stream, size, block));
            assert!(cache.insert(size, block), "half of the bin is empty");
        }
        if used.len() > 4000 {
            used.drain(..2000)
                .for_each(|block| model.heap.free(stream, size, block));
        }
    }
    let mut unique = used.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), used.len(), "a block was handed out twice");
    cache.drain(|size, block| model.heap.free(stream, size, block));
    used.into_iter()
        .for_each(|block| model.heap.free(stream, size, block));
    model.end(&mut numbers);
}

#[test]
fn classes_have_their_indices() {
    assert!(
        SizeClass::all()
            .enumerate()
            .all(|(index, class)| class == SizeClass::at(index))
    );
}
