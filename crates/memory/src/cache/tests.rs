//! The store against a model that knows of every granule whom it is free for.

use super::{Bins, Class, GRANULE, Generation, Owner, Rounded, Store};

/// What the model knows of a granule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Granule {
    InUse,
    Free(Owner, Generation),
}

/// A small generator of numbers: splitmix64.
struct Numbers(u64);

/// A store, what it should hold, and what is in use.
struct Model {
    store: Store,
    granules: Vec<Granule>,
    live: Vec<(u64, Rounded)>,
    marked: Vec<(Owner, Generation)>,
    /// The generation in which each owner frees, by the owner's number.
    generations: Vec<Generation>,
}

const BASE: u64 = 1 << 40;
/// Two regions of this many granules, side by side.
const REGION: usize = if cfg!(miri) { 2048 } else { 40_960 };
const OWNERS: u64 = 3;

impl Numbers {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[inline]
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A size whose order of magnitude is even.
    #[inline]
    fn size(&mut self) -> usize {
        let log = self.below(23);
        (1 + self.below(1 << log)) as usize
    }
}

impl Model {
    #[inline]
    fn new() -> Self {
        let mut store = Store::default();
        for region in 0..2 {
            let (start, length) = (BASE + (region * REGION) as u64 * GRANULE, REGION as u64 * GRANULE);
            store.heap_mut().declare(start, length);
            store.heap_mut().free(start, length, Owner::ALL, Generation::default());
        }
        Self {
            store,
            granules: vec![Granule::Free(Owner::ALL, Generation::default()); 2 * REGION],
            live: Vec::new(),
            marked: Vec::new(),
            generations: vec![Generation::default(); OWNERS as usize + 1],
        }
    }

    #[inline]
    fn range(&self, address: u64, size: Rounded) -> std::ops::Range<usize> {
        assert!(address >= BASE && (address - BASE).is_multiple_of(GRANULE), "{address:#x} is no block");
        let first = ((address - BASE) / GRANULE) as usize;
        let last = first + (size.bytes() / GRANULE) as usize;
        assert!(last <= self.granules.len(), "{address:#x} with {size:?} is outside");
        assert!(first / REGION == (last - 1) / REGION, "{address:#x} with {size:?} is in two regions");
        first..last
    }

    /// Notes that the store handed a block out.
    #[inline]
    fn took(&mut self, owner: Owner, address: u64, size: Rounded) {
        for granule in self.range(address, size) {
            let free = self.granules[granule];
            let may = matches!(free, Granule::Free(whose, _) if whose == owner || whose == Owner::ALL);
            assert!(may, "{owner:?} got granule {granule}, which is {free:?}");
            self.granules[granule] = Granule::InUse;
        }
        self.live.push((address, size));
    }

    #[inline]
    fn take(&mut self, owner: Owner, numbers: &mut Numbers) {
        let size = Rounded::up(numbers.size());
        match size {
            Rounded::Class(class) if numbers.below(4) != 0 => {
                let (mut blocks, most) = (Vec::new(), 1 + numbers.below(64) as usize);
                let count = self.store.take(owner, class, most, &mut blocks);
                assert!(count == blocks.len() && count <= most, "{count} of {most} blocks: {blocks:?}");
                blocks.into_iter().for_each(|address| self.took(owner, address, size));
            }
            _ => {
                let alignment = GRANULE << numbers.below(4);
                if let Some(address) = self.store.take_range(owner, size.bytes(), alignment) {
                    assert!(address.is_multiple_of(alignment), "{address:#x} is not aligned to {alignment}");
                    self.took(owner, address, size);
                }
            }
        }
    }

    #[inline]
    fn give(&mut self, owner: Owner, numbers: &mut Numbers) {
        if self.live.is_empty() {
            return;
        }
        let index = numbers.below(self.live.len() as u64) as usize;
        let (address, size) = self.live.swap_remove(index);
        self.store.give(owner, size, address);
        let free = Granule::Free(owner, self.generations[owner.0 as usize]);
        for granule in self.range(address, size) {
            assert_eq!(self.granules[granule], Granule::InUse);
            self.granules[granule] = free;
        }
    }

    #[inline]
    fn mark(&mut self, owner: Owner) {
        if let Some(generation) = self.store.mark(owner) {
            self.marked.push((owner, generation));
            self.generations[owner.0 as usize] = Generation(generation.0 + 1);
        }
    }

