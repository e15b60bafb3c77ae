//! One thread's notes of what a launch, a copy or a fill accesses.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::mark::Mark;
use super::{Accessor, Marks};
use crate::exec::{Conflict, Use, Watcher};

/// Steps that are remembered: what became of a mark, which is the same for most of what a kernel accesses.
const STEPS: usize = 64;

/// Takes notes for an accessor.
#[derive(Debug)]
pub(crate) struct Watch {
    accessor: Accessor,
    steps: Box<[Known; STEPS]>,
    /// The version of what the host knew when this was exchanged last.
    version: u64,
}

/// A step that races with nobody. It stays so, since what an accessor comes after only becomes more.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// How and which bytes; 0 for no step.
    key: u32,
    before: u64,
    after: u64,
}

impl Watch {
    pub(super) fn new(accessor: Accessor) -> Self {
        Self { accessor, steps: Box::new([Known::default(); STEPS]), version: u64::MAX }
    }

    /// Notes an access of a range of an allocation. The first byte that races, and with whom.
    #[inline]
    pub(super) fn note(&mut self, marks: &Marks, range: Range<u64>, how: Use) -> Option<(u64, Conflict)> {
        marks.update(range, |mark, bytes| self.step(mark, bytes, how))
    }

    /// Notes that all of an allocation is written.
    pub(super) fn note_all(&mut self, marks: &Marks) -> Option<(u64, Conflict)> {
        marks.update_all(|mark, bytes| self.step(mark, bytes, Use::Write))
    }

    /// Returns the mark behind an access, and whom that races with.
    #[inline]
    fn step(&mut self, mark: Mark, bytes: u8, how: Use) -> (Mark, Option<Conflict>) {
        let key = u32::from(bytes) << 2 | how as u32;
        let before = mark.to_bits();
        let known = &mut self.steps[position(before, key)];
        if known.key == key && known.before == before {
            return (Mark::from_bits(known.after), None);
        }
        let (next, rival) = self.accessor.step(mark, how, bytes);
        if rival.is_none() {
            *known = Known { key, before, after: next.to_bits() };
        }
        (next, rival.map(|rival| self.accessor.conflict(rival)))
    }

    /// Has the accessor and the host know all that either knows, unless they do.
    fn exchange(&mut self) {
        let version = self.accessor.races.version.load(Ordering::Acquire);
        if version != self.version {
            // What others tell the host from now on is for the next time.
            self.version = version;
            self.accessor.races.exchange(self.accessor.ticket);
        }
    }
}

/// Returns where a step is remembered.
fn position(before: u64, key: u32) -> usize {
    let mixed = (before ^ before >> 32 ^ u64::from(key) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 58) as usize
}

/// An allocation: where it begins, its length, and its marks if it has some.
pub(crate) type Marked = (u64, u64, Option<Arc<Marks>>);

/// The notes of a worker of a launch.
pub(crate) struct LaunchWatch<'a> {
    watch: Watch,
    /// Finds the allocation that an address is in.
    find: Box<dyn Fn(u64) -> Option<Marked> + 'a>,
    /// The last allocations.
    known: [Marked; 4],
    next: usize,
}

impl<'a> LaunchWatch<'a> {
    pub(crate) fn new(accessor: Accessor, find: impl Fn(u64) -> Option<Marked> + 'a) -> Self {
        Self { watch: Watch::new(accessor), find: Box::new(find), known: Default::default(), next: 0 }
    }

    /// Returns the position among the known allocations of the one that an address is in.
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
        f.debug_struct("LaunchWatch").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl Watcher for LaunchWatch<'_> {
    fn note(&mut self, address: u64, bytes: u64, how: Use) -> Option<(u64, Conflict)> {
        let position = self.find(address)?;
        let (base, _, marks) = &self.known[position];
        let offset = address - base;
        let found = self.watch.note(marks.as_deref()?, offset..offset.saturating_add(bytes), how);
        found.map(|(at, conflict)| (base + at, conflict))
    }

    fn exchange(&mut self) {
        self.watch.exchange();
    }
}
