//! Traps, fences, and arrivals at barriers.

use std::sync::atomic::{Ordering, fence};

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::barrier::{NAMED_BARRIERS, Wait};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::Lanes;

/// The value of `Op::c` for a barrier that waits for every thread of the block.
pub(crate) const EVERYONE: u32 = u32::MAX;

/// Flags in `Op::imm` of a barrier.
pub(crate) const ARRIVE_ONLY: u64 = 1 << 32;

pub(crate) const HAS_VOTE: u64 = 1 << 33;

pub(crate) const NEGATED_VOTE: u64 = 1 << 34;

pub(crate) fn run_trap(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let trap = Trap::new(ReportKind::Trap, unit.leader());
    unit.fault(trap)
}

/// `membar`, `fence`.
pub(crate) fn run_fence(_unit: &mut Unit<'_>, _op: &Op) -> Control {
    fence(Ordering::SeqCst);
    Control::Next
}

pub(crate) fn run_barrier(unit: &mut Unit<'_>, op: &Op) -> Control {
    let leader = unit.leader();
    let barrier = unit.frame.row::<u32>(op.a)[leader] as usize;
    let count = match op.c {
        EVERYONE => 0,
        row => unit.frame.row::<u32>(row)[leader],
    };
    if barrier >= NAMED_BARRIERS {
        let trap = Trap::new(ReportKind::Trap, leader);
        return unit.fault(trap);
    }
    let votes = if op.imm & HAS_VOTE == 0 {
        0
    } else if op.imm & NEGATED_VOTE == 0 {
        unit.frame.predicate(op.b) & unit.active
    } else {
        !unit.frame.predicate(op.b) & unit.active
    };
    unit.wait = Wait {
        barrier,
        count,
        votes,
        arrive_only: op.imm & ARRIVE_ONLY != 0,
    };
    Control::Wait
}

pub(crate) fn run_cluster_arrive(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let phase = unit.block.cluster.arrive(unit.active.count_ones());
    for lane in Lanes(unit.active) {
        unit.warp.cluster_phase[lane] = phase;
    }
    Control::Next
}

pub(crate) fn run_cluster_wait(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let current = unit.block.cluster.phase();
    let mut arrived = Lanes(unit.active).map(|lane| unit.warp.cluster_phase[lane]);
    if arrived.any(|phase| phase == current) {
        return Control::WaitForCluster { phase: current };
    }
    Control::Next
}