    #[inline]
    fn promote(&mut self, numbers: &mut Numbers) {
        if self.marked.is_empty() {
            return;
        }
        let index = numbers.below(self.marked.len() as u64) as usize;
        let (owner, generation) = self.marked.swap_remove(index);
        self.store.promote(owner, generation);
        for granule in &mut self.granules {
            if matches!(granule, Granule::Free(whose, freed) if *whose == owner && *freed <= generation) {
                *granule = Granule::Free(Owner::ALL, Generation::default());
            }
        }
        self.assert_free_ranges();
    }

    /// The store's free ranges are the model's free granules. Joined ranges may be newer than their granules.
    #[inline]
    fn assert_free_ranges(&self) {
        let mut seen = 0;
        for range in self.store.free_ranges() {
            for granule in self.range(range.start, Rounded::Large(range.length)) {
                let Granule::Free(owner, generation) = self.granules[granule] else {
                    panic!("granule {granule} is in use and free");
                };
                // What is joined with newer memory is promoted with it.
                assert!(owner == range.owner || range.owner != Owner::ALL, "granule {granule}: {owner:?}, {range:?}");
                assert!(generation <= range.generation || owner == Owner::ALL, "granule {granule}: {range:?}");
                seen += 1;
            }
        }
        let free = self.granules.iter().filter(|granule| matches!(granule, Granule::Free(..))).count();
        assert_eq!(seen, free, "free granules");
    }

    /// Frees everything, and sees it become what it was.
    #[inline]
    fn end(mut self, numbers: &mut Numbers) {
        while !self.live.is_empty() {
            let owner = Owner(1 + numbers.below(OWNERS));
            self.give(owner, numbers);
        }
        for owner in (1..=OWNERS).map(Owner) {
            self.store.mark(owner);
            self.store.promote(owner, Generation(u64::MAX));
            self.store.forget(owner);
        }
        assert_eq!(self.store.owners(), []);
        let ranges: Vec<_> = self.store.heap().ranges().map(|range| (range.start, range.length)).collect();
        let length = REGION as u64 * GRANULE;
        assert_eq!(ranges, [(BASE, length), (BASE + length, length)]);
    }
}

#[test]
fn store_agrees_with_a_model_of_every_granule() {
    let (seeds, steps) = if cfg!(miri) { (1, 100) } else { (40, 1500) };
    for seed in 0..seeds {
        let mut numbers = Numbers(seed);
        let mut model = Model::new();
        for _ in 0..steps {
            let owner = Owner(1 + numbers.below(OWNERS));
            match numbers.below(20) {
                0..10 => model.take(owner, &mut numbers),
                10..17 => model.give(owner, &mut numbers),
                17 => model.store.settle(owner),
                18 => model.mark(owner),
                _ => model.promote(&mut numbers),
            }
        }
        model.assert_free_ranges();
        model.end(&mut numbers);
    }
}

#[test]
fn bins_and_store_lose_no_block() {
    let mut numbers = Numbers(3);
    let mut model = Model::new();
    let (owner, size) = (Owner(1), Rounded::up(4096));
    let Rounded::Class(class) = size else { panic!("4 KiB have a class") };
    let (mut bins, mut used) = (Bins::new(), Vec::new());
    for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
        if numbers.below(2) == 0 {
            let block = bins.take(size).or_else(|| {
                let mut blocks = Vec::new();
                model.store.take(owner, class, Bins::capacity(class) / 2, &mut blocks);
                let block = blocks.pop();
                assert!(blocks.into_iter().all(|block| bins.put(size, block)), "an empty bin has room");
                block
            });
            used.push(block.expect("the region suffices"));
        } else if let Some(block) = used.pop()
            && !bins.put(size, block)
        {
            bins.overflow(size).addresses.into_iter().for_each(|block| model.store.give(owner, size, block));
            assert!(bins.put(size, block), "half of the bin is empty");
        }
        if used.len() > 4000 {
            used.drain(..2000).for_each(|block| model.store.give(owner, size, block));
        }
    }
    let mut unique = used.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), used.len(), "a block was handed out twice");
    bins.drain(|size, block| model.store.give(owner, size, block));
    used.into_iter().for_each(|block| model.store.give(owner, size, block));
    model.end(&mut numbers);
}

#[test]
fn class_of_every_index_is_itself() {
    assert!(Class::all().enumerate().all(|(index, class)| class == Class::at(index)));
}
