//! Races of a block's threads for its shared memory.
//!
//! Two warps race if both access a byte, at least one writes it, and no barrier of the block is
//! between the accesses. Two threads of one warp race if they do so without a synchronization of
//! the warp between them: a barrier of the warp, a shuffle, a vote. Lockstep execution orders
//! nothing. Threads that write to one byte with one instruction race if they write different
//! values, because PTX does not define which value remains. Detection does not depend on the order
//! in which the warps ran.
//!
//! Fences, atomics, mbarrier objects, asynchronous copies, and volatile or ordered accesses may
//! order other accesses, so each of them counts as a barrier. Correct programs are therefore never
//! reported, and a race next to such an instruction may be missed. Accesses of matrix instructions
//! are not checked.

use crate::exec::check::shadow::{Accessor, CheckedRead, RacingThread, Reader, Suspects};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::superinstruction::MAX_ADDRESSES;
use crate::exec::machine::unit::Unit;
use crate::exec::memory::access_pattern::AccessPattern;
use crate::exec::memory::window::{BLOCK_STRIDE, SHARED_WINDOW};
use crate::exec::ops::access::{addresses, pattern};
use crate::exec::ops::handler::versions;
use crate::exec::ops::launch_race;
use crate::exec::ops::launch_race::OtherThread;
use crate::exec::space::Space;
use crate::exec::values::lane::{HALF, LANES, Lanes};

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
struct Race {
    lane: usize,
    other: RacingThread,
    suspects: u32,
}

/// Reads of a superinstruction by one address register.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegisterReads<'r> {
    /// The access pattern of the register.
    pub(crate) pattern: AccessPattern,
    /// The number of bytes that each lane reads.
    pub(crate) bytes: u64,
    /// The lowest and the highest offset.
    pub(crate) offset_range: [i32; 2],
    pub(crate) checked: &'r [CheckedRead],
    /// `true` if each offset is a word after the one before.
    pub(crate) are_consecutive: bool,
}

versions! {
    /// Checks the next access, of as many bytes as its alignment.
    check() = run_check [D] where D: Direction
}

#[inline(always)]
fn run_check<D: Direction>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    unit.warp.steps.now += 1;
    unit.warp.steps.line = op.line;
    let race = match pattern::for_full_warp_cached(unit, op) {
        Some(pattern) => record_pattern(unit, op.space, pattern, bytes, D::WRITE),
        None => record_lanes(unit, op, bytes, D::WRITE),
    };
    match race {
        Some(race) => report_or_suspect(unit, op, &race, D::WRITE),
        None => Control::Next,
    }
}

/// Records the accesses of a whole warp with an access pattern.
#[inline(always)]
fn record_pattern(
    unit: &mut Unit<'_>,
    space: Space,
    pattern: AccessPattern,
    bytes: u64,
    write: bool,
) -> Option<Race> {
    let first = (unit.warp.index * 32) as u16;
    let steps = unit.warp.steps;
    let shadow = unit.block.shadow.as_mut()?;
    let [low, high] = pattern.starts.map(|start| offset(space, start));
    let distance = pattern.distance();
    // If both halves access the same range, one check suffices.
    for (half, start) in [(0, low), (HALF, high)]
        .into_iter()
        .take(if low == high { 1 } else { 2 })
    {
        if start >= BLOCK_STRIDE {
            continue;
        }
        let first = Accessor {
            thread: first + half as u16,
            distance,
        };
        let race = if pattern.stride == 0 {
            shadow
                .record(start, bytes, first, write, steps)
                .map(|other| (0, other))
        } else {
            shadow.record_row(start, bytes, first, write, steps)
        };
        if let Some((lane, other)) = race {
            // Both halves access the same memory.
            return Some(Race {
                lane: half + usize::from(lane),
                other,
                suspects: unit.active,
            });
        }
    }
    if write && distance != 0 && low.min(high) < BLOCK_STRIDE {
        unit.warp.suspects = Some(Suspects::common());
    }
    None
}

