//! Aligned barriers: `bar`, and `barrier` with `.aligned`, which all threads of a warp must execute
//! together.
//!
//! Threads of one warp diverge at an aligned barrier if some of them arrive there, and others
//!
//! - wait at another aligned barrier, or at the same one in another call,
//! - have passed it by, that is, they will execute instructions after the barrier without having
//!   executed the barrier, or
//! - wait for the arriving threads at another instruction.
//!
//! The PTX ISA excludes threads that have exited: a barrier waits for "all non-exited threads from
//! its warp", and `exit` releases it. A kernel in which some threads return early is therefore
//! valid, also if the scheduler here runs the arriving threads first. For the same reason, threads
//! that may still reach the barrier are not judged, which includes all threads in a loop around it.

use std::collections::HashMap;

use super::fragment::{Fragment, State};
use super::warp::{Failure, Warp};
use super::worker::Worker;
use crate::exec::check::report::{Divergence, ReportKind, Resume, Trap};
use crate::exec::machine::op::{Control, NO_REGISTER, Op, Role};
use crate::exec::machine::program::Function;
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::lanes_where;

/// The control flow around the instructions at which warps diverged.
pub(crate) type BypassCache = HashMap<Site, Bypass>;

/// An instruction of a function, and the continuation of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    function: u32,
    pc: u32,
    /// `true` if the callers of the function execute more instructions after it returns.
    continues: bool,
}

/// The instructions of a function from which threads bypass a site: every path leads to
/// instructions after the site, none to the site.
#[derive(Debug)]
pub(crate) struct Bypass(Vec<bool>);

/// An instruction that a fragment executes or from which it made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    function: u32,
    pc: u32,
}

/// Checks that all live threads of a warp execute the next instruction, an aligned barrier whose
/// number is in row `a`.
pub(crate) fn run_check_aligned(unit: &mut Unit<'_>, op: &Op) -> Control {
    if op.a != NO_REGISTER {
        let leader = unit.leader();
        let numbers = unit.frame.row::<u32>(op.a);
        let same = lanes_where(|lane| numbers[lane] == numbers[leader]) & unit.active;
        if same != unit.active {
            let divergence = Divergence {
                warp: unit.warp.index,
                waiting: same,
                missing: unit.active & !same,
            };
            return unit.fault(divergence.into_trap(ReportKind::DivergentBarrier, op.line));
        }
    }
    if unit.active == unit.warp.live {
        Control::Next
    } else {
        Control::CheckAligned
    }
}

impl Divergence {
    /// Returns the fault of the waiting threads, after which they continue. The missing threads are
    /// at a PTX line.
    fn into_trap(self, kind: fn(Self) -> ReportKind, missing_line: u32) -> Trap {
        Trap {
            resume: Resume::After,
            other_line: missing_line,
            ..Trap::new(kind(self), self.waiting.trailing_zeros() as usize)
        }
    }
}

impl Warp {
    /// Makes a fragment at an aligned barrier wait for the other live threads of the warp, or lets
    /// all of them continue.
    pub(crate) fn align(&mut self, index: usize, worker: &mut Worker<'_>) -> Result<(), Trap> {
        let fragment = self.fragments[index];
        let path = self.call_path(&fragment);
        let mut arrived = fragment.mask;
        for other in &self.fragments {
            if other.mask == fragment.mask {
                continue;
            }
            let other_path = self.call_path(other);
            let is_diverged = if !self.is_at_aligned_barrier(other, worker) {
                bypasses(&path, &other_path, worker)
            } else if path == other_path {
                arrived |= other.mask;
                false
            } else {
                true
            };
            if is_diverged {
                let divergence = self.divergence_between(&fragment, other);
                let line = self.missing_line(&fragment, other, worker);
                self.release_from_aligned_barriers(worker);
                return Err(divergence.into_trap(ReportKind::DivergentBarrier, line));
            }
        }
        let live = self.state.live;
        for other in &mut self.fragments {
            if other.mask & arrived == 0 {
                continue;
            }
            if arrived == live {
                // Fragments of one call instruction cannot merge, but arrive together.
                other.pc += 1;
                other.state = State::Ready;
            } else {
                other.state = State::Converging { live };
            }
        }
        Ok(())
    }

