//! A block: warps that share memory and barriers. It runs in turns.

use std::sync::Arc;

use super::fragment::State;
use super::warp::{Failure, Progress, Warp};
use super::worker::Worker;
use crate::exec::check::fact::{Fact, LaneAccesses};
use crate::exec::check::first_stores::FirstStores;
use crate::exec::check::report::{Access, ReportKind, Resume, Trap};
use crate::exec::check::shadow::Shadow;
use crate::exec::machine::barrier::{Barrier, MAX_WARPGROUPS, NAMED_BARRIERS};
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::cluster::Cluster;
use crate::exec::machine::tensor_memory::AllocationSource;
use crate::exec::machine::warp_state::Assertion;
use crate::exec::memory::SharedMemory;
use crate::exec::memory::window::resolve;
use crate::exec::space::Space;
use crate::exec::values::lane::LANES;

/// The number of rounds over its warps after which a block yields to another. Only rounds in which
/// a warp uses up its turn count.
const ROUNDS: u32 = 4;
/// Backward branches in a warp's first turn. Later turns are longer, so a short wait for another
/// block ends soon and a long computation is seldom interrupted.
const FIRST_TURN: u32 = 1 << 8;
/// Backward branches of a warp's longest turn.
const MAX_TURN: u32 = 1 << 16;
/// The number of rounds after which a block yields although all its warps reach barriers. Such a
/// block seldom waits for another, and the registers of many blocks that take turns exceed the
/// processor's caches.
const MAX_ROUNDS: u32 = 1 << 10;

/// The function of kernels in Rust that fails an assertion about an index. Its first parameters are
/// the index and the length. The build of kernels defines it.
const PANIC_WITH_INDEX: &str = "panic_with_index";

/// A running block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) state: BlockState,
    warps: Vec<Warp>,
    /// The index of the warp that runs first; the schedule's seed selects it.
    first: usize,
    /// The number of backward branches that a warp may take in a turn.
    turn: u32,
}

/// The instruction at which threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentPosition {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    /// `true` if the threads wait for others.
    pub(crate) waits: bool,
}

/// Lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpLanes {
    /// The index of the warp in the block.
    pub(crate) warp: usize,
    pub(crate) mask: u32,
}

impl Block {
    /// Creates an empty block with the launch's shared memory.
    pub(crate) fn new(worker: &Worker<'_>) -> Self {
        let shared = SharedMemory::new(u64::from(worker.launch.shared_size));
        let checking = worker.launch.program.checking;
        let shared = Arc::new(if checking.uninitialized {
            shared.with_written_record()
        } else {
            shared
        });
        Self {
            state: BlockState {
                index: [0; 3],
                number: 0,
                cluster: Arc::new(Cluster::new(vec![Arc::clone(&shared)], 0)),
                shared,
                shadow: checking
                    .races
                    .then(|| Shadow::new(worker.launch.shared_size.into())),
                first_stores: FirstStores::default(),
                rank: 0,
                barriers: [Barrier::default(); NAMED_BARRIERS + MAX_WARPGROUPS],
                tensor_memory: None,
                live: 0,
            },
            warps: Vec::new(),
            first: 0,
            turn: FIRST_TURN,
        }
    }

