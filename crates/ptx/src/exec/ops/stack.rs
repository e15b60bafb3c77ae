//! Local memory of functions: addresses of variables, `alloca`, `stacksave`, `stackrestore`.

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::machine::warp_state::LOCAL_LIMIT;
use crate::exec::values::lane::{LANES, Lanes, Row};

/// Computes the generic address of a variable of the frame.
pub(crate) fn run_frame_address(unit: &mut Unit<'_>, op: &Op) -> Control {
    let address = unit.frame.local.wrapping_add(op.imm);
    unit.frame
        .row_mut::<u64>(op.d)
        .merge(&[address; LANES], unit.active);
    Control::Next
}

/// Returns the end of the local memory of a lane, including `alloca`.
fn end(unit: &Unit<'_>, lane: usize) -> u64 {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    unit.warp.alloca_end[lane].max(unit.frame.local + function.local_size)
}

/// Allocates memory at the end of each lane's local memory.
pub(crate) fn run_allocate(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let start = end(unit, lane).next_multiple_of(op.imm);
        let size = unit.frame.row::<u64>(op.a)[lane];
        let after = start
            .saturating_add(size)
            .checked_next_multiple_of(8)
            .filter(|after| *after <= LOCAL_LIMIT);
        let Some(after) = after else {
            return unit.fault(Trap::new(ReportKind::HardwareStackError, lane));
        };
        let words = (after / 8) as usize;
        if unit.warp.local.len() < words {
            unit.warp.local.resize(words, Row::splat(0));
        }
        if unit.launch.program.checking.uninitialized {
            let whole = start / 8 * 8;
            unit.warp.written.enter(whole, after - whole, 1 << lane);
        }
        unit.warp.alloca_end[lane] = after;
        unit.frame.row_mut::<u64>(op.d).0[lane] = start;
    }
    Control::Next
}

pub(crate) fn run_save(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let end = end(unit, lane);
        unit.frame.row_mut::<u64>(op.d).0[lane] = end;
    }
    Control::Next
}

pub(crate) fn run_restore(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        unit.warp.alloca_end[lane] = unit.frame.row::<u64>(op.a)[lane].min(LOCAL_LIMIT);
    }
    Control::Next
}
