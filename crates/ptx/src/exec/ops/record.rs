//! Records accesses to device memory for the check of races between launches.

use std::ops::Range;

use crate::exec::check::report::{Access, Conflict, ReportKind, Trap};
use crate::exec::check::watch::{AccessKind, Watcher};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::window::SHARED_WINDOW;
use crate::exec::ops::access::{addresses, pattern};
use crate::exec::values::lane::{LANES, Lanes};

const READ: u8 = AccessKind::Read as u8;

const WRITE: u8 = AccessKind::Write as u8;

/// Records the next access, of as many bytes as its alignment.
pub(crate) fn run_record<const HOW: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let how = match HOW {
        READ => AccessKind::Read,
        WRITE => AccessKind::Write,
        _ => AccessKind::Atomic,
    };
    let bytes = u64::from(op.align_mask) + 1;
    let race = match pattern::for_full_warp_cached(unit, op) {
        Some(pattern) => record_ranges(unit, pattern.ranges(bytes), how),
        None => record_lanes(unit, &addresses(unit, op), bytes, how),
    };
    match race {
        Some((address, conflict)) => report(unit, op, address, conflict, how),
        None => Control::Next,
    }
}

#[inline(always)]
fn record_ranges(
    unit: &mut Unit<'_>,
    [low, high]: [Range<u64>; 2],
    how: AccessKind,
) -> Option<(u64, Conflict)> {
    let watcher = unit.watcher.as_deref_mut()?;
    record_range(watcher, low, how).or_else(|| record_range(watcher, high, how))
}

/// Records the lanes' accesses one by one.
#[inline(never)]
fn record_lanes(
    unit: &mut Unit<'_>,
    addresses: &[u64; LANES],
    bytes: u64,
    how: AccessKind,
) -> Option<(u64, Conflict)> {
    let watcher = unit.watcher.as_deref_mut()?;
    let mut race = None;
    // Neighboring lanes often access one address or consecutive ones, which are recorded together.
    let mut begin = 0;
    let mut end = 0;
    for lane in Lanes(unit.active) {
        let address = addresses[lane];
        if address == end {
            end = end.saturating_add(bytes);
        } else if address.wrapping_add(bytes) != end || address < begin {
            race = race.or_else(|| record_range(watcher, begin..end, how));
            begin = address;
            end = address.saturating_add(bytes);
        }
    }
    race.or_else(|| record_range(watcher, begin..end, how))
}

#[cold]
fn report(
    unit: &mut Unit<'_>,
    op: &Op,
    address: u64,
    conflict: Conflict,
    how: AccessKind,
) -> Control {
    let addresses = addresses(unit, op);
    let bytes = u64::from(op.align_mask) + 1;
    let lane = Lanes(unit.active)
        .find(|&lane| address.wrapping_sub(addresses[lane]) < bytes)
        .unwrap_or(unit.leader());
    let access = Some(Access {
        address: addresses[lane],
        size: bytes as u32,
        write: how != AccessKind::Read,
    });
    unit.fault(Trap {
        access,
        conflict: Some(conflict),
        ..Trap::new(ReportKind::StreamRace, lane)
    })
}

/// Records a range, unless it is empty or not in device memory.
#[inline]
fn record_range(
    watcher: &mut dyn Watcher,
    Range { start, end }: Range<u64>,
    how: AccessKind,
) -> Option<(u64, Conflict)> {
    if start < end && end <= SHARED_WINDOW {
        watcher.note(start, end - start, how)
    } else {
        None
    }
}

/// Records an instruction that may order the launch with others.
pub(crate) fn run_exchange(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(watcher) = unit.watcher.as_deref_mut() {
        watcher.exchange();
    }
    unit.launch.order_accesses();
    Control::Next
}