    /// Starts a block with all threads at the kernel's entry.
    pub(crate) fn start(&mut self, index: [u32; 3], first: u64, worker: &Worker<'_>) {
        let [x, y, z] = index.map(u64::from);
        let [columns, rows, _] = worker.launch.grid.map(u64::from);
        self.state.index = index;
        self.state.number = x + columns * (y + rows * z);
        self.state.shared.clear();
        self.state.first_stores.clear();
        self.state.order();
        self.state.tensor_memory = None;
        self.state.barriers = [Barrier::default(); NAMED_BARRIERS + MAX_WARPGROUPS];
        let threads = worker.launch.block.iter().product::<u32>();
        self.state.live = threads;
        self.state.cluster.restart(threads);
        self.turn = FIRST_TURN;
        let count = threads.div_ceil(LANES as u32);
        // All blocks of a launch have the same shape, so the warps keep their threads.
        for index in self.warps.len() as u32..count {
            self.warps.push(Warp::new(
                index,
                thread_indices(index * 32, worker.launch.block),
            ));
        }
        self.first = (first % u64::from(count)) as usize;
        for (index, warp) in self.warps.iter_mut().enumerate() {
            let lanes = (threads - index as u32 * 32).min(32);
            warp.start(
                worker.launch.kernel.function,
                u32::MAX >> (32 - lanes),
                worker,
            );
        }
    }

    /// Runs the block until its threads have ended or its turn is over.
    pub(crate) fn run(&mut self, worker: &mut Worker<'_>) -> Result<Progress, (usize, Failure)> {
        let mut rounds = 0;
        let mut interrupted = 0;
        while interrupted < ROUNDS && rounds < self.turn.min(MAX_ROUNDS) {
            let before = worker.executed();
            let mut paused = false;
            for turn in 0..self.warps.len() {
                let index = (self.first + turn) % self.warps.len();
                paused |= self.run_warp(index, worker)? == Progress::Paused;
            }
            if self.state.live == 0 {
                return self.check_tensor_memory(worker);
            }
            if !paused && worker.executed() == before {
                // Another block of the cluster may end this wait.
                let may_end = self.warps.iter().any(Warp::waits_for_cluster);
                return if may_end {
                    Ok(Progress::Paused)
                } else {
                    Err(self.deadlock(worker))
                };
            }
            if worker.is_stopped() {
                break;
            }
            rounds += 1;
            interrupted += u32::from(paused);
        }
        self.turn = (self.turn * 2).min(MAX_TURN);
        Ok(Progress::Paused)
    }

    /// Runs one turn of a warp. Faulting threads end if the launch continues without them.
    fn run_warp(
        &mut self,
        index: usize,
        worker: &mut Worker<'_>,
    ) -> Result<Progress, (usize, Failure)> {
        loop {
            let failure = match self.warps[index].run(self.turn, &mut self.state, worker) {
                Ok(progress) => return Ok(progress),
                Err(failure) => failure,
            };
            let (warp, failure) = self
                .race_before_write(index, failure, worker)
                .unwrap_or((index, failure));
            if !self.resume(warp, failure, worker) {
                return Err((warp, failure));
            }
        }
    }

    /// Returns the race of another warp with an uninitialized read of shared memory, if that warp
    /// writes the memory before the next barrier. Then the read is uninitialized only because the
    /// barrier is missing.
    fn race_before_write(
        &mut self,
        index: usize,
        failure: Failure,
        worker: &mut Worker<'_>,
    ) -> Option<(usize, Failure)> {
        self.state.shadow.as_ref()?;
        let read = failure
            .trap
            .access
            .filter(|_| failure.trap.kind == ReportKind::Uninitialized)?;
        let space = match failure.trap.space? {
            Space::Generic => resolve(read.address).0,
            space => space,
        };
        if space != Space::Shared {
            return None;
        }
        for other in (0..self.warps.len()).filter(|other| *other != index) {
            while let Err(failure) = self.warps[other].run(self.turn, &mut self.state, worker) {
                if matches!(failure.trap.kind, ReportKind::Race { .. }) {
                    return Some((other, failure));
                }
                if !self.resume(other, failure, worker) {
                    break;
                }
            }
        }
        None
    }

