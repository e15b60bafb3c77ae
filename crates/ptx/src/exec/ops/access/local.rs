//! Accesses of all threads of a warp to one offset in local memory: whole rows at a time.

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::{AccessMode, Word};
use crate::exec::ops::access::{Load, pattern, trap};
use crate::exec::space::Space;
use crate::exec::values::lane::LANES;

/// Returns the offset in local memory of an access, if the offset is the same for every thread.
#[inline(always)]
pub(crate) fn offset(unit: &Unit<'_>, op: &Op) -> Option<u64> {
    match op.space {
        Space::Frame => Some(unit.frame.local.wrapping_add(op.imm)),
        Space::Local => pattern::uniform_address(unit, op),
        _ => None,
    }
}

/// Loads from the same offset of every active thread's local memory.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op, offset: u64) -> Control {
    if let Err(trap) = check::<T::Word>(unit, op, offset, AccessMode::Read) {
        return unit.fault(trap);
    }
    let words = &unit.warp.local[(offset >> 3) as usize].0;
    let shift = (offset & 7) * 8;
    let mut result = [D::default(); LANES];
    for lane in 0..LANES {
        result[lane] = D::truncate(T::extend(T::Word::truncate(words[lane] >> shift)));
    }
    unit.frame.row_mut::<D>(op.d).merge(&result, unit.active);
    Control::Next
}

/// Stores to the same offset of every active thread's local memory.
#[inline(always)]
pub(crate) fn store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op, offset: u64) -> Control {
    if let Err(trap) = check::<T>(unit, op, offset, AccessMode::Write) {
        return unit.fault(trap);
    }
    let values = unit.frame.row::<S>(op.b);
    let row = &mut unit.warp.local[(offset >> 3) as usize];
    let mut result = row.0;
    for lane in 0..LANES {
        let value = T::truncate(values[lane].extend());
        result[lane] = insert::<T>(result[lane], offset, value);
    }
    row.merge(&result, unit.active);
    Control::Next
}

/// Checks an access at the same offset in every thread.
fn check<T: Word>(unit: &Unit<'_>, op: &Op, offset: u64, mode: AccessMode) -> Result<(), Trap> {
    // The alignment applies to the whole vector.
    let start = offset.wrapping_sub(op.element_offset());
    let (kind, address, bytes) = if start & u64::from(op.align_mask) != 0 {
        let whole = u64::from(op.align_mask) + 1;
        (ReportKind::MisalignedAddress, start, whole)
    } else if is_inside(unit, offset, T::SIZE) {
        return Ok(());
    } else {
        (ReportKind::IllegalAddress, offset, T::SIZE)
    };
    Err(trap(kind, unit.leader(), address, bytes, mode).in_space(Space::Local))
}

/// Returns `true` if `bytes` bytes at an offset are within the threads' local memory.
pub(crate) fn is_inside(unit: &Unit<'_>, offset: u64, bytes: u64) -> bool {
    let size = unit.warp.local.len() as u64 * 8;
    offset < size && size - offset >= bytes
}

/// Replaces the value at `offset` modulo eight in a word of local memory.
#[inline(always)]
pub(crate) fn insert<T: Word>(word: u64, offset: u64, value: T) -> u64 {
    let shift = (offset & 7) * 8;
    let mask = (u64::MAX >> (64 - 8 * T::SIZE)) << shift;
    (word & !mask) | (value.extend() << shift)
}
