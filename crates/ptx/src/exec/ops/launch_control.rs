//! Requests for the work of other clusters: `clusterlaunchcontrol`.

use super::mbarrier::Mbarrier;
use crate::exec::check::report::Trap;
use crate::exec::machine::cluster::address_in;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::{check_alignment, update_at, write_at};
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The number of bytes of a response.
const RESPONSE_BYTES: u32 = 16;

/// The bit of the upper 64 that is set if a cluster was canceled.
const IS_CANCELED: u64 = 1 << 32;

pub(crate) fn run_is_canceled(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = unit.frame.row::<u64>(op.a);
    let canceled = row.iter().enumerate().fold(0, |lanes, (lane, high)| {
        lanes | u32::from(high & IS_CANCELED != 0) << lane
    });
    unit.frame.set_predicate(op.d, canceled, unit.active);
    Control::Next
}

/// Requests a cluster for each thread. The response is available at once.
pub(crate) fn run_take_over<const TO_ALL: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let addresses =
            [op.a, op.b].map(|row| unit.frame.row::<u64>(row)[lane].wrapping_sub(op.imm));
        let response = match unit.launch.take_over_cluster() {
            Some([x, y, z]) => [
                u64::from(y) << 32 | u64::from(x),
                IS_CANCELED | u64::from(z),
            ],
            None => [0; 2],
        };
        let ranks = if TO_ALL {
            0..unit.launch.cluster_size() as u32
        } else {
            0..1
        };
        for rank in ranks {
            let [to, barrier] = if TO_ALL {
                addresses.map(|address| address_in(address, rank))
            } else {
                addresses
            };
            if let Err(trap) = write_response(unit, lane, to, barrier, response) {
                return unit.fault(trap);
            }
        }
    }
    Control::Next
}

/// Writes a response, and completes its bytes on the mbarrier object.
fn write_response(
    unit: &mut Unit<'_>,
    lane: usize,
    to: u64,
    barrier: u64,
    [low, high]: [u64; 2],
) -> Result<(), Trap> {
    check_alignment(to, RESPONSE_BYTES.into(), lane, AccessMode::Write)?;
    write_at(unit, Space::Shared, lane, to, low)?;
    write_at(unit, Space::Shared, lane, to.wrapping_add(8), high)?;
    update_at(unit, Space::Shared, lane, barrier, |bits| {
        Mbarrier::from_bits(bits).complete(RESPONSE_BYTES).bits()
    })?;
    Ok(())
}
