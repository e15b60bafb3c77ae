//! Accesses of a warp to scattered addresses in one allocation: checked once per warp, then
//! performed per lane.

use crate::exec::frame::InFile;
use crate::exec::machine::op::Op;
use crate::exec::machine::unit::Unit;
use crate::exec::memory::lane_addresses::LaneAddresses;
use crate::exec::memory::window::SHARED_WINDOW;
use crate::exec::memory::{AccessMode, Word};
use crate::exec::ops::access::{Load, addresses, segment};
use crate::exec::space::Space;
use crate::exec::values::lane::{FULL, HALF, LANES, Lanes, Row};

/// Loads each active lane's value. Returns `false` if the lanes must be handled one by one.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some(lanes) = resolve::<T::Word>(unit, op, AccessMode::Read) else {
        return false;
    };
    let mut values = [D::default(); LANES];
    for (half, values) in values.as_chunks_mut::<HALF>().0.iter_mut().enumerate() {
        load_half::<T, D>(&lanes, half * HALF, values);
    }
    unit.frame.row_mut::<D>(op.d).merge(&values, unit.active);
    true
}

/// Loads the values of a half warp from lane `first` on. Its lanes often share one address.
#[inline(always)]
fn load_half<T: Load, D: InFile>(
    lanes: &LaneAddresses<T::Word>,
    first: usize,
    values: &mut [D; HALF],
) {
    if lanes.are_equal(first, first + HALF) {
        values.fill(D::truncate(T::extend(lanes.load(first))));
        return;
    }
    for (lane, value) in (first..).zip(values) {
        *value = D::truncate(T::extend(lanes.load(lane)));
    }
}

/// Stores each active lane's value, the lowest lane first. Returns `false` if the lanes must be
/// handled one by one.
#[inline(always)]
pub(crate) fn store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some(lanes) = resolve::<T>(unit, op, AccessMode::Write) else {
        return false;
    };
    let values = unit.frame.row::<S>(op.b);
    for lane in Lanes(unit.active) {
        lanes.store(lane, T::truncate(values[lane].extend()));
    }
    true
}

/// Resolves the lanes' addresses for writing, if they are in the block's own shared memory. The
/// functions are not inlined, because each atomic operation has a handler. `WIDE` requires AVX2,
/// FMA and F16C.
#[inline(always)]
pub(crate) fn resolve_in_shared<T: Word, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> Option<LaneAddresses<T>> {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline(never)]
    fn resolve_wide<T: Word>(unit: &mut Unit<'_>, op: &Op) -> Option<LaneAddresses<T>> {
        resolve_if_shared(unit, op)
    }

    #[inline(never)]
    fn resolve_base<T: Word>(unit: &mut Unit<'_>, op: &Op) -> Option<LaneAddresses<T>> {
        resolve_if_shared(unit, op)
    }

    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: `WIDE` requires the features; only handlers selected for them pass it.
        return unsafe { resolve_wide(unit, op) };
    }
    resolve_base(unit, op)
}

#[inline(always)]
fn resolve_if_shared<T: Word>(unit: &mut Unit<'_>, op: &Op) -> Option<LaneAddresses<T>> {
    let is_shared = match op.space {
        Space::Shared => true,
        // Other window addresses are in no segment.
        Space::Generic => addresses(unit, op)[unit.leader()] >= SHARED_WINDOW,
        _ => false,
    };
    if is_shared {
        resolve(unit, op, AccessMode::Write)
    } else {
        None
    }
}

/// Resolves the lanes' addresses, if all are aligned and in one segment. Inactive lanes get the
/// address of an active one.
#[inline(always)]
fn resolve<T: Word>(unit: &mut Unit<'_>, op: &Op, mode: AccessMode) -> Option<LaneAddresses<T>> {
    let mut addresses = addresses(unit, op);
    let leader = addresses[unit.leader()];
    if unit.active != FULL {
        let mut filled = Row::splat(leader);
        filled.merge(&addresses, unit.active);
        addresses = filled.0;
    }
    let mut misaligned = 0;
    for address in &addresses {
        misaligned |= address.wrapping_sub(op.element_offset());
    }
    if misaligned & u64::from(op.align_mask) != 0 {
        return None;
    }
    let segment = segment(unit, op.space, leader, mode)?;
    LaneAddresses::new(&segment, &addresses)
}
