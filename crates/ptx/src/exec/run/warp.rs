//! A warp: thirty-two threads that execute together where possible.
//!
//! A warp is a list of fragments: lanes at the same instruction of the same activation. The
//! scheduler runs the fragment of the deepest activation with the lowest instruction, stops it at
//! an instruction where another fragment waits, and merges the two there. This needs no
//! control-flow analysis, so irreducible branches, recursion and indirect calls need no special
//! treatment. A fragment that loops while others wait yields after a number of backward branches,
//! so a lane can wait for another lane of its own warp.

mod path;

use super::fragment::{Fragment, Outcome, State, Stop};
use super::worker::Worker;
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::frame::Frame;
use crate::exec::machine::barrier::Wait;
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::warp_state::WarpState;
use crate::exec::values::lane::{LANES, Row};

/// The number of backward branches that a fragment may take while others wait.
const FRAGMENT_FUEL: u32 = 64;

/// The threads of one warp and their positions.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) frames: Vec<Frame>,
    /// Unused frames.
    pub(crate) free: Vec<u32>,
    pub(crate) state: WarpState,
}

/// The reason why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All its threads have ended.
    Done,
    /// Its turn is over.
    Paused,
    /// All its fragments wait.
    Blocked,
}

/// A fault and its instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) trap: Trap,
    /// The fragment that cannot continue.
    pub(crate) fragment: usize,
    pub(crate) function: u32,
    pub(crate) line: u32,
}

impl Warp {
    /// Creates a warp of a block, with the thread indices of its lanes.
    pub(crate) fn new(index: u32, thread: [[u32; LANES]; 3]) -> Self {
        Self {
            state: WarpState {
                index,
                thread,
                ..WarpState::default()
            },
            ..Self::default()
        }
    }

    /// Places the threads `mask` at the start of a kernel.
    pub(crate) fn start(&mut self, function: u32, mask: u32, worker: &Worker<'_>) {
        self.fragments.clear();
        self.free.clear();
        self.free.extend(0..self.frames.len() as u32);
        self.state.live = mask;
        self.state.copies.clear();
        let frame = self.new_frame();
        let target = &mut self.frames[frame as usize];
        target.reset(function, worker.launch.registers(function));
        target.local = 0;
        target.lanes = mask;
        target.caller = None;
        let words = worker.function(function).local_size / 8;
        self.state.alloca_end = [0; LANES];
        self.state.local.clear();
        self.state.local.resize(words as usize, Row::splat(0));
        if worker.launch.program.checking.uninitialized {
            self.state.written.restart(words as usize);
        }
        self.fragments.push(Fragment {
            pc: 0,
            mask,
            frame,
            depth: 0,
            turns: 0,
            state: State::Ready,
        });
    }