/// Records the reads of a superinstruction by a whole warp, `count` in all. They are in the block's
/// own shared memory. Returns `false` if one of them may race, or if they overlap. Then the reads
/// must be recorded again one by one, which has no further effect on those before.
#[inline(always)]
pub(crate) fn record_reads(unit: &mut Unit<'_>, count: u32, reads: &[RegisterReads<'_>]) -> bool {
    let first = (unit.warp.index * 32) as u16;
    let steps = unit.warp.steps;
    let Some(shadow) = unit.block.shadow.as_mut() else {
        return true;
    };
    // The first reader of a word is recorded, so the order matters where reads overlap.
    if have_common_words(reads) {
        return false;
    }
    for RegisterReads {
        pattern:
            pattern @ AccessPattern {
                starts: [low, high],
                stride,
            },
        bytes,
        checked,
        are_consecutive,
        ..
    } in reads
    {
        for (half, start) in [(0, *low), (HALF as u16, *high)]
            .into_iter()
            .take(if low == high { 1 } else { 2 })
        {
            let reader = Reader {
                thread: first + half,
                distance: pattern.distance(),
                steps,
            };
            let are_free = if *stride == 0 && *bytes == 4 && *are_consecutive {
                shadow.record_word_reads(start, reader, checked)
            } else if *stride == 0 {
                shadow.record_reads(start, *bytes, reader, checked)
            } else {
                shadow.record_row_reads(start, *bytes, reader, checked)
            };
            if !are_free {
                return false;
            }
        }
    }
    unit.warp.steps.now += count;
    true
}

/// Returns `true` if reads by different address registers or halves of the warp may be of one word.
#[inline(always)]
fn have_common_words(reads: &[RegisterReads<'_>]) -> bool {
    let mut ranges = [(0, 0); 2 * MAX_ADDRESSES];
    let mut count = 0;
    for RegisterReads {
        pattern,
        bytes,
        offset_range: [lowest, highest],
        ..
    } in reads
    {
        let length =
            u64::from(highest.abs_diff(*lowest)) + (HALF as u64 - 1) * pattern.stride + bytes;
        let [low, high] = pattern.at(*lowest).starts;
        for start in [low, high]
            .into_iter()
            .take(if low == high { 1 } else { 2 })
        {
            let range = (start, start + length);
            if ranges[..count]
                .iter()
                .any(|other| range.0 < other.1 && other.0 < range.1)
            {
                return true;
            }
            ranges[count] = range;
            count += 1;
        }
    }
    false
}

/// Records the lanes' accesses one by one.
#[inline(never)]
fn record_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64, write: bool) -> Option<Race> {
    let addresses = addresses(unit, op);
    let first = unit.warp.index * 32;
    let steps = unit.warp.steps;
    let active = unit.active;
    let shadow = unit.block.shadow.as_mut()?;
    let mut write_race: Option<Race> = None;
    let mut has_common_write = false;
    for lane in Lanes(active) {
        let offset = offset(op.space, addresses[lane]);
        if offset >= BLOCK_STRIDE {
            continue;
        }
        // The lanes of a warp often access one address, or the same addresses in both halves. One
        // check of each address suffices.
        let has_same_address = |other: usize| {
            other < LANES && active >> other & 1 == 1 && addresses[other] == addresses[lane]
        };
        if has_same_address(lane.wrapping_sub(1)) || has_same_address(lane.wrapping_sub(HALF)) {
            has_common_write |= write;
            continue;
        }
        let distance = if has_same_address(lane + 1) {
            1
        } else if has_same_address(lane + HALF) {
            HALF as i8
        } else {
            0
        };
        let accessor = Accessor {
            thread: (first + lane as u32) as u16,
            distance,
        };
        let Some(other) = shadow.record(offset, bytes, accessor, write, steps) else {
            continue;
        };
        if !(write && other.wrote) {
            return Some(Race {
                lane,
                other,
                suspects: 0,
            });
        }
        write_race
            .get_or_insert(Race {
                lane,
                other,
                suspects: 0,
            })
            .suspects |= 1 << lane;
    }
    if write && (shadow.take_common_write() || has_common_write) {
        unit.warp.suspects = Some(Suspects::common());
    }
    write_race
}

/// Returns the offset in the block's own shared memory, or a number beyond its size for other
/// addresses.
#[inline(always)]
fn offset(space: Space, address: u64) -> u64 {
    if space == Space::Generic {
        address.wrapping_sub(SHARED_WINDOW)
    } else {
        address
    }
}

/// Reports a race, or starts the comparison of the values if both threads write.
#[cold]
fn report_or_suspect(unit: &mut Unit<'_>, op: &Op, race: &Race, write: bool) -> Control {
    let Race {
        lane,
        other,
        suspects,
    } = *race;
    let lane = lane.wrapping_add_signed(other.distance.into());
    if write && other.wrote {
        let is_common = unit
            .warp
            .suspects
            .is_some_and(|suspects| suspects.is_common);
        unit.warp.suspects = Some(Suspects {
            lanes: suspects,
            first: lane,
            thread: other.thread,
            line: other.line,
            is_common,
        });
        return Control::Next;
    }
    let other = OtherThread {
        block: unit.block.index,
        thread: other.thread,
        line: other.line,
        wrote: other.wrote,
        same_value: false,
    };
    launch_race::report(unit, op, lane, other, write)
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
    [
        number % columns,
        number / columns % rows,
        number / columns / rows,
    ]
    .map(|index| index as u16)
}