    /// Reports tensor memory that is still allocated when the block ends.
    fn check_tensor_memory(&self, worker: &Worker<'_>) -> Result<Progress, (usize, Failure)> {
        let allocation = self
            .state
            .tensor_memory
            .as_ref()
            .and_then(|memory| memory.remaining_allocation());
        let Some(AllocationSource {
            warp,
            lane,
            function,
            line,
        }) = allocation.map(|allocation| allocation.source)
        else {
            return Ok(Progress::Done);
        };
        let kind = ReportKind::IllegalInstruction(
            "tcgen05.alloc: the block ends without deallocating the columns",
        );
        let failure = Failure {
            trap: Trap::new(kind, lane),
            fragment: 0,
            function,
            line,
        };
        if worker.continues_after(self, warp as usize, failure) {
            Ok(Progress::Done)
        } else {
            Err((warp as usize, failure))
        }
    }

    /// Resumes the threads of a warp after a fault. Returns `false` if the launch does not
    /// continue.
    fn resume(&mut self, index: usize, failure: Failure, worker: &mut Worker<'_>) -> bool {
        // A launch that may never end is stopped in any case.
        let is_over = matches!(failure.trap.kind, ReportKind::OverBudget(_));
        if is_over || !worker.continues_after(self, index, failure) {
            return false;
        }
        match failure.trap.resume {
            Resume::Again => {}
            Resume::After => self.warps[index].skip(failure.fragment),
            Resume::End => self.warps[index].exit(failure.fragment, &mut self.state),
        }
        true
    }

