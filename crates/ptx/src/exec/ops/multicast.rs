//! Accesses to multicast memory (`multimem`).
//!
//! The driver of the simulator creates no multicast objects, so every access faults. For an address
//! of other memory, the PTX ISA defines no result.

use crate::exec::check::report::ReportKind;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::{addresses, check_alignment, check_reach, trap};

/// The alignment of bulk copies in bytes.
pub(crate) const BULK_ALIGNMENT: u64 = 16;

/// Faults in the lowest lane: the address is misaligned, outside of all memory, or not one of a
/// multicast object.
pub(crate) fn run_multicast<const WRITES: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let mode = if WRITES {
        AccessMode::Write
    } else {
        AccessMode::Read
    };
    let lane = unit.leader();
    let address = addresses(unit, op)[lane];
    let bytes = u64::from(op.align_mask) + 1;
    let checked = check_alignment(address, bytes, lane, mode)
        .and_then(|()| check_reach(unit, op.space, lane, address, mode));
    let reason = "multimem requires an address of a multicast object";
    let fault = checked.err().unwrap_or_else(|| {
        trap(
            ReportKind::IllegalInstruction(reason),
            lane,
            address,
            bytes,
            mode,
        )
    });
    unit.fault(fault)
}
