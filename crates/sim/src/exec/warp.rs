//! A warp: thirty-two threads that execute together where they can.
//!
//! A warp is a list of fragments: lanes that are at the same instruction of the same activation.
//! The scheduler runs the fragment of the deepest activation with the lowest instruction, stops it
//! where another one waits, and merges them there. That needs no control-flow analysis, so
//! irreducible branches, recursion and indirect calls are ordinary. A fragment that loops while
//! others wait gives way after a number of backward branches, so that a lane can wait for another
//! lane of its own warp.

use super::block::BlockState;
use super::fault::{FaultKind, Trap};
use super::frame::{Caller, Frame};
use super::lane::{LANES, Lanes, Row};
use super::op::{Control, Op};
use super::program::{CallSite, Callee};
use super::unit::Wait;
use super::worker::Worker;

/// Backward branches that a fragment may take while others wait.
const FRAGMENT_FUEL: u32 = 64;
/// Backward branches that a warp may take before others have a turn.
const WARP_FUEL: u32 = 1 << 14;
/// Calls that may be open at once, so that recursion without variables ends too.
const DEPTH_LIMIT: u32 = 10_000;
/// Bytes of local memory that a thread may use.
pub(crate) const LOCAL_LIMIT: u64 = 512 << 10;

/// The threads of one warp and where they are.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    fragments: Vec<Fragment>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    pub(crate) state: WarpState,
}

/// What handlers see of a warp besides registers.
#[derive(Debug)]
pub(crate) struct WarpState {
    /// Index of the warp in its block.
    pub(crate) index: u32,
    /// The lanes' thread indices.
    pub(crate) thread: [[u32; LANES]; 3],
    /// Local memory: word `n` of every thread is row `n`.
    pub(crate) local: Vec<Row<u64>>,
    /// Lanes whose thread has not ended.
    pub(crate) live: u32,
}

impl Default for WarpState {
    fn default() -> Self {
        Self { index: 0, thread: [[0; LANES]; 3], local: Vec::new(), live: 0 }
    }
}

/// Lanes that are at the same place.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    pc: u32,
    mask: u32,
    frame: u32,
    depth: u32,
    /// Backward branches taken since it last rested.
    turns: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Can run.
    Ready,
    /// Can run, but has had its turn.
    Rested,
    /// Waits for lanes to arrive at this instruction.
    Converging { needed: u32 },
    /// Waits for lanes to arrive at any instruction that waits for the same lanes.
    Gathering { needed: u32 },
    /// Waits at a barrier until its phase is over.
    Barrier { index: usize, phase: u32 },
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All its threads have ended.
    Done,
    /// Its turn is over.
    Paused,
    /// All its fragments wait.
    Blocked,
}

/// A fault, and the instruction at which it happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) trap: Trap,
    pub(crate) function: u32,
    pub(crate) line: u32,
}

impl Warp {
    /// Puts the threads `mask` at the start of a kernel.
    pub(crate) fn start(&mut self, function: u32, mask: u32, worker: &Worker<'_>) {
        self.fragments.clear();
        self.free.clear();
        self.free.extend(0..self.frames.len() as u32);
        self.state.live = mask;
        let frame = self.new_frame();
        let target = &mut self.frames[frame as usize];
        target.reset(&worker.launch.layouts[function as usize]);
        target.function = function;
        target.local = 0;
        target.lanes = mask;
        target.caller = None;
        let words = worker.function(function).local_size / 8;
        self.state.local.clear();
        self.state.local.resize(words as usize, Row::splat(0));
        self.fragments.push(Fragment { pc: 0, mask, frame, depth: 0, turns: 0, state: State::Ready });
    }

    /// Runs until the threads end, wait, or have had their turn.
    pub(crate) fn run(&mut self, block: &mut BlockState, worker: &mut Worker<'_>) -> Result<Progress, Failure> {
        let mut fuel = WARP_FUEL;
        loop {
            self.wake(block, worker);
            if self.fragments.is_empty() {
                return Ok(Progress::Done);
            }
            let Some(index) = self.pick() else {
                return Ok(Progress::Blocked);
            };
            if self.fragments[index].state == State::Rested {
                for fragment in &mut self.fragments {
                    if fragment.state == State::Rested {
                        fragment.state = State::Ready;
                    }
                }
                return Ok(Progress::Paused);
            }
            self.run_fragment(index, &mut fuel, block, worker)?;
            if fuel == 0 {
                return Ok(Progress::Paused);
            }
        }
    }

