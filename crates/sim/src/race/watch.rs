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
    steps: Box<[Known; STEPS]>,
    /// The version of the host's clock at the last exchange.
    version: u64,
}

/// A step without a race. It never races later, because an accessor's clock only advances.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The kind of access and the mask of the bytes; 0 for no step.
    key: u32,
    before: u64,
    after: u64,
}

impl Watch {
    pub(super) fn new(accessor: Accessor) -> Self {
        Self {
            accessor,
            steps: Box::new([Known::default(); STEPS]),
            version: u64::MAX,
        }
    }

    /// Records an access to a range of an allocation. Returns the first byte that races, and its rival.
    #[inline]
    pub(super) fn note(
        &mut self,
        marks: &Marks,
        range: Range<u64>,
        how: AccessKind,
    ) -> Option<(u64, Conflict)> {
        marks.update(range, |mark, bytes| self.step(mark, bytes, how))
    }

    /// Records a write to all of an allocation.
    pub(super) fn note_all(&mut self, marks: &Marks) -> Option<(u64, Conflict)> {
        marks.update_all(|mark, bytes| self.step(mark, bytes, AccessKind::Write))
    }

    /// Returns the mark after an access, and the rival of a race.
    #[inline]
    fn step(&mut self, mark: Mark, bytes: u8, how: AccessKind) -> (Mark, Option<Conflict>) {
        let key = u32::from(bytes) << 2 | how as u32;
        let before = mark.to_bits();
        let known = &mut self.steps[position(before, key)];
        if known.key == key && known.before == before {
            return (Mark::from_bits(known.after), None);
        }
        let (next, rival) = self.accessor.step(mark, how, bytes);
        if rival.is_none() {
            *known = Known {
                key,
                before,
                after: next.to_bits(),
            };
        }
        (next, rival.map(|rival| self.accessor.conflict(rival)))
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
    known: [Marked; 4],
    next: usize,
}

impl<'a> LaunchWatch<'a> {
    pub(crate) fn new(accessor: Accessor, find: impl Fn(u64) -> Option<Marked> + 'a) -> Self {
        Self {
            watch: Watch::new(accessor),
            find: Box::new(find),
            known: Default::default(),
            next: 0,
        }
    }

    /// Returns the index among the known allocations of the one that contains an address.
    fn find(&mut self, address: u64) -> Option<usize> {
        let holds = |(base, size, _): &(u64, u64, _)| address.wrapping_sub(*base) < *size;
        if let Some(position) = self.known.iter().position(holds) {
            return Some(position);
        }
        let position = self.next;
        self.known[position] = (self.find)(address)?;
        self.next = (position + 1) % self.known.len();
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
        let (base, _, marks) = &self.known[position];
        let offset = address - base;
        let found = self
            .watch
            .note(marks.as_deref()?, offset..offset.saturating_add(bytes), how);
        found.map(|(at, conflict)| (base + at, conflict))
    }

    fn exchange(&mut self) {
        self.watch.exchange();
    }
}