    /// Lets fragments that wait at aligned barriers arrive there without the others, if the launch
    /// continues after a report.
    fn release_from_aligned_barriers(&mut self, worker: &Worker<'_>) {
        for index in 0..self.fragments.len() {
            let fragment = self.fragments[index];
            let is_waiting = matches!(fragment.state, State::Converging { .. });
            if is_waiting && self.is_at_aligned_barrier(&fragment, worker) {
                self.fragments[index].pc += 1;
                self.fragments[index].state = State::Ready;
            }
        }
    }

    /// Returns the fault of threads that wait for threads of their own warp forever. No thread of
    /// the block can continue.
    pub(crate) fn stuck(&self, worker: &Worker<'_>) -> Option<Failure> {
        for waiting in &self.fragments {
            let (group, members) = self.collective(waiting, worker);
            let missing = members & self.state.live & !group;
            let Some(other) = self
                .fragments
                .iter()
                .find(|other| other.mask & missing != 0)
            else {
                continue;
            };
            let divergence = Divergence {
                waiting: group,
                missing,
                ..self.divergence_between(waiting, other)
            };
            let kind = if self.is_at_aligned_barrier(waiting, worker) {
                ReportKind::DivergentBarrier
            } else {
                ReportKind::MissingMembers
            };
            let function = self.frames[waiting.frame as usize].function;
            return Some(Failure {
                trap: divergence.into_trap(kind, self.missing_line(waiting, other, worker)),
                fragment: 0,
                function,
                line: worker.code(function)[waiting.pc as usize].line,
            });
        }
        None
    }

    /// Returns the lanes of a fragment that wait at a collective instruction with the mask of the
    /// first one, and the lanes that they wait for. Both are empty for a fragment that waits for
    /// something else.
    fn collective(&self, fragment: &Fragment, worker: &Worker<'_>) -> (u32, u32) {
        match fragment.state {
            State::Gathering { members } => (self.gathered(members), members),
            State::Converging { .. } => {
                let frame = &self.frames[fragment.frame as usize];
                let op = &worker.code(frame.function)[fragment.pc as usize];
                if !matches!(op.role, Role::Collective(_)) {
                    return (fragment.mask, self.state.live);
                }
                let masks = frame.row::<u32>(op.imm as u32);
                let members = masks[fragment.mask.trailing_zeros() as usize & 31];
                let group = lanes_where(|lane| masks[lane] == members) & fragment.mask;
                (group, members)
            }
            _ => (0, 0),
        }
    }

    fn divergence_between(&self, waiting: &Fragment, missing: &Fragment) -> Divergence {
        Divergence {
            warp: self.state.index,
            waiting: waiting.mask,
            missing: missing.mask,
        }
    }

    /// Returns the PTX line of a fragment for which another waits.
    fn missing_line(&self, waiting: &Fragment, missing: &Fragment, worker: &Worker<'_>) -> u32 {
        let code = worker.code(self.frames[missing.frame as usize].function);
        // The guard of the barrier is false in lanes that are at the barrier itself, after the
        // check.
        let is_guarded = missing.frame == waiting.frame && missing.pc == waiting.pc + 1;
        let pc = missing.pc + u32::from(is_guarded);
        code[pc as usize].line
    }

    /// Returns `true` if a fragment is at an aligned barrier.
    fn is_at_aligned_barrier(&self, fragment: &Fragment, worker: &Worker<'_>) -> bool {
        let code = worker.code(self.frames[fragment.frame as usize].function);
        code[fragment.pc as usize].role == Role::CheckAligned
    }

    /// Returns the position of a fragment, and those of its callers up to the kernel.
    fn call_path(&self, fragment: &Fragment) -> Vec<Position> {
        let mut path = Vec::with_capacity(fragment.depth as usize + 1);
        let mut pc = fragment.pc;
        let mut next = Some(fragment.frame);
        while let Some(index) = next {
            let frame = &self.frames[index as usize];
            path.push(Position {
                function: frame.function,
                pc,
            });
            next = frame.caller.map(|caller| {
                pc = caller.pc;
                caller.frame
            });
        }
        path
    }
}

