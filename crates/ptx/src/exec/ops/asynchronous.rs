//! Asynchronous copies and stores: `cp.async`, `st.async`, `red.async`.

use super::mbarrier::Mbarrier;
use crate::exec::check::copies::Copy;
use crate::exec::check::report::Trap;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::{check_alignment, check_reach, read_at, update_at, write_at};
use crate::exec::ops::uninitialized;
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

pub(crate) fn run_copy(unit: &mut Unit<'_>, op: &Op) -> Control {
    let size = op.imm as u32;
    for lane in Lanes(unit.active) {
        let to = unit.frame.row::<u64>(op.a)[lane];
        let from = unit.frame.row::<u64>(op.b)[lane];
        let valid = unit.frame.row::<u32>(op.c)[lane].min(size);
        // The destination is checked now, so that a report names the copy and not the wait.
        let tried = check_alignment(to, op.imm, lane, AccessMode::Write)
            .and_then(|()| check_alignment(from, op.imm, lane, AccessMode::Read))
            .and_then(|()| {
                check_reach(
                    unit,
                    Space::Shared,
                    lane,
                    to + op.imm - 1,
                    AccessMode::Write,
                )
            })
            .and_then(|()| match u64::from(valid) {
                0 => Ok(()),
                valid => check_reach(
                    unit,
                    Space::Global,
                    lane,
                    from + valid - 1,
                    AccessMode::Read,
                )
                .and_then(|()| uninitialized::check(unit, Space::Global, lane, from, valid)),
            });
        if let Err(trap) = tried {
            return unit.fault(trap);
        }
        if let Some(oldest) = unit
            .warp
            .copies
            .push(Copy::new(lane, from, to, size, valid))
            && let Err(trap) = perform(unit, oldest)
        {
            return unit.fault(trap);
        }
    }
    Control::Next
}

/// Performs a queued copy.
fn perform(unit: &mut Unit<'_>, copy: Copy) -> Result<(), Trap> {
    for index in 0..copy.size {
        let offset = u64::from(index);
        let byte = if index < copy.valid {
            read_at::<u8>(unit, Space::Global, copy.lane, copy.from + offset)?
        } else {
            0
        };
        write_at(unit, Space::Shared, copy.lane, copy.to + offset, byte)?;
    }
    Ok(())
}

fn perform_all(unit: &mut Unit<'_>, copies: Vec<Copy>) -> Control {
    for copy in copies {
        if let Err(trap) = perform(unit, copy) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

pub(crate) fn run_commit(unit: &mut Unit<'_>, _op: &Op) -> Control {
    unit.warp.copies.commit(unit.active);
    Control::Next
}

pub(crate) fn run_wait_group(unit: &mut Unit<'_>, op: &Op) -> Control {
    let due = unit.warp.copies.due(unit.active, op.imm as u32);
    perform_all(unit, due)
}

pub(crate) fn run_wait_all(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let all = unit.warp.copies.all(unit.active);
    perform_all(unit, all)
}

/// `cp.async.mbarrier.arrive`: arrives once the thread's copies have completed. Without `.noinc`,
/// the pending count is incremented first.
pub(crate) fn run_arrive_after_copies(unit: &mut Unit<'_>, op: &Op) -> Control {
    let all = unit.warp.copies.all(unit.active);
    let control = perform_all(unit, all);
    if control != Control::Next || op.imm == 0 {
        // The increment and the arrival cancel out.
        return control;
    }
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        let result = update_at(unit, op.space, lane, address, |bits| {
            Mbarrier::from_bits(bits).arrive(1).bits()
        });
        if let Err(trap) = result {
            return unit.fault(trap);
        }
    }
    Control::Next
}
