//! The facts that explain a fault.

use std::ops::Range;

use super::block::Block;
use super::warp::Failure;
use super::worker::Worker;
use crate::exec::check::fact::{Fact, FirstStore, ThreadRange, UnwrittenBytes};
use crate::exec::check::report::{Access, ReportKind};
use crate::exec::check::written::Written;
use crate::exec::memory::window::{BLOCK_STRIDE, resolve};
use crate::exec::space::Space;
use crate::exec::values::lane::{LANES, Lanes};

/// The maximum number of stores in a report.
const MAX_STORES: usize = 3;
/// The maximum number of ranges of threads in a list.
const MAX_RANGES: usize = 4;

impl Worker<'_> {
    /// Returns the facts that explain a fault.
    pub(super) fn facts(&self, block: &Block, warp: usize, failure: Failure) -> Vec<Fact> {
        let trap = failure.trap;
        match (trap.kind, trap.access, trap.space) {
            (ReportKind::Uninitialized, Some(access), Some(space))
                if !block.has_pending_copy(access, space) =>
            {
                self.uninitialized_facts(block, access, space)
            }
            (ReportKind::Assert, ..) => block
                .panic_operands(warp, failure, self)
                .into_iter()
                .collect(),
            (ReportKind::OverBudget(_), ..) => block.loop_facts(warp).to_vec(),
            (ReportKind::Deadlock, ..) => {
                let ended = block.ended_lanes(self.launch.block.iter().product());
                ended_threads(block, &ended).into_iter().collect()
            }
            (ReportKind::InactiveLane(lane), ..) => {
                self.shuffle_fact(block, warp, lane).into_iter().collect()
            }
            (ReportKind::IllegalAddress | ReportKind::MisalignedAddress, ..) => block
                .failed_accesses(warp)
                .map(Fact::Lanes)
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns why a lane of a warp, from which a value was shuffled, has none.
    fn shuffle_fact(&self, block: &Block, warp: usize, lane: u32) -> Option<Fact> {
        let threads: u32 = self.launch.block.iter().product();
        if warp as u32 * LANES as u32 + lane >= threads {
            return Some(Fact::NoThread { lane, threads });
        }
        let mut ended = block.ended_lanes(threads);
        for (index, lanes) in ended.iter_mut().enumerate() {
            *lanes &= if index == warp { 1 << lane } else { 0 };
        }
        ended_threads(block, &ended)
    }

    /// Returns which bytes of a variable or an allocation are not written, and who wrote the
    /// others.
    fn uninitialized_facts(&self, block: &Block, access: Access, space: Space) -> Vec<Fact> {
        let (space, address) = match space {
            Space::Generic => resolve(access.address),
            space => (space, access.address),
        };
        match space {
            Space::Shared if address < BLOCK_STRIDE => self.shared_facts(block, access, address),
            Space::Global => self.global_fact(access, address).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn global_fact(&self, access: Access, address: u64) -> Option<Fact> {
        let allocation = self.launch.memory.segment(address)?;
        let written = self.launch.memory.written(address)?;
        let offset = address - allocation.base;
        let Some(gap) = gap(&written, offset, access) else {
            return Some(Fact::WrittenLater);
        };
        Some(Fact::Unwritten(UnwrittenBytes {
            variable: Box::default(),
            size: allocation.size,
            first: gap.start,
            last: gap.end - 1,
            elements: None,
        }))
    }

    fn shared_facts(&self, block: &Block, access: Access, offset: u64) -> Vec<Fact> {
        let Some(written) = block.state.shared.written() else {
            return Vec::new();
        };
        let Some(variable) = self.launch.variable_at(offset, Space::Shared) else {
            return Vec::new();
        };
        let start = offset - variable.offset;
        let size = variable.size.min(block.state.shared.size() - start);
        let mut facts = vec![match gap(written, offset, access) {
            None => Fact::WrittenLater,
            Some(gap) => {
                let first = gap.start.saturating_sub(start);
                let last = (gap.end - start).min(size) - 1;
                let has_elements = variable.shape.has_elements();
                Fact::Unwritten(UnwrittenBytes {
                    variable: variable.name.into(),
                    size,
                    first,
                    last,
                    elements: has_elements.then(|| {
                        [first, last].map(|byte| {
                            let element = byte - byte % variable.shape.element;
                            variable.shape.name_element(variable.name, element)
                        })
                    }),
                })
            }
        }];
        let mut writers: Vec<u32> = Vec::new();
        let stores = block.state.first_stores.overlapping(start..start + size);
        for (index, store) in stores.enumerate() {
            for (warp, lanes) in store.lanes.iter().enumerate() {
                writers.resize(writers.len().max(warp + 1), 0);
                writers[warp] |= lanes;
            }
            if index < MAX_STORES {
                facts.push(Fact::FirstStore(FirstStore {
                    threads: thread_ranges(block, &store.lanes),
                    location: self.launch.program.source.locate(store.line),
                }));
            }
        }
        let threads = self.launch.block.iter().product();
        let mut ended = block.ended_lanes(threads);
        for (ended, writers) in ended.iter_mut().zip(&writers) {
            *ended &= !writers;
        }
        facts.extend(ended_threads(block, &ended));
        facts
    }
}

/// Returns the unwritten bytes around those of an access to some memory.
fn gap(written: &Written, offset: u64, access: Access) -> Option<Range<u64>> {
    written.gap(offset..offset.saturating_add(access.size.into()))
}

/// Returns the fact that threads of a block have ended, from the lanes of each warp, if there are
/// any.
fn ended_threads(block: &Block, warps: &[u32]) -> Option<Fact> {
    let ranges = thread_ranges(block, warps);
    (!ranges.is_empty()).then_some(Fact::EndedThreads(ranges))
}

/// Returns the threads of a block, from the lanes of each warp.
fn thread_ranges(block: &Block, warps: &[u32]) -> Vec<ThreadRange> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (warp, lanes) in warps.iter().enumerate() {
        for lane in Lanes(*lanes) {
            let thread = warp * LANES + lane;
            match ranges.last_mut() {
                Some(range) if range.end == thread => range.end += 1,
                _ => ranges.push(thread..thread + 1),
            }
        }
    }
    ranges
        .into_iter()
        .take(MAX_RANGES)
        .map(|range| {
            let [first, last] = [range.start, range.end - 1];
            ThreadRange {
                first: block.thread(first / LANES, first % LANES),
                last: block.thread(last / LANES, last % LANES),
            }
        })
        .collect()
}
