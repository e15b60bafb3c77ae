//! Races of a block's threads for its shared memory.
//!
//! Two warps race if both access a byte, at least one of them writes it, and no barrier of the block lies between. Two threads of one warp
//! race if they do so by different instructions, and the warp executes nothing in between that its threads do together: a barrier of the
//! warp, a shuffle, a vote. That a warp runs in step orders nothing. What one instruction of a warp writes to one place several times is
//! left out: PTX says that one of them is written. A race is reported whatever the order in which the warps happened to run.
//!
//! Fences, atomics, barrier objects, asynchronous copies, and accesses that are volatile or ordered may order anything: each of them counts
//! as a barrier, so that no program which is right is reported, while a race beside one may stay unseen. What matrix instructions load and
//! store is not looked at.

use super::access::addresses;
use super::handler::versions;
use super::lane::{HALF, Lanes};
use super::launch_race::{self, Suspects};
use super::op::{Control, Handler, Op, Space};
use super::runs::{self, Runs};
use super::shadow::Rival;
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, SHARED_WINDOW};

/// Whether what follows reads or writes.
pub(crate) trait Direction: 'static {
    const WRITE: bool;
}

/// It reads.
pub(crate) struct Reads;
/// It writes.
pub(crate) struct Writes;

impl Direction for Reads {
    const WRITE: bool = false;
}

impl Direction for Writes {
    const WRITE: bool = true;
}

/// A lane that races, and all lanes that do so by writing where others wrote.
struct Found {
    lane: usize,
    rival: Rival,
    suspects: u32,
}

versions! {
    /// Checks the access that follows, of the bytes that it is aligned to.
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

/// Notes what a whole warp accesses in runs.
#[inline(always)]
fn note_runs(unit: &mut Unit<'_>, space: Space, runs: Runs, bytes: u64, write: bool) -> Option<Found> {
    let (first, steps) = ((unit.warp.index * 32) as u16, unit.warp.steps);
    let shadow = unit.block.shadow.as_mut()?;
    let [low, high] = runs.starts.map(|start| offset(space, start));
    // The same in both halves is looked at once.
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
            // Both halves access memory alike.
            return Some(Found { lane: half + usize::from(lane), rival, suspects: unit.active });
        }
    }
    None
}

/// Notes what the lanes access one by one.
#[inline(never)]
fn note_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64, write: bool) -> Option<Found> {
    let addresses = addresses(unit, op);
    let (first, steps, active) = (unit.warp.index * 32, unit.warp.steps, unit.active);
    let shadow = unit.block.shadow.as_mut()?;
    let mut found: Option<Found> = None;
    for lane in Lanes(active) {
        let address = addresses[lane];
        // A warp often accesses one address, or the same in both halves: to look once is enough.
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

/// Returns how far into the block's own shared memory an address is; more than that is long for others.
#[inline(always)]
fn offset(space: Space, address: u64) -> u64 {
    if space == Space::Generic { address.wrapping_sub(SHARED_WINDOW) } else { address }
}

/// Reports a race, or has the values compared if both threads write.
#[cold]
fn judge(unit: &mut Unit<'_>, op: &Op, found: &Found, write: bool) -> Control {
    let Found { lane, rival, suspects } = *found;
    if write && rival.wrote {
        unit.warp.suspects = Some(Suspects { lanes: suspects, first: lane, thread: rival.thread });
        return Control::Next;
    }
    launch_race::stop(unit, op, lane, (unit.block.index, rival.thread), false, write)
}

/// Returns what may be a barrier.
pub(crate) fn run_order(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(shadow) = &mut unit.block.shadow {
        shadow.advance();
    }
    if unit.launch.cluster != [1; 3] {
        unit.launch.order_accesses();
    }
    Control::Next
}

/// Returns what threads of a warp do together.
pub(crate) fn run_join(unit: &mut Unit<'_>, _op: &Op) -> Control {
    unit.warp.steps.joined = unit.warp.steps.now;
    Control::Next
}

/// Returns the index in its block of the thread of a number.
pub(crate) fn thread_index(number: u32, [columns, rows, _]: [u32; 3]) -> [u16; 3] {
    [number % columns, number / columns % rows, number / columns / rows].map(|index| index as u16)
}
