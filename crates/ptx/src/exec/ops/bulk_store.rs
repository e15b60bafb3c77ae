//! Bulk stores to shared memory: `st.bulk`.

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::memory::window::resolve;
use crate::exec::ops::access::{check_alignment, trap, write_at};
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The alignment of addresses and sizes, in bytes.
pub(crate) const STEP: u64 = 8;

pub(crate) fn run_store_bulk(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        let size = unit.frame.row::<u64>(op.b)[lane];
        if let Err(trap) = fill(unit, op.space, lane, address, size) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn fill(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    size: u64,
) -> Result<(), Trap> {
    check_alignment(address | size, STEP, lane, AccessMode::Write)?;
    if space == Space::Generic && resolve(address).0 != Space::Shared {
        return Err(trap(
            ReportKind::IllegalAddress,
            lane,
            address,
            STEP,
            AccessMode::Write,
        )
        .in_space(space));
    }
    for offset in (0..size).step_by(STEP as usize) {
        write_at(unit, space, lane, address.wrapping_add(offset), 0_u64)?;
    }
    Ok(())
}
