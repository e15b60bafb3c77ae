//! Address space tests: `isspacep`.

use super::lane::LANES;
use super::op::{Control, Op};
use super::unit::Unit;
use super::window::{SHARED_WINDOW, WINDOW_SIZE};

pub(crate) fn run_space(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = *unit.frame.row::<u64>(op.a);
    let (window, any_block) = (op.imm & !1, op.imm & 1 == 1);
    let mut holds = 0;
    for (lane, &address) in row.iter().enumerate().take(LANES) {
        let inside = match window {
            0 => address < SHARED_WINDOW && !is_constant(unit, address),
            SHARED_WINDOW => {
                let offset = address.wrapping_sub(SHARED_WINDOW);
                offset
                    < if any_block {
                        WINDOW_SIZE
                    } else {
                        crate::exec::window::BLOCK_STRIDE
                    }
            }
            window => address.wrapping_sub(window) < WINDOW_SIZE,
        };
        holds |= u32::from(inside) << lane;
    }
    unit.frame.set_predicate(op.d, holds, unit.active);
    Control::Next
}

/// Tests for addresses of constants.
pub(crate) fn run_constants(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = *unit.frame.row::<u64>(op.a);
    let lanes = row.iter().enumerate().take(LANES);
    let holds = lanes.fold(0, |holds, (lane, &address)| {
        holds | u32::from(is_constant(unit, address)) << lane
    });
    unit.frame.set_predicate(op.d, holds, unit.active);
    Control::Next
}

/// Returns `true` if an address is in a constant of the module. Constants are in device memory, so only their addresses identify them.
fn is_constant(unit: &Unit<'_>, address: u64) -> bool {
    let places = unit.launch.program.globals.iter().zip(unit.launch.globals);
    places
        .into_iter()
        .any(|(global, at)| global.constant && address.wrapping_sub(*at) < global.size)
}