    /// Returns the thread index of a warp's lane.
    pub(crate) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        self.warps[warp].state.thread.map(|axis| axis[lane % LANES])
    }

    /// Returns the message of the last failed assertion of a warp, with its file and line unless
    /// they are known from the instruction.
    pub(crate) fn assertion(&self, warp: usize, is_located: bool) -> Box<str> {
        let Some(assertion) = &self.warps[warp].state.assertion else {
            return Box::default();
        };
        let Assertion {
            message,
            file,
            line,
        } = &**assertion;
        if is_located || file.is_empty() {
            format!("`{message}`").into()
        } else {
            format!("`{message}` at {file}:{line}").into()
        }
    }

    /// Returns the index and the length of a failed check of bounds in a kernel in Rust.
    pub(crate) fn panic_operands(
        &self,
        warp: usize,
        failure: Failure,
        worker: &Worker<'_>,
    ) -> Option<Fact> {
        let warp = &self.warps[warp];
        let mut frame = &warp.frames[warp.fragments.get(failure.fragment)?.frame as usize];
        while worker.function(frame.function).name != PANIC_WITH_INDEX {
            frame = &warp.frames[frame.caller?.frame as usize];
        }
        let [(index, 8), (length, 8), ..] = worker.function(frame.function).params[..] else {
            return None;
        };
        let [index, length] = [index, length].map(|parameter| {
            let word = (frame.local + parameter) / 8;
            warp.state.local[word as usize].0[failure.trap.lane]
        });
        Some(Fact::Index { index, length })
    }

    /// Returns the conditions of the loop of a warp that exceeded the budget.
    pub(crate) fn loop_facts(&self, warp: usize) -> &[Fact] {
        &self.warps[warp].state.loop_facts
    }

    /// Returns the accesses of a warp's lanes with the instruction that failed, if they explain it.
    pub(crate) fn failed_accesses(&self, warp: usize) -> Option<LaneAccesses> {
        self.warps[warp].state.failed_accesses.as_deref().copied()
    }

    /// Returns the lanes of each warp whose threads have ended, of a block of `threads` threads.
    pub(crate) fn ended_lanes(&self, threads: u32) -> Vec<u32> {
        let mut remaining = threads;
        self.warps
            .iter()
            .map(|warp| {
                let lanes = remaining.min(LANES as u32);
                remaining -= lanes;
                (1_u64 << lanes).wrapping_sub(1) as u32 & !warp.state.live
            })
            .collect()
    }

    /// Returns the barriers that wait for threads, with their numbers.
    pub(crate) fn incomplete_barriers(&self) -> Box<str> {
        let barriers = self.state.barriers.iter().take(NAMED_BARRIERS);
        let waiting = barriers.enumerate().filter_map(|(index, barrier)| {
            let (arrived, expected) = barrier.waiting(self.state.live)?;
            Some(format!(
                "{arrived} of {expected} threads are at barrier {index}"
            ))
        });
        waiting.collect::<Vec<_>>().join(", ").into()
    }

    /// Returns `true` if a pending asynchronous copy writes to memory that an access reads.
    pub(crate) fn has_pending_copy(&self, access: Access, space: Space) -> bool {
        let (space, address) = match space {
            Space::Generic => resolve(access.address),
            space => (space, access.address),
        };
        let mut warps = self.warps.iter();
        space == Space::Shared && warps.any(|warp| warp.state.copies.write_to(address, access.size))
    }

    /// Returns the calls that led to the function of a fault, innermost first: the calling
    /// functions with the indices of the instructions.
    pub(crate) fn calls(&self, warp: usize, failure: Failure) -> impl Iterator<Item = (u32, u32)> {
        let warp = &self.warps[warp];
        let frame = warp.fragments.get(failure.fragment);
        let mut next = frame
            .map(|fragment| &warp.frames[fragment.frame as usize])
            .filter(|frame| frame.function == failure.function)
            .and_then(|frame| frame.caller);
        std::iter::from_fn(move || {
            let caller = next?;
            let frame = &warp.frames[caller.frame as usize];
            next = frame.caller;
            Some((frame.function, caller.pc))
        })
    }

    /// Returns the positions of all fragments, with their lanes.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (FragmentPosition, WarpLanes)> {
        let warps = self.warps.iter().enumerate();
        warps.flat_map(|(index, warp)| {
            warp.fragments.iter().map(move |fragment| {
                let position = FragmentPosition {
                    function: warp.frames[fragment.frame as usize].function,
                    pc: fragment.pc,
                    waits: !matches!(fragment.state, State::Ready | State::Yielded),
                };
                let lanes = WarpLanes {
                    warp: index,
                    mask: fragment.mask,
                };
                (position, lanes)
            })
        })
    }

    /// Returns the bytes of local memory of each thread of a warp.
    pub(crate) fn local_size(&self, warp: usize) -> u64 {
        self.warps[warp].state.local.len() as u64 * 8
    }

    /// Returns the report of a deadlock: all threads wait.
    pub(crate) fn deadlock(&self, worker: &Worker<'_>) -> (usize, Failure) {
        for (index, warp) in self.warps.iter().enumerate() {
            if let Some(failure) = warp.stuck(worker) {
                return (index, failure);
            }
        }
        let first = self
            .warps
            .iter()
            .enumerate()
            .find_map(|(index, warp)| Some((index, warp.first_waiting()?)));
        let (warp, (lane, function, pc)) = first.unwrap_or_default();
        let failure = Failure {
            trap: Trap::new(ReportKind::Deadlock, lane),
            fragment: 0,
            function,
            line: worker.code(function)[pc as usize].line,
        };
        (warp, failure)
    }
}

/// Returns the thread indices of the warp whose first thread is number `first`.
fn thread_indices(first: u32, block: [u32; 3]) -> [[u32; LANES]; 3] {
    let mut indices = [[0; LANES]; 3];
    let [x, y, z] = &mut indices;
    for (lane, ((x, y), z)) in x.iter_mut().zip(y).zip(z).enumerate() {
        let number = first + lane as u32;
        *x = number % block[0];
        *y = number / block[0] % block[1];
        *z = number / block[0] / block[1];
    }
    indices
}

#[cfg(test)]
mod tests {
    use crate::exec::run::block::*;

    #[test]
    fn threads_are_numbered_x_first() {
        let [x, y, z] = thread_indices(32, [5, 3, 4]);
        assert_eq!((x[0], y[0], z[0]), (2, 0, 2));
        assert_eq!((x[13], y[13], z[13]), (0, 0, 3));
    }
}
