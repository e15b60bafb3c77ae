//! The path of a fragment: instructions that all its lanes execute in sequence.

use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::program::Function;
use crate::exec::machine::unit::Unit;
use crate::exec::ops::definedness;
use crate::exec::run::fragment::{Fragment, Outcome, State, Stop};
use crate::exec::run::warp::{FRAGMENT_FUEL, Warp};
use crate::exec::run::worker::Worker;

impl Warp {
    /// Executes a fragment's instructions in sequence while all its lanes stay together, until it
    /// is at the instruction `stop_at` again.
    pub(super) fn follow(
        &mut self,
        index: usize,
        fuel: &mut u32,
        stop_at: Option<u32>,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) -> Stop {
        let is_only_fragment = self.fragments.len() == 1;
        let Fragment {
            mut pc,
            mut turns,
            mask,
            frame,
            ..
        } = self.fragments[index];
        let mut meeting =
            meeting_point(&self.fragments, index, pc + 1).min(stop_from(stop_at, pc + 1));
        let frame = &mut self.frames[frame as usize];
        let function = worker.function(frame.function);
        let code = &function.code[..];
        let finds_uninitialized = worker.launch.program.checking.uninitialized;
        let mut unit = worker.unit(frame, &mut self.state, block);
        let mut executed = 0u64;
        let outcome = loop {
            let path = &code[pc as usize..code.len().min(meeting as usize)];
            let (ahead, control) = if finds_uninitialized {
                run_ahead::<true>(&mut unit, path, mask)
            } else {
                run_ahead::<false>(&mut unit, path, mask)
            };
            pc += ahead;
            executed += u64::from(ahead);
            let Some(op) = path.get(ahead as usize) else {
                break Outcome::Met;
            };
            let (control, active) = match control {
                Control::Next => match run_guarded(&mut unit, function, op, pc, mask) {
                    Ok(done) => done,
                    Err(outcome) => break outcome,
                },
                control => (control, mask),
            };
            executed += 1;
            match control {
                Control::Next => pc += 1,
                Control::Skip(ops) => {
                    pc += ops;
                    executed += u64::from(ops) - 1;
                }
                Control::Branch if active == mask => {
                    let is_backward = op.branch_target() <= pc;
                    pc = op.branch_target();
                    if is_backward {
                        *fuel -= 1;
                        turns += u32::from(!is_only_fragment);
                        if *fuel == 0
                            || !is_only_fragment
                                && (turns >= FRAGMENT_FUEL || is_ahead(&self.fragments, index, pc))
                        {
                            break Outcome::Back;
                        }
                        meeting = stop_from(stop_at, pc);
                        if !is_only_fragment {
                            meeting = meeting.min(meeting_point(&self.fragments, index, pc));
                        }
                    }
                }
                control => break Outcome::Control(control, active),
            }
            if pc >= meeting {
                break Outcome::Met;
            }
        };
        let stop = Stop {
            outcome,
            pc,
            turns,
            wait: unit.wait,
            trap: unit.trap,
        };
        worker.count(executed, mask);
        stop
    }
}

/// Executes instructions until one has a guard or does not go to a later one. Returns the number of
/// those before it, and its control if it was executed. With `UNINITIALIZED` it also ends where a
/// value is undefined.
#[inline(always)]
fn run_ahead<const UNINITIALIZED: bool>(
    unit: &mut Unit<'_>,
    path: &[Op],
    mask: u32,
) -> (u32, Control) {
    unit.active = mask;
    let mut remaining = path.iter();
    let control = loop {
        let Some(op) = remaining.next() else {
            return (path.len() as u32, Control::Next);
        };
        if op.guard != 0 || UNINITIALIZED && unit.frame.undefined.is_some() {
            break Control::Next;
        }
        // SAFETY: the functions that make handlers picked this one by the features of the
        // processor.
        match unsafe { (op.run)(unit, op) } {
            Control::Next => {}
            Control::Skip(ops) => remaining = remaining.as_slice()[ops as usize - 1..].iter(),
            control => break control,
        }
    };
    ((path.len() - remaining.len() - 1) as u32, control)
}

/// Executes an instruction in the lanes in which its guard is true, and propagates undefined
/// values. Returns its control and these lanes, or the reason why the fragment stops before it.
fn run_guarded(
    unit: &mut Unit<'_>,
    function: &Function,
    op: &Op,
    pc: u32,
    mask: u32,
) -> Result<(Control, u32), Outcome> {
    let finds_undefined = unit.frame.undefined.is_some();
    if finds_undefined && let Some(control) = definedness::check_guard(unit, op, mask) {
        return Err(Outcome::Control(control, unit.active));
    }
    let active = if op.guard == 0 {
        mask
    } else {
        mask & (unit.frame.predicate(op.guard) ^ op.negate)
    };
    if active != mask && active == 0 {
        return Ok((Control::Next, active));
    }
    if active != mask && op.splits {
        return Err(Outcome::Split(active));
    }
    unit.active = active;
    if finds_undefined
        && let Some(flow) = Worker::flow(function, pc)
        && let Some(control) = definedness::follow(unit, op, flow)
    {
        return Ok((control, active));
    }
    // SAFETY: the functions that make handlers picked this one by the features of the processor.
    Ok((unsafe { (op.run)(unit, op) }, active))
}

/// Returns the instruction at which a fragment at `pc` stops on request: `stop_at`, if that does
/// not lie behind.
fn stop_from(stop_at: Option<u32>, pc: u32) -> u32 {
    stop_at.filter(|stop_at| *stop_at >= pc).unwrap_or(u32::MAX)
}

/// Returns the instruction at which a fragment that continues at `pc` must stop, because another
/// fragment of its activation is there.
fn meeting_point(fragments: &[Fragment], index: usize, pc: u32) -> u32 {
    let this = &fragments[index];
    fragments
        .iter()
        .enumerate()
        .filter(|(other, fragment)| *other != index && fragment.frame == this.frame)
        .map(|(_, fragment)| fragment.pc)
        .filter(|other| *other >= pc)
        .min()
        .unwrap_or(u32::MAX)
}

/// Returns `true` if a fragment at `pc` is ahead of another runnable fragment, which then runs
/// first.
fn is_ahead(fragments: &[Fragment], index: usize, pc: u32) -> bool {
    let depth = fragments[index].depth;
    fragments
        .iter()
        .any(|other| other.state == State::Ready && other.depth == depth && other.pc < pc)
}