    /// Runs until the threads end or wait, or until they have taken `turn` backward branches.
    pub(crate) fn run(
        &mut self,
        turn: u32,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Result<Progress, Failure> {
        let mut fuel = turn;
        loop {
            self.wake(block, worker);
            if self.fragments.is_empty() {
                return Ok(Progress::Done);
            }
            let Some(index) = self.pick() else {
                if self.meet(block, worker) {
                    continue;
                }
                return Ok(Progress::Blocked);
            };
            if self.fragments[index].state == State::Yielded {
                for fragment in &mut self.fragments {
                    if fragment.state == State::Yielded {
                        fragment.state = State::Ready;
                    }
                }
                return Ok(Progress::Paused);
            }
            self.run_fragment(index, &mut fuel, None, block, worker)?;
            if let Some(kind) = worker.exceeded_limit()
                && let Some(failure) = self.stopped(kind, block, worker)
            {
                return Err(failure);
            }
            if fuel == 0 {
                return Ok(Progress::Paused);
            }
            if self.waits_together(block) {
                return Ok(Progress::Blocked);
            }
        }
    }

    /// Returns the fault of a launch that is stopped while the warp has threads.
    #[cold]
    fn stopped(
        &mut self,
        kind: ReportKind,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Option<Failure> {
        let index = self.pick().unwrap_or(0);
        let lane = self.fragments.get(index)?.mask.trailing_zeros() as usize;
        self.state.loop_facts = self.sample_loop(index, block, worker);
        let fragment = self.fragment_with(lane)?;
        let Fragment { frame, pc, .. } = self.fragments[fragment];
        let function = self.frames[frame as usize].function;
        Some(Failure {
            trap: Trap::new(kind, lane),
            fragment,
            function,
            line: worker.code(function)[pc as usize].line,
        })
    }

    /// Returns `true` if all threads wait at one barrier. Turns usually end so.
    fn waits_together(&self, block: &BlockState) -> bool {
        match self.fragments[..] {
            [
                Fragment {
                    state: State::Barrier { index, phase },
                    ..
                },
            ] => block.barriers[index].result(phase).is_none(),
            _ => false,
        }
    }

    /// Returns the first lane, its function and its instruction, for the report of a launch that
    /// does not end.
    pub(crate) fn first_waiting(&self) -> Option<(usize, u32, u32)> {
        let fragment = self.fragments.first()?;
        let function = self.frames[fragment.frame as usize].function;
        Some((
            fragment.mask.trailing_zeros() as usize,
            function,
            fragment.pc,
        ))
    }

    /// Ends completed waits, and merges fragments at the same instruction.
    fn wake(&mut self, block: &mut BlockState, worker: &Worker<'_>) {
        if let [
            Fragment {
                state: State::Ready,
                ..
            },
        ] = self.fragments[..]
        {
            return;
        }
        for index in 0..self.fragments.len() {
            let fragment = self.fragments[index];
            match fragment.state {
                State::Barrier {
                    index: number,
                    phase,
                } => {
                    let Some(votes) = block.barriers[number].result(phase) else {
                        continue;
                    };
                    let frame = &mut self.frames[fragment.frame as usize];
                    let op = &worker.code(frame.function)[fragment.pc as usize];
                    votes.deliver(frame, op, fragment.mask);
                    self.fragments[index].pc += 1;
                    self.fragments[index].state = State::Ready;
                }
                State::Cluster { phase } if block.cluster.is_over(phase) => {
                    self.fragments[index].pc += 1;
                    self.fragments[index].state = State::Ready;
                }
                State::TensorMemory { deallocations }
                    if block
                        .tensor_memory
                        .as_ref()
                        .is_some_and(|memory| memory.deallocations() != deallocations) =>
                {
                    self.fragments[index].state = State::Ready;
                }
                State::Converging { live } if live != self.state.live => {
                    self.fragments[index].state = State::Ready;
                }
                State::Gathering { members }
                    if members & self.state.live & !self.gathered(members) == 0 =>
                {
                    // All lanes of the mask have arrived: each group continues at its own
                    // instruction.
                    for other in &mut self.fragments {
                        if other.state == (State::Gathering { members }) {
                            other.pc += 1;
                            other.state = State::Ready;
                        }
                    }
                }
                _ => {}
            }
        }
        if self.fragments.len() > 1 {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let mut index = 0;
        while index < self.fragments.len() {
            let mut other = index + 1;
            while other < self.fragments.len() {
                if self.fragments[index].meets(&self.fragments[other]) {
                    let merged = self.fragments.swap_remove(other);
                    let fragment = &mut self.fragments[index];
                    fragment.mask |= merged.mask;
                    // The instruction runs again and determines which lanes are still missing.
                    fragment.state = State::Ready;
                } else {
                    other += 1;
                }
            }
            index += 1;
        }
    }

    /// Returns the fragment to run: yielded ones last, then the deepest, then the one with the
    /// lowest instruction.
    fn pick(&self) -> Option<usize> {
        if let [only] = &self.fragments[..] {
            return matches!(only.state, State::Ready | State::Yielded).then_some(0);
        }
        (0..self.fragments.len())
            .filter(|&index| matches!(self.fragments[index].state, State::Ready | State::Yielded))
            .min_by_key(|&index| {
                let fragment = &self.fragments[index];
                let is_yielded = fragment.state == State::Yielded;
                (is_yielded, u32::MAX - fragment.depth, fragment.pc)
            })
    }

    /// Runs one fragment until it leaves its path, meets another, is at the instruction `stop_at`
    /// again, or ends its turn.
    pub(super) fn run_fragment(
        &mut self,
        index: usize,
        fuel: &mut u32,
        stop_at: Option<u32>,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Result<(), Failure> {
        self.state.failed_accesses = None;
        let stop = self.follow(index, fuel, stop_at, block, worker);
        let fragment = &mut self.fragments[index];
        fragment.pc = stop.pc;
        fragment.turns = stop.turns;
        let function = self.frames[fragment.frame as usize].function;
        let op = &worker.code(function)[stop.pc as usize];
        self.settle(index, &stop, op, block, worker)
            .map_err(|trap| Failure {
                trap,
                fragment: index,
                function,
                line: op.line,
            })
    }

    /// Performs the control effect of the last instruction of a path.
    fn settle(
        &mut self,
        index: usize,
        stop: &Stop,
        op: &Op,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Result<(), Trap> {
        let mask = self.fragments[index].mask;
        match stop.outcome {
            Outcome::Met => {}
            Outcome::Back => self.count_backward_branches(index, 0),
            Outcome::Split(active) => self.split(index, mask & !active, stop.pc + 1),
            Outcome::Control(Control::Fault, active) => {
                let leader = active.trailing_zeros() as usize;
                return Err(stop.trap.unwrap_or(Trap::new(ReportKind::Trap, leader)));
            }
            Outcome::Control(Control::Wait, _) => self.arrive(index, stop.wait, block),
            Outcome::Control(Control::WaitForCluster { phase }, _) => {
                self.fragments[index].state = State::Cluster { phase };
            }
            Outcome::Control(Control::WaitForTensorMemory { deallocations }, _) => {
                self.fragments[index].state = State::TensorMemory { deallocations };
            }
            Outcome::Control(Control::CheckAligned, _) => return self.align(index, worker),
            Outcome::Control(Control::Converge, _) => {
                self.fragments[index].state = State::Converging {
                    live: self.state.live,
                };
            }
            Outcome::Control(Control::ContinueSome { lanes }, _) => {
                self.split(index, lanes, stop.pc + 1);
                self.fragments[index].state = State::Converging {
                    live: self.state.live,
                };
            }
            Outcome::Control(Control::Gather, _) => self.gather(index, op),
            Outcome::Control(control, active) => {
                return self.transfer(index, control, active, op, block, worker);
            }
        }
        Ok(())
    }

    /// Counts backward branches, and makes the fragment yield after many.
    pub(crate) fn count_backward_branches(&mut self, index: usize, count: u32) {
        let fragment = &mut self.fragments[index];
        fragment.turns += count;
        if fragment.turns >= FRAGMENT_FUEL {
            fragment.turns = 0;
            fragment.state = State::Yielded;
        }
    }

    /// Moves lanes out of a fragment into a new one.
    pub(crate) fn split(&mut self, index: usize, lanes: u32, pc: u32) {
        let mut other = self.fragments[index];
        self.fragments[index].mask &= !lanes;
        other.mask = lanes;
        other.pc = pc;
        self.fragments.push(other);
    }

    fn arrive(&mut self, index: usize, wait: Wait, block: &mut BlockState) {
        let fragment = &mut self.fragments[index];
        let phase = block.arrive(wait, fragment.mask.count_ones());
        if wait.arrive_only {
            fragment.pc += 1;
        } else {
            fragment.state = State::Barrier {
                index: wait.barrier,
                phase,
            };
        }
    }
}