/// Returns `true` if threads at `other` bypass the barrier of threads at `path`.
fn bypasses(path: &[Position], other: &[Position], worker: &mut Worker<'_>) -> bool {
    // Both paths end in the kernel.
    let common = path
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(position, other)| position == other)
        .count();
    let mut level = path.len().checked_sub(common + 1);
    let mut other_level = other.len().checked_sub(common + 1);
    let is_in_same_function = level
        .zip(other_level)
        .is_some_and(|(level, other_level)| path[level].function == other[other_level].function);
    if !is_in_same_function {
        // One call instruction called different functions.
        level = path.len().checked_sub(common);
        other_level = other.len().checked_sub(common);
    }
    let (Some(level), Some(other_level)) = (level, other_level) else {
        return false;
    };
    let position = path[level];
    let other_pc = other[other_level].pc + u32::from(other_level != 0);
    let program = &worker.launch.program.functions;
    let continues = path[level + 1..].iter().any(|caller| {
        let code = &program[caller.function as usize].code;
        !is_only_end(code, caller.pc + 1)
    });
    let site = Site {
        function: position.function,
        pc: position.pc,
        continues,
    };
    let function = &program[position.function as usize];
    let bypass = worker
        .bypasses
        .entry(site)
        .or_insert_with(|| Bypass::new(function, site));
    bypass.0[other_pc as usize]
}

/// Returns `true` if the code from `pc` on only returns.
fn is_only_end(code: &[Op], pc: u32) -> bool {
    code.get(pc as usize).is_none_or(|op| op.role == Role::End)
}

impl Bypass {
    fn new(function: &Function, site: Site) -> Self {
        let code = &function.code;
        let mut predecessors = vec![Vec::new(); code.len()];
        for pc in 0..code.len() as u32 {
            for next in successors(function, pc) {
                predecessors[next as usize].push(pc);
            }
        }
        let before = reachable(code.len(), vec![site.pc], |pc| {
            predecessors[pc as usize].clone()
        });
        // Only the arriving threads execute the barrier, so it is not among the instructions after
        // it.
        let barrier = site.pc + u32::from(code[site.pc as usize].role == Role::CheckAligned);
        let after = reachable(code.len(), successors(function, barrier), |pc| {
            successors(function, pc)
        });
        // Threads at another aligned barrier are judged there.
        let is_end: Vec<bool> = code
            .iter()
            .map(|op| match op.role {
                Role::End => !site.continues,
                Role::CheckAligned => true,
                _ => false,
            })
            .collect();
        let is_shared: Vec<bool> = (0..code.len())
            .map(|pc| {
                let is_branch = matches!(code[pc].role, Role::Branch | Role::IndexedBranch);
                after[pc] && !is_branch && !is_end[pc]
            })
            .collect();
        let rejoining = reachable(code.len(), marked(&is_shared), |pc| {
            predecessors[pc as usize].clone()
        });
        // The instructions from which threads can end without executing any that the others execute
        // too.
        let ending = reachable(code.len(), marked(&is_end), |pc| {
            let mut before = predecessors[pc as usize].clone();
            before.retain(|&pc| !is_shared[pc as usize]);
            before
        });
        Self(
            (0..code.len())
                .map(|pc| !before[pc] && rejoining[pc] && !ending[pc])
                .collect(),
        )
    }
}

/// Returns the marked instructions.
fn marked(is_marked: &[bool]) -> Vec<u32> {
    (0..is_marked.len() as u32)
        .filter(|&pc| is_marked[pc as usize])
        .collect()
}

/// Returns the instructions that may be executed after one of a function.
fn successors(function: &Function, pc: u32) -> Vec<u32> {
    let op = &function.code[pc as usize];
    let mut next = match op.role {
        Role::Branch => vec![op.branch_target()],
        Role::IndexedBranch => function.branch_tables[op.table_index()].clone(),
        Role::End => Vec::new(),
        _ => vec![pc + 1],
    };
    if op.guard != 0 && op.role.is_flow() {
        next.push(pc + 1);
    }
    next.retain(|&pc| (pc as usize) < function.code.len());
    next
}

/// Returns the instructions that can be reached from pending ones by `next`, among `count`
/// instructions.
fn reachable(count: usize, mut pending: Vec<u32>, next: impl Fn(u32) -> Vec<u32>) -> Vec<bool> {
    let mut is_reached = vec![false; count];
    while let Some(pc) = pending.pop() {
        if !std::mem::replace(&mut is_reached[pc as usize], true) {
            pending.extend(next(pc));
        }
    }
    is_reached
}