    /// The lanes that wait for others that will never come, for the report of a deadlock.
    pub(crate) fn first_waiting(&self) -> Option<(usize, u32, u32)> {
        let fragment = self.fragments.first()?;
        let function = self.frames[fragment.frame as usize].function;
        Some((fragment.mask.trailing_zeros() as usize, function, fragment.pc))
    }

    /// Ends the waits that are over, and merges fragments that have met.
    fn wake(&mut self, block: &mut BlockState, worker: &Worker<'_>) {
        for index in 0..self.fragments.len() {
            let fragment = self.fragments[index];
            match fragment.state {
                State::Barrier { index: number, phase } => {
                    let Some(votes) = block.barriers[number].result(phase) else {
                        continue;
                    };
                    let frame = &mut self.frames[fragment.frame as usize];
                    let op = &worker.code(frame.function)[fragment.pc as usize];
                    votes.deliver(frame, op, fragment.mask);
                    self.fragments[index].pc += 1;
                    self.fragments[index].state = State::Ready;
                }
                State::Converging { needed } if needed & self.state.live & !fragment.mask == 0 => {
                    self.fragments[index].state = State::Ready;
                }
                State::Gathering { needed } if needed & self.state.live & !self.gathered(needed) == 0 => {
                    // All the lanes named are here: each group goes on from where it is.
                    for other in &mut self.fragments {
                        if other.state == (State::Gathering { needed }) {
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

    /// The lanes that wait for the same lanes.
    fn gathered(&self, needed: u32) -> u32 {
        let same = self.fragments.iter().filter(|it| it.state == State::Gathering { needed });
        same.fold(0, |lanes, fragment| lanes | fragment.mask)
    }

    fn merge(&mut self) {
        let mut index = 0;
        while index < self.fragments.len() {
            let mut other = index + 1;
            while other < self.fragments.len() {
                if self.fragments[index].meets(&self.fragments[other]) {
                    let met = self.fragments.swap_remove(other);
                    let kept = &mut self.fragments[index];
                    kept.mask |= met.mask;
                    // Run the instruction anew: it knows how many lanes it still needs.
                    kept.state = State::Ready;
                } else {
                    other += 1;
                }
            }
            index += 1;
        }
    }

    /// The fragment to run: rested ones last, then the deepest, then the one furthest behind.
    fn pick(&self) -> Option<usize> {
        let order = |fragment: &Fragment| {
            let rested = fragment.state == State::Rested;
            (rested, u32::MAX - fragment.depth, fragment.pc)
        };
        (0..self.fragments.len())
            .filter(|&index| matches!(self.fragments[index].state, State::Ready | State::Rested))
            .min_by_key(|&index| order(&self.fragments[index]))
    }

    /// Where a fragment must stop because another one is there.
    fn meeting_point(&self, index: usize) -> u32 {
        let this = &self.fragments[index];
        self.fragments
            .iter()
            .filter(|other| other.frame == this.frame && other.pc > this.pc)
            .map(|other| other.pc)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Runs one fragment until it leaves its path, meets another, or has had its turn.
    fn run_fragment(
        &mut self,
        index: usize,
        fuel: &mut u32,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Result<(), Failure> {
        let alone = self.fragments.len() == 1;
        let stop = self.meeting_point(index);
        let Fragment { mut pc, mask, frame, .. } = self.fragments[index];
        let frame = &mut self.frames[frame as usize];
        let function = frame.function;
        let code = worker.code(function);
        let mut unit = worker.unit(frame, &mut self.state, block);
        let mut executed = 0u64;
        let outcome = loop {
            let op = &code[pc as usize];
            let active = mask & (unit.frame.predicate(op.guard) ^ op.negate);
            executed += 1;
            if active == 0 {
                pc += 1;
            } else if op.splits && active != mask {
                break Outcome::Split(active);
            } else {
                unit.active = active;
                // SAFETY: the functions that make handlers picked this one by the features of the
                // processor.
                match unsafe { (op.run)(&mut unit, op) } {
                    Control::Next => pc += 1,
                    Control::Branch if active == mask => {
                        let target = op.imm as u32;
                        let back = target <= pc;
                        pc = target;
                        if back {
                            *fuel -= 1;
                            if !alone || *fuel == 0 {
                                break Outcome::Back;
                            }
                        }
                    }
                    control => break Outcome::Control(control, active),
                }
            }
            if pc >= stop {
                break Outcome::Met;
            }
        };
        let (needed, wait, trap) = (unit.needed, unit.wait, unit.trap);
        worker.count(executed, mask);
        self.fragments[index].pc = pc;
        let settled = match outcome {
            Outcome::Met => Ok(()),
            Outcome::Back => Ok(self.rest(index)),
            Outcome::Split(active) => Ok(self.split(index, mask & !active, pc + 1)),
            Outcome::Control(Control::Fault, active) => {
                Err(trap.unwrap_or(Trap::new(FaultKind::Trap, active.trailing_zeros() as usize)))
            }
            Outcome::Control(Control::Wait, _) => Ok(self.arrive(index, wait, block)),
            Outcome::Control(Control::Converge, _) => Ok(self.fragments[index].state = State::Converging { needed }),
            Outcome::Control(Control::Gather, _) => Ok(self.fragments[index].state = State::Gathering { needed }),
            Outcome::Control(control, active) => {
                self.transfer(index, control, active, &code[pc as usize], block, worker)
            }
        };
        settled.map_err(|trap| Failure { trap, function, line: code[pc as usize].line })
    }

    /// Counts a backward branch, and lets others go first after many.
    fn rest(&mut self, index: usize) {
        let fragment = &mut self.fragments[index];
        fragment.turns += 1;
        if fragment.turns >= FRAGMENT_FUEL {
            fragment.turns = 0;
            fragment.state = State::Rested;
        }
    }

    /// Moves lanes out of a fragment into one of their own.
    fn split(&mut self, index: usize, lanes: u32, pc: u32) {
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
            fragment.state = State::Barrier { index: wait.barrier, phase };
        }
    }

    /// Carries out what leads to other instructions than the next.
    fn transfer(
        &mut self,
        index: usize,
        control: Control,
        active: u32,
        op: &Op,
        block: &mut BlockState,
        worker: &Worker<'_>,
    ) -> Result<(), Trap> {
        match control {
            Control::Branch => {
                let back = op.imm as u32 <= self.fragments[index].pc;
                self.split(index, active, op.imm as u32);
                self.fragments[index].pc += 1;
                if back {
                    self.rest(self.fragments.len() - 1);
                }
                Ok(())
            }
            Control::BranchIndexed => self.branch_indexed(index, op, worker),
            Control::Call => self.call(index, op, worker),
            Control::Return => Ok(self.leave(index, block, worker)),
            _ => Ok(self.exit(index, block)),
        }
    }

    fn branch_indexed(&mut self, index: usize, op: &Op, worker: &Worker<'_>) -> Result<(), Trap> {
        let Fragment { mask, frame, .. } = self.fragments[index];
        let frame = &self.frames[frame as usize];
        let table = &worker.function(frame.function).branch_tables[op.imm as usize];
        let leader = mask.trailing_zeros() as usize;
        let choice = frame.row::<u32>(op.a)[leader];
        let Some(&target) = table.get(choice as usize) else {
            return Err(Trap::new(FaultKind::InvalidProgramCounter, leader));
        };
        let row = frame.row::<u32>(op.a);
        let same = Lanes(mask).filter(|&lane| row[lane] == choice);
        let same = same.fold(0, |lanes, lane| lanes | 1 << lane);
        let pc = self.fragments[index].pc;
        if same != mask {
            self.split(index, mask & !same, pc);
        }
        self.fragments[index].pc = target;
        if target <= pc {
            self.rest(index);
        }
        Ok(())
    }

    /// Enters a function. Lanes that call another one stay behind, to call it in their turn.
    fn call(&mut self, index: usize, op: &Op, worker: &Worker<'_>) -> Result<(), Trap> {
        let Fragment { pc, mask, frame: caller, depth, .. } = self.fragments[index];
        let from = &self.frames[caller as usize];
        let site = &worker.function(from.function).calls[op.imm as usize];
        let (callee, lanes) = callee(site, from, mask, worker)?;
        let function = worker.function(callee);
        let caller_base = from.local;
        let base = caller_base + worker.function(from.function).local_size;
        if lanes != mask {
            self.split(index, mask & !lanes, pc);
        }
        if base + function.local_size > LOCAL_LIMIT || depth >= DEPTH_LIMIT {
            let lane = lanes.trailing_zeros() as usize;
            return Err(Trap::new(FaultKind::HardwareStackError, lane));
        }
        let words = ((base + function.local_size) / 8) as usize;
        if self.state.local.len() < words {
            self.state.local.resize(words, Row::splat(0));
        }
        for (&source, &(target, size)) in site.arguments.iter().zip(&function.params) {
            self.copy_local(caller_base + source, base + target, size, lanes);
        }
        let new = self.new_frame();
        let frame = &mut self.frames[new as usize];
        frame.reset(&worker.launch.layouts[callee as usize]);
        frame.function = callee;
        frame.local = base;
        frame.lanes = lanes;
        frame.caller = Some(Caller { frame: caller, pc });
        let fragment = &mut self.fragments[index];
        (fragment.frame, fragment.depth, fragment.pc) = (new, depth + 1, 0);
        Ok(())
    }

    /// Returns to the caller; from a kernel, ends the threads.
    fn leave(&mut self, index: usize, block: &mut BlockState, worker: &Worker<'_>) {
        let Fragment { mask, frame, .. } = self.fragments[index];
        let from = &self.frames[frame as usize];
        let Some(caller) = from.caller else {
            return self.exit(index, block);
        };
        let base = from.local;
        let returns = &worker.function(from.function).returns;
        let to = &self.frames[caller.frame as usize];
        let caller_base = to.local;
        let op = &worker.code(to.function)[caller.pc as usize];
        let site = &worker.function(to.function).calls[op.imm as usize];
        for (&target, &(source, size)) in site.results.iter().zip(returns) {
            self.copy_local(base + source, caller_base + target, size, mask);
        }
        self.release(frame, mask);
        let fragment = &mut self.fragments[index];
        fragment.frame = caller.frame;
        fragment.depth -= 1;
        fragment.pc = caller.pc + 1;
    }

    /// Ends the threads of a fragment.
    fn exit(&mut self, index: usize, block: &mut BlockState) {
        let fragment = self.fragments.swap_remove(index);
        let mut frame = Some(fragment.frame);
        while let Some(index) = frame {
            frame = self.frames[index as usize].caller.map(|caller| caller.frame);
            self.release(index, fragment.mask);
        }
        self.state.live &= !fragment.mask;
        block.exit(fragment.mask.count_ones());
    }

    fn release(&mut self, frame: u32, lanes: u32) {
        let target = &mut self.frames[frame as usize];
        target.lanes &= !lanes;
        if target.lanes == 0 {
            self.free.push(frame);
        }
    }

    fn new_frame(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame::default());
            self.frames.len() as u32 - 1
        })
    }

    /// Copies between local variables, which are laid out in whole words.
    fn copy_local(&mut self, source: u64, target: u64, size: u64, lanes: u32) {
        for word in 0..size.div_ceil(8) {
            let values = self.state.local[(source / 8 + word) as usize].0;
            self.state.local[(target / 8 + word) as usize].merge(&values, lanes);
        }
    }
}

impl Fragment {
    /// Whether the lanes of both are at the same place and may go on together.
    fn meets(&self, other: &Self) -> bool {
        let at_barrier = |state| matches!(state, State::Barrier { .. });
        self.pc == other.pc && self.frame == other.frame && !at_barrier(self.state) && !at_barrier(other.state)
    }
}

/// Why the inner loop stopped.
enum Outcome {
    /// Another fragment may be at this instruction.
    Met,
    /// A backward branch was taken.
    Back,
    /// Only these lanes execute the instruction; the rest go past it first.
    Split(u32),
    /// The instruction asks for more than the next one; with its active lanes.
    Control(Control, u32),
}

/// The function that the first lane calls, and the lanes that call the same.
fn callee(site: &CallSite, frame: &Frame, mask: u32, worker: &Worker<'_>) -> Result<(u32, u32), Trap> {
    let register = match site.callee {
        Callee::Direct(function) => return Ok((function, mask)),
        Callee::Indirect(register) => register,
    };
    let row = frame.row::<u64>(register);
    let leader = mask.trailing_zeros() as usize;
    let address = row[leader];
    let index = worker.launch.program.function_at(address);
    let Some((index, function)) = index else {
        return Err(Trap::new(FaultKind::InvalidProgramCounter, leader));
    };
    if function.params.len() != site.arguments.len() || function.returns.len() != site.results.len() {
        return Err(Trap::new(FaultKind::InvalidProgramCounter, leader));
    }
    let same = Lanes(mask).filter(|&lane| row[lane] == address);
    Ok((index, same.fold(0, |lanes, lane| lanes | 1 << lane)))
}
