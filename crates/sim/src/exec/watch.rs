//! Accesses to device memory, for whoever looks for races between launches.
//!
//! Fences, barriers of a cluster and accesses that are volatile or ordered may tell others of what was done before, or learn it: the
//! watcher is told of them, and what is volatile or ordered itself is not looked at. What matrix instructions, asynchronous copies,
//! textures and surfaces access is not looked at either.

use std::fmt;
use std::ops::Range;

use super::access::addresses;
use super::lane::{LANES, Lanes};
use super::op::{Control, Op};
use super::report::{Access, Conflict, ReportKind, Trap};
use super::runs;
use super::unit::Unit;
use super::window::SHARED_WINDOW;

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Use {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is changed by an atomic operation, which does not race with another one.
    Atomic,
}

/// Hears of the accesses of one worker of a launch.
pub(crate) trait Watcher: fmt::Debug {
    /// Notes an access. The first byte of it that races with another launch or copy, and with which.
    fn note(&mut self, address: u64, bytes: u64, how: Use) -> Option<(u64, Conflict)>;
    /// Notes that the launch may tell others of what it did so far, or learn what they did.
    fn exchange(&mut self);
}

const READ: u8 = Use::Read as u8;
const WRITE: u8 = Use::Write as u8;

/// Notes the access that follows, of the bytes that it is aligned to.
pub(crate) fn run_note<const HOW: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let how = match HOW {
        READ => Use::Read,
        WRITE => Use::Write,
        _ => Use::Atomic,
    };
    let bytes = u64::from(op.align_mask) + 1;
    let found = match runs::of_warp(unit, op) {
        Some(runs) => note_ranges(unit, runs.ranges(bytes), how),
        None => note_lanes(unit, &addresses(unit, op), bytes, how),
    };
    found.map_or(Control::Next, |found| report(unit, op, found, how))
}

#[inline(always)]
fn note_ranges(unit: &mut Unit<'_>, [low, high]: [Range<u64>; 2], how: Use) -> Option<(u64, Conflict)> {
    let watcher = unit.watcher.as_deref_mut()?;
    note(watcher, low, how).or_else(|| note(watcher, high, how))
}

/// Notes what the lanes access one by one.
#[inline(never)]
fn note_lanes(unit: &mut Unit<'_>, addresses: &[u64; LANES], bytes: u64, how: Use) -> Option<(u64, Conflict)> {
    let watcher = unit.watcher.as_deref_mut()?;
    let mut found = None;
    // Neighbors often access one address, or the next: they are noted together.
    let (mut begin, mut end) = (0, 0);
    for lane in Lanes(unit.active) {
        let address = addresses[lane];
        if address == end {
            end = end.saturating_add(bytes);
        } else if address.wrapping_add(bytes) != end || address < begin {
            found = found.or_else(|| note(watcher, begin..end, how));
            (begin, end) = (address, address.saturating_add(bytes));
        }
    }
    found.or_else(|| note(watcher, begin..end, how))
}

#[cold]
fn report(unit: &mut Unit<'_>, op: &Op, (address, conflict): (u64, Conflict), how: Use) -> Control {
    let (addresses, bytes) = (addresses(unit, op), u64::from(op.align_mask) + 1);
    let is_at_fault = |lane: &usize| address.wrapping_sub(addresses[*lane]) < bytes;
    let lane = Lanes(unit.active).find(is_at_fault).unwrap_or(unit.leader());
    let access = Some(Access { address: addresses[lane], size: bytes as u32, write: how != Use::Read });
    unit.fault(Trap { access, conflict: Some(conflict), ..Trap::new(ReportKind::StreamRace, lane) })
}

/// Notes a range, unless it is empty or not of device memory.
#[inline]
fn note(watcher: &mut dyn Watcher, Range { start, end }: Range<u64>, how: Use) -> Option<(u64, Conflict)> {
    if start < end && end <= SHARED_WINDOW { watcher.note(start, end - start, how) } else { None }
}

/// Returns what may tell others of what was done before, or learn of it.
pub(crate) fn run_exchange(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(watcher) = unit.watcher.as_deref_mut() {
        watcher.exchange();
    }
    unit.launch.order_accesses();
    Control::Next
}
