//! Races of a block's threads for its shared memory.
//!
//! Two warps race if both access a byte, at least one writes it, and no barrier of the block is between the accesses. Two threads of one
//! warp race if they do so by different instructions without a synchronization of the warp between them: a barrier of the warp, a shuffle,
//! a vote. Lockstep execution orders nothing. Several writes of one instruction to one address are no race: PTX defines that one of them
//! takes effect. Detection does not depend on the order in which the warps ran.
//!
//! Fences, atomics, mbarrier objects, asynchronous copies, and volatile or ordered accesses may order other accesses, so each of them
//! counts as a barrier. Correct programs are therefore never reported, and a race next to such an instruction may be missed. Accesses of
//! matrix instructions are not checked.

use super::access::addresses;
use super::handler::versions;
use super::lane::{HALF, Lanes};
use super::launch_race::{self, Suspects};
use super::op::{Control, Handler, Op, Space};
use super::runs::{self, Runs};
use super::shadow::{Reader, Rival};
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, SHARED_WINDOW};

/// The direction of the next access.
pub(crate) trait Direction: 'static {
    const WRITE: bool;
}

/// A read.
pub(crate) struct Reads;
/// A write.
pub(crate) struct Writes;

impl Direction for Reads {
    const WRITE: bool = false;
}

impl Direction for Writes {
    const WRITE: bool = true;
}

/// A lane that races, and all lanes that race with an earlier write by writing.
struct Found {
    lane: usize,
    rival: Rival,
    suspects: u32,
}

versions! {
    /// Checks the next access, of as many bytes as its alignment.
    check() = run_check [D] where D: Direction
}

#[inline(always)]
fn run_check<D: Direction>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    unit.warp.steps.now += 1;
    let found = match runs::of_warp(unit, op) {
        Some(runs) => note_runs(unit, op.space, runs, bytes, D::WRITE),
        None => note_lanes(unit, op, bytes, D::WRITE),
    };
    found.map_or(Control::Next, |found| judge(unit, op, &found, D::WRITE))
}

/// Records the accesses of a whole warp in runs.
#[inline(always)]
fn note_runs(unit: &mut Unit<'_>, space: Space, runs: Runs, bytes: u64, write: bool) -> Option<Found> {
    let (first, steps) = ((unit.warp.index * 32) as u16, unit.warp.steps);
    let shadow = unit.block.shadow.as_mut()?;
    let [low, high] = runs.starts.map(|start| offset(space, start));
    // If both halves access the same range, one check suffices.
    for (half, start) in [(0, low), (HALF, high)].into_iter().take(if low == high { 1 } else { 2 }) {
        if start >= BLOCK_STRIDE {
            continue;
        }
        let first = first + half as u16;
        let found = if runs.step == 0 {
            shadow.note(start, bytes, first, write, steps).map(|rival| (0, rival))
        } else {
            shadow.note_row(start, bytes, first, write, steps)
        };
        if let Some((lane, rival)) = found {
            // Both halves access the same memory.
            return Some(Found { lane: half + usize::from(lane), rival, suspects: unit.active });
        }
    }
    None
}

/// Records reads by a whole warp in runs of the block's own shared memory, each with the number of bytes of a lane. Returns `false` if one
/// of them may race. Then the reads must be recorded again one by one, which has no further effect on those before it.
#[inline(always)]
pub(crate) fn note_reads(unit: &mut Unit<'_>, reads: impl Iterator<Item = (Runs, u64)>) -> bool {
    let (first, mut steps) = ((unit.warp.index * 32) as u16, unit.warp.steps);
    let Some(shadow) = unit.block.shadow.as_mut() else { return true };
    for (Runs { starts: [low, high], step }, bytes) in reads {
        steps.now += 1;
        for (half, start) in [(0, low), (HALF as u16, high)].into_iter().take(if low == high { 1 } else { 2 }) {
            let reader = Reader { thread: first + half, steps };
            let is_free = if step == 0 {
                shadow.note_read(start, bytes, reader)
            } else {
                shadow.note_read_of_row(start, bytes, reader)
            };
            if !is_free {
                return false;
            }
        }
    }
    unit.warp.steps = steps;
    true
}

/// Records the lanes' accesses one by one.
#[inline(never)]
fn note_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64, write: bool) -> Option<Found> {
    let addresses = addresses(unit, op);
    let (first, steps, active) = (unit.warp.index * 32, unit.warp.steps, unit.active);
    let shadow = unit.block.shadow.as_mut()?;
    let mut found: Option<Found> = None;
    for lane in Lanes(active) {
        let address = addresses[lane];
        // The lanes of a warp often access one address, or the same addresses in both halves. One check of each address suffices.
        let seen = |distance: usize| {
            let is_active = lane >= distance && active >> (lane - distance) & 1 == 1;
            is_active && addresses[lane - distance] == address
        };
        let offset = offset(op.space, address);
        if seen(1) || seen(HALF) || offset >= BLOCK_STRIDE {
            continue;
        }
        let Some(rival) = shadow.note(offset, bytes, (first + lane as u32) as u16, write, steps) else { continue };
        if !(write && rival.wrote) {
            return Some(Found { lane, rival, suspects: 0 });
        }
        found.get_or_insert(Found { lane, rival, suspects: 0 }).suspects |= 1 << lane;
    }
    found
}

/// Returns the offset in the block's own shared memory, or a number beyond its size for other addresses.
#[inline(always)]
fn offset(space: Space, address: u64) -> u64 {
    if space == Space::Generic { address.wrapping_sub(SHARED_WINDOW) } else { address }
}

/// Reports a race, or starts the comparison of the values if both threads write.
#[cold]
fn judge(unit: &mut Unit<'_>, op: &Op, found: &Found, write: bool) -> Control {
    let Found { lane, rival, suspects } = *found;
    if write && rival.wrote {
        unit.warp.suspects = Some(Suspects { lanes: suspects, first: lane, thread: rival.thread });
        return Control::Next;
    }
    launch_race::stop(unit, op, lane, (unit.block.index, rival.thread), false, write)
}

/// Records an instruction that may be a barrier.
pub(crate) fn run_order(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(shadow) = &mut unit.block.shadow {
        shadow.advance();
    }
    if unit.launch.cluster != [1; 3] {
        unit.launch.order_accesses();
    }
    Control::Next
}

/// Records an instruction that synchronizes the threads of a warp.
pub(crate) fn run_join(unit: &mut Unit<'_>, _op: &Op) -> Control {
    unit.warp.steps.joined = unit.warp.steps.now;
    Control::Next
}

/// Returns the thread index of a linear thread number.
pub(crate) fn thread_index(number: u32, [columns, rows, _]: [u32; 3]) -> [u16; 3] {
    [number % columns, number / columns % rows, number / columns / rows].map(|index| index as u16)
}
