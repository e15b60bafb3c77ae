//! Values of the registers on which the end of a loop depends, for reports of launches that do not
//! end.

use super::fragment::{Fragment, State};
use super::warp::Warp;
use super::worker::Worker;
use crate::exec::check::fact::{Fact, LoopCondition, RegisterValue};
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::loops::{Condition, Loop};

/// The maximum number of times that a fragment is continued until it reaches an instruction.
const MAX_CONTINUATIONS: usize = 64;
/// The number of backward branches of a continuation.
const FUEL: u32 = 1 << 12;

/// The loop of a thread.
#[derive(Clone, Copy)]
struct Position<'p> {
    lane: usize,
    /// The activation that executes the loop.
    frame: u32,
    body: &'p Loop,
}

impl Warp {
    /// Continues a thread that may never end for two iterations of its loop, and returns the values
    /// on which the end of the loop depends.
    pub(super) fn sample_loop(
        &mut self,
        fragment: usize,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Vec<Fact> {
        let Some(position) = self.innermost_loop(fragment, worker) else {
            return Vec::new();
        };
        if !position.body.has_exit {
            return vec![Fact::LoopWithoutEnd];
        }
        let Fragment { frame, pc, .. } = self.fragments[fragment];
        let mut facts = Vec::new();
        for condition in &position.body.conditions {
            let registers = if condition.is_invariant {
                Some(Vec::new())
            } else {
                self.sample(position, condition, block, worker)
            };
            if let Some(registers) = registers {
                facts.push(Fact::Condition(LoopCondition {
                    location: worker.launch.program.source.locate(condition.line),
                    is_invariant: condition.is_invariant,
                    registers,
                }));
            }
        }
        // The report has the instruction at which the budget was exceeded.
        self.advance(position.lane, frame, pc, block, worker);
        facts
    }

    /// Returns the innermost loop that a fragment executes, in its function or in a calling one.
    fn innermost_loop<'l>(&self, fragment: usize, worker: &Worker<'l>) -> Option<Position<'l>> {
        let fragment = self.fragments.get(fragment)?;
        let mut frame = fragment.frame;
        let mut pc = fragment.pc;
        loop {
            let activation = &self.frames[frame as usize];
            let function = worker.function(activation.function);
            if let Some(body) = Loop::innermost(&function.loops, pc) {
                return Some(Position {
                    lane: fragment.mask.trailing_zeros() as usize,
                    frame,
                    body,
                });
            }
            let caller = activation.caller?;
            frame = caller.frame;
            pc = caller.pc;
        }
    }

    /// Returns the values of the registers that a condition reads, in two iterations. Returns
    /// `None` if the thread does not reach the condition twice without other threads.
    fn sample(
        &mut self,
        position: Position<'_>,
        condition: &Condition,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Option<Vec<RegisterValue>> {
        let previous = self.values_at(position, condition, block, worker)?;
        let values = self.values_at(position, condition, block, worker)?;
        let registers = condition
            .registers
            .iter()
            .zip(previous.into_iter().zip(values));
        Some(
            registers
                .map(|(register, (previous, value))| RegisterValue {
                    name: register.name.clone(),
                    value,
                    previous,
                })
                .collect(),
        )
    }

    /// Continues a thread until it is at a condition again, and returns the values that it reads.
    fn values_at(
        &mut self,
        position: Position<'_>,
        condition: &Condition,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Option<Vec<Box<str>>> {
        let Position { lane, frame, .. } = position;
        self.advance(lane, frame, condition.op, block, worker)?;
        let frame = &self.frames[frame as usize];
        let registers = condition.registers.iter();
        Some(
            registers
                .map(|register| register.value(frame, lane))
                .collect(),
        )
    }

    /// Continues a thread until it is at an instruction of an activation again. Returns `None` if
    /// it does not get there without other threads.
    fn advance(
        &mut self,
        lane: usize,
        frame: u32,
        pc: u32,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Option<()> {
        for _ in 0..MAX_CONTINUATIONS {
            let index = self.fragment_with(lane)?;
            let fragment = &mut self.fragments[index];
            if !matches!(fragment.state, State::Ready | State::Yielded) {
                return None;
            }
            fragment.state = State::Ready;
            let stop_at = (fragment.frame == frame).then_some(pc);
            let mut fuel = FUEL;
            self.run_fragment(index, &mut fuel, stop_at, block, worker)
                .ok()?;
            let fragment = &self.fragments[self.fragment_with(lane)?];
            if fragment.frame == frame && fragment.pc == pc {
                return Some(());
            }
        }
        None
    }

    /// Returns the index of the fragment of a live lane.
    pub(super) fn fragment_with(&self, lane: usize) -> Option<usize> {
        self.fragments
            .iter()
            .position(|fragment| fragment.mask >> lane & 1 == 1)
    }
}
