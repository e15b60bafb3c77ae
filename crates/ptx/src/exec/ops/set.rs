//! Address space tests: `isspacep`.

use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::window::{BLOCK_STRIDE, SHARED_WINDOW, WINDOW_SIZE};

pub(crate) fn run_space(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = *unit.frame.row::<u64>(op.a);
    let window = op.imm & !1;
    let is_any_block = op.imm & 1 == 1;
    let mut lanes = 0;
    for (lane, &address) in row.iter().enumerate() {
        let inside = match window {
            0 => address < SHARED_WINDOW && !is_constant(unit, address),
            SHARED_WINDOW => {
                let size = if is_any_block {
                    WINDOW_SIZE
                } else {
                    BLOCK_STRIDE
                };
                address.wrapping_sub(SHARED_WINDOW) < size
            }
            window => address.wrapping_sub(window) < WINDOW_SIZE,
        };
        lanes |= u32::from(inside) << lane;
    }
    unit.frame.set_predicate(op.d, lanes, unit.active);
    Control::Next
}

/// Tests for addresses of constants.
pub(crate) fn run_constants(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = *unit.frame.row::<u64>(op.a);
    let mut lanes = 0;
    for (lane, &address) in row.iter().enumerate() {
        lanes |= u32::from(is_constant(unit, address)) << lane;
    }
    unit.frame.set_predicate(op.d, lanes, unit.active);
    Control::Next
}

/// Returns `true` if an address is in a constant of the module. Constants are in device memory, so
/// only their addresses identify them.
fn is_constant(unit: &Unit<'_>, address: u64) -> bool {
    unit.launch
        .program
        .globals
        .iter()
        .zip(unit.launch.globals)
        .any(|(global, start)| global.constant && address.wrapping_sub(*start) < global.size)
}
