//! Atomics of 128 bits and of vectors.

use std::sync::{Mutex, PoisonError};

use super::access::{addresses, check_alignment, read_at, update_at, write_at};
use super::float::{Real, canonical, flush};
use super::lane::Lanes;
use super::op::{Control, Op, Space};
use super::report::{ReportKind, Trap};
use super::unit::Unit;
use super::window::resolve;

/// Performs an exchange or a compare-and-swap of 128 bits. Not all hosts have such an instruction, so a lock makes the operations atomic
/// with respect to each other, as PTX requires.
pub(crate) fn run_wide_atomic<const COMPARES: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    static LOCK: Mutex<()> = Mutex::new(());
    let program = unit.launch.program;
    let rows = program.functions[unit.frame.function as usize].row_lists[op.b as usize].as_slice();
    let &[b_low, b_high, c_low, c_high, d_low, d_high] = rows else {
        let leader = unit.leader();
        return unit.fault(Trap::new(ReportKind::InvalidProgramCounter, leader));
    };
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let value = |row: u32| unit.frame.row::<u64>(row)[lane];
        let (b, c) = ([value(b_low), value(b_high)], [value(c_low), value(c_high)]);
        let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match read_pair(unit, op, lane, addresses[lane]) {
            Ok(old) => old,
            Err(trap) => return unit.fault(trap),
        };
        if (!COMPARES || old == b)
            && let Err(trap) = write_pair(unit, op, lane, addresses[lane], if COMPARES { c } else { b })
        {
            return unit.fault(trap);
        }
        unit.frame.row_mut::<u64>(d_low).0[lane] = old[0];
        unit.frame.row_mut::<u64>(d_high).0[lane] = old[1];
    }
    Control::Next
}

fn read_pair(unit: &mut Unit<'_>, op: &Op, lane: usize, address: u64) -> Result<[u64; 2], Trap> {
    check_alignment(address, 16, lane, true)?;
    Ok([read_at(unit, op.space, lane, address)?, read_at(unit, op.space, lane, address.wrapping_add(8))?])
}

fn write_pair(unit: &mut Unit<'_>, op: &Op, lane: usize, address: u64, [low, high]: [u64; 2]) -> Result<(), Trap> {
    write_at(unit, op.space, lane, address, low)?;
    write_at(unit, op.space, lane, address.wrapping_add(8), high)
}

/// Adds f32 at generic addresses. Subnormals are flushed in device memory, but not in shared memory.
pub(crate) fn run_generic_sum(unit: &mut Unit<'_>, op: &Op) -> Control {
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        if let Err(trap) =
            check_alignment(addresses[lane].wrapping_sub(u64::from(op.e)), u64::from(op.align_mask) + 1, lane, true)
        {
            return unit.fault(trap);
        }
        let is_device = resolve(addresses[lane]).0 == Space::Global;
        let b = unit.frame.row::<u32>(op.b)[lane];
        let change = |old| if is_device { flushed_sum(old, b) } else { sum(old, b) };
        match update_at::<u32>(unit, op.space, lane, addresses[lane], change) {
            Ok(old) => unit.frame.row_mut::<u32>(op.d).0[lane] = old,
            Err(trap) => return unit.fault(trap),
        }
    }
    Control::Next
}

pub(crate) fn sum(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) + f32::from_bits(b)).to_bits()
}

pub(crate) fn flushed_sum(a: u32, b: u32) -> u32 {
    flush(canonical(flush(f32::from_bits(a)) + flush(f32::from_bits(b)))).to_bits()
}

pub(crate) fn change<T: Real>(old: u16, b: u16, f: impl Fn(T, T) -> T) -> u16 {
    f(T::of_bits(u64::from(old)), T::of_bits(u64::from(b))).bits() as u16
}
