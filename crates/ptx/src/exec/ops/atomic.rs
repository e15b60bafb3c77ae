//! Accesses and atomics of 128 bits, and sums at generic addresses.

use parking_lot::Mutex;

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::memory::window::resolve;
use crate::exec::ops::access::{addresses, check_alignment, read_at, update_at, write_at};
use crate::exec::space::Space;
use crate::exec::values::float::{Real, canonical, flush};
use crate::exec::values::lane::Lanes;

/// Locked for each access of 128 bits that is atomic. Not all hosts have instructions for them.
static LOCK: Mutex<()> = Mutex::new(());

/// Loads 128 bits at once, with respect to stores and atomics of 128 bits.
pub(crate) fn run_wide_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    let Some([low, high]) = rows(unit, op) else {
        return no_rows(unit);
    };
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let lock = LOCK.lock();
        let value = match read_pair(unit, op, lane, addresses[lane], AccessMode::Read) {
            Ok(value) => value,
            Err(trap) => return unit.fault(trap),
        };
        drop(lock);
        unit.frame.row_mut::<u64>(low).0[lane] = value[0];
        unit.frame.row_mut::<u64>(high).0[lane] = value[1];
    }
    Control::Next
}

/// Stores 128 bits at once, with respect to loads and atomics of 128 bits.
pub(crate) fn run_wide_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    let Some([low, high]) = rows(unit, op) else {
        return no_rows(unit);
    };
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let value = [low, high].map(|row| unit.frame.row::<u64>(row)[lane]);
        let checked = check_alignment(addresses[lane], 16, lane, AccessMode::Write);
        let _lock = LOCK.lock();
        if let Err(trap) = checked.and_then(|()| write_pair(unit, op, lane, addresses[lane], value))
        {
            return unit.fault(trap);
        }
    }
    Control::Next
}

/// Performs an exchange or a compare-and-swap of 128 bits.
pub(crate) fn run_wide_atomic<const COMPARES: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let Some([b_low, b_high, c_low, c_high, d_low, d_high]) = rows(unit, op) else {
        return no_rows(unit);
    };
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let b = [b_low, b_high].map(|row| unit.frame.row::<u64>(row)[lane]);
        let c = [c_low, c_high].map(|row| unit.frame.row::<u64>(row)[lane]);
        let _lock = LOCK.lock();
        let old = match read_pair(unit, op, lane, addresses[lane], AccessMode::Write) {
            Ok(old) => old,
            Err(trap) => return unit.fault(trap),
        };
        let new = if COMPARES { c } else { b };
        if (!COMPARES || old == b)
            && let Err(trap) = write_pair(unit, op, lane, addresses[lane], new)
        {
            return unit.fault(trap);
        }
        unit.frame.row_mut::<u64>(d_low).0[lane] = old[0];
        unit.frame.row_mut::<u64>(d_high).0[lane] = old[1];
    }
    Control::Next
}

/// Returns the list of rows of an instruction.
fn rows<const COUNT: usize>(unit: &Unit<'_>, op: &Op) -> Option<[u32; COUNT]> {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    function.row_lists[op.b as usize].as_slice().try_into().ok()
}

/// Reports code without its list of rows.
#[cold]
fn no_rows(unit: &mut Unit<'_>) -> Control {
    let leader = unit.leader();
    unit.fault(Trap::new(ReportKind::InvalidProgramCounter, leader))
}

fn read_pair(
    unit: &mut Unit<'_>,
    op: &Op,
    lane: usize,
    address: u64,
    mode: AccessMode,
) -> Result<[u64; 2], Trap> {
    check_alignment(address, 16, lane, mode)?;
    Ok([
        read_at(unit, op.space, lane, address)?,
        read_at(unit, op.space, lane, address.wrapping_add(8))?,
    ])
}

fn write_pair(
    unit: &mut Unit<'_>,
    op: &Op,
    lane: usize,
    address: u64,
    [low, high]: [u64; 2],
) -> Result<(), Trap> {
    write_at(unit, op.space, lane, address, low)?;
    write_at(unit, op.space, lane, address.wrapping_add(8), high)
}

/// Adds f32 at generic addresses. Subnormals are flushed in device memory, but not in shared
/// memory.
pub(crate) fn run_generic_sum(unit: &mut Unit<'_>, op: &Op) -> Control {
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        if let Err(trap) = check_alignment(
            addresses[lane].wrapping_sub(op.element_offset()),
            u64::from(op.align_mask) + 1,
            lane,
            AccessMode::Write,
        ) {
            return unit.fault(trap);
        }
        let is_device = resolve(addresses[lane]).0 == Space::Global;
        let b = unit.frame.row::<u32>(op.b)[lane];
        let result = update_at(unit, op.space, lane, addresses[lane], |old| {
            if is_device {
                flushed_sum(old, b)
            } else {
                sum(old, b)
            }
        });
        match result {
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
    flush(canonical(
        flush(f32::from_bits(a)) + flush(f32::from_bits(b)),
    ))
    .to_bits()
}

pub(crate) fn change<T: Real>(old: u16, b: u16, f: impl Fn(T, T) -> T) -> u16 {
    f(
        T::from_low_bits(u64::from(old)),
        T::from_low_bits(u64::from(b)),
    )
    .bits() as u16
}
