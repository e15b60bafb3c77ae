//! Records of one thread's memory accesses, in a launch, a copy or a fill.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::mark::Mark;
use super::{Accessor, Marks};
use curium_ptx::exec::{AccessKind, Conflict, Watcher};

/// The number of cached steps. Most accesses of a kernel change equal marks in the same way.
const STEPS: usize = 64;

/// Records the accesses of an accessor.
#[derive(Debug)]
pub(crate) struct Watch {
    accessor: Accessor,
    steps: Box<[CachedStep; STEPS]>,
    /// The version of the host's clock at the last exchange.
    version: u64,
}

/// A step without a race. It never races later, because an accessor's clock only advances.
#[derive(Clone, Copy, Debug, Default)]
struct CachedStep {
    /// The kind of access and the mask of the bytes; 0 for no step.
    key: u32,
    before: u64,
    after: u64,
}

impl Watch {
    pub(super) fn new(accessor: Accessor) -> Self {
        Self {
            accessor,
            steps: Box::new([CachedStep::default(); STEPS]),
            version: u64::MAX,
        }
    }

    /// Records an access to a range of an allocation. Returns the first byte that races, and its
    /// conflict.
    #[inline]
    pub(super) fn record(
        &mut self,
        marks: &Marks,
        range: Range<u64>,
        how: AccessKind,
    ) -> Option<(u64, Conflict)> {
        marks.update(range, |mark, bytes| self.step(mark, bytes, how))
    }

    /// Records a write to all of an allocation.
    pub(super) fn record_all(&mut self, marks: &Marks) -> Option<(u64, Conflict)> {
        marks.update_all(|mark, bytes| self.step(mark, bytes, AccessKind::Write))
    }

    /// Returns the mark after an access, and the conflict of a race.
    #[inline]
    fn step(&mut self, mark: Mark, bytes: u8, how: AccessKind) -> (Mark, Option<Conflict>) {
        let key = u32::from(bytes) << 2 | how as u32;
        let before = mark.to_bits();
        let cached = &mut self.steps[position(before, key)];
        if cached.key == key && cached.before == before {
            return (Mark::from_bits(cached.after), None);
        }
        let (next, racing) = self.accessor.step(mark, how, bytes);
        if racing.is_none() {
            *cached = CachedStep {
                key,
                before,
                after: next.to_bits(),
            };
        }
        (next, racing.map(|racing| self.accessor.conflict(racing)))
    }

    /// Merges the clocks of the accessor and the host, unless they are already merged.
    fn exchange(&mut self) {
        let version = self.accessor.races.version.load(Ordering::Acquire);
        if version != self.version {
            // The host's clock may advance later, which the next exchange merges.
            self.version = version;
            self.accessor.races.exchange(self.accessor.ticket);
        }
    }
}

/// Returns the index of a step in the cache.
fn position(before: u64, key: u32) -> usize {
    let mixed = (before ^ before >> 32 ^ u64::from(key) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 58) as usize
}

/// An allocation: its address, its length, and its marks if races are checked.
pub(crate) type Marked = (u64, u64, Option<Arc<Marks>>);

/// The records of a worker of a launch.
pub(crate) struct LaunchWatch<'a> {
    watch: Watch,
    /// Finds the allocation that contains an address.
    find: Box<dyn Fn(u64) -> Option<Marked> + 'a>,
    /// The allocations that were accessed last.
    recent: [Marked; 4],
    next: usize,
}

impl<'a> LaunchWatch<'a> {
    pub(crate) fn new(accessor: Accessor, find: impl Fn(u64) -> Option<Marked> + 'a) -> Self {
        Self {
            watch: Watch::new(accessor),
            find: Box::new(find),
            recent: Default::default(),
            next: 0,
        }
    }

    /// Returns the index among the recent allocations of the one that contains an address.
    fn find(&mut self, address: u64) -> Option<usize> {
        let position = self
            .recent
            .iter()
            .position(|(base, size, _)| address.wrapping_sub(*base) < *size);
        if position.is_some() {
            return position;
        }
        let position = self.next;
        self.recent[position] = (self.find)(address)?;
        self.next = (position + 1) % self.recent.len();
        Some(position)
    }
}

impl fmt::Debug for LaunchWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchWatch")
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

impl Watcher for LaunchWatch<'_> {
    fn note(&mut self, address: u64, bytes: u64, how: AccessKind) -> Option<(u64, Conflict)> {
        let position = self.find(address)?;
        let (base, _, marks) = &self.recent[position];
        let offset = address - base;
        let conflict =
            self.watch
                .record(marks.as_deref()?, offset..offset.saturating_add(bytes), how);
        conflict.map(|(offset, conflict)| (base + offset, conflict))
    }

    fn exchange(&mut self) {
        self.watch.exchange();
    }
}
