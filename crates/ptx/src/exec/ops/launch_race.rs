//! Races of a launch's threads for device memory, and the comparison of stored values.
//!
//! Two threads race if both access a byte, at least one of them stores, and the accesses are
//! unordered. Barriers order the threads of their block, and synchronizations of a warp those of
//! the warp. Threads that store the same value with one instruction do not race. Fences, volatile
//! and ordered accesses, and the synchronization of clusters may order all accesses of the launch,
//! so accesses before and after them are not compared. Atomics and the accesses of matrix
//! instructions, asynchronous copies, textures and surfaces are not recorded.

use crate::exec::check::launch_shadow::{Accessor, LINE, ThreadAccess};
use crate::exec::check::report::{Access, ReportKind, Resume, Trap};
use crate::exec::check::shadow::{Shadow, Suspects};
use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::Word;
use crate::exec::memory::access_pattern::AccessPattern;
use crate::exec::memory::window::{BLOCK_STRIDE, SHARED_WINDOW, resolve};
use crate::exec::ops::access::{addresses, pattern};
use crate::exec::ops::race::thread_index;
use crate::exec::space::Space;
use crate::exec::values::lane::{HALF, LANES, Lanes, lanes_where};

/// The maximum number of bytes that one thread stores with one check.
const MAX_BYTES: usize = 32;
/// The maximum number of elements that one thread stores with one check.
pub(crate) const MAX_ELEMENTS: usize = 4;

/// The bytes that each lane stores.
type Stored = [[u8; MAX_BYTES]; LANES];

/// The thread that an access races with, for a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherThread {
    /// The index of its block in the grid.
    pub(crate) block: [u32; 3],
    /// Its number in the block.
    pub(crate) thread: u16,
    /// The PTX line of its access.
    pub(crate) line: u32,
    /// `true` if it wrote.
    pub(crate) wrote: bool,
    /// `true` if both threads store the same value.
    pub(crate) same_value: bool,
}

/// Records the next load.
pub(crate) fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    unit.warp.steps.now += 1;
    unit.warp.steps.line = op.line;
    if record_lines(unit, op, None) {
        Control::Next
    } else {
        record(unit, op, None)
    }
}

/// Records the next store, of elements in rows `d`, `b`, `c` and `e`, and compares the values of
/// threads that race for shared memory.
pub(crate) fn run_store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    match unit.warp.suspects.take() {
        Some(suspects) => return compare(unit, op, suspects, &stored::<T, S>(unit, op)),
        None if op.space == Space::Shared => return Control::Next,
        None => {}
    }
    unit.warp.steps.now += 1;
    unit.warp.steps.line = op.line;
    if T::SIZE == 4 {
        let values = unit.frame.row::<S>(op.d).map(|value| value.extend() as u32);
        if record_lines(unit, op, Some(&values)) {
            return Control::Next;
        }
    }
    record(unit, op, Some(&stored::<T, S>(unit, op)))
}

fn stored<T: Word, S: InFile>(unit: &Unit<'_>, op: &Op) -> Stored {
    let mut stored = [[0; MAX_BYTES]; LANES];
    let elements = bytes(op) / T::SIZE;
    for (row, begin) in [op.d, op.b, op.c, op.e]
        .into_iter()
        .zip((0..).step_by(T::SIZE as usize))
        .take(elements as usize)
    {
        let row = unit.frame.row::<S>(row);
        for (stored, value) in stored.iter_mut().zip(row.iter()) {
            let value = T::truncate(value.extend()).extend().to_le_bytes();
            stored[begin..][..T::SIZE as usize].copy_from_slice(&value[..T::SIZE as usize]);
        }
    }
    stored
}

/// Returns the number of bytes of each lane's access.
fn bytes(op: &Op) -> u64 {
    u64::from(op.align_mask) + 1
}

/// Records the accesses of a whole warp if each half accesses a line of device memory. Returns
/// `false` if they must be recorded one by one. Accesses that are recorded already may be recorded
/// again.
fn record_lines(unit: &mut Unit<'_>, op: &Op, stored: Option<&[u32; LANES]>) -> bool {
    let launch = unit.launch;
    let Some(accesses) = &launch.accesses else {
        return true;
    };
    let Some(AccessPattern { starts, stride: 4 }) = pattern::for_full_warp(unit, op) else {
        return false;
    };
    let are_lines = starts
        .into_iter()
        .all(|start| start.is_multiple_of(LINE) && start <= SHARED_WINDOW - LINE);
    if bytes(op) != 4 || !are_lines {
        return false;
    }
    let first = accessor(unit);
    let halves = stored.map(|stored| stored.as_chunks::<HALF>().0);
    (0..).zip(starts).all(|(half, start)| {
        let first = Accessor {
            thread: first.thread + half * HALF as u16,
            ..first
        };
        let stored = halves.map(|halves| &halves[usize::from(half)]);
        accesses.record_line(&mut unit.cache.pages, start, first, stored)
    })
}

/// Returns the first thread of a warp.
fn accessor(unit: &Unit<'_>) -> Accessor {
    Accessor {
        block: unit.block.number as u32,
        phase: unit.block.shadow.as_ref().map_or(0, Shadow::epoch),
        thread: (unit.warp.index * 32) as u16,
        steps: unit.warp.steps,
        distance: 0,
    }
}

#[inline(never)]
fn record(unit: &mut Unit<'_>, op: &Op, stored: Option<&Stored>) -> Control {
    let launch = unit.launch;
    let Some(accesses) = &launch.accesses else {
        return Control::Next;
    };
    let addresses = addresses(unit, op);
    let bytes = bytes(op);
    let first = accessor(unit);
    // A word records only its last writer, which need not be the one that wrote the same byte.
    if let Some(stored) = stored
        && bytes < 4
        && pattern::for_full_warp(unit, op).is_none_or(|pattern| pattern.distance() != 0)
        && let Some((lane, other)) = different_lanes(unit, op, &addresses, stored)
    {
        let other = OtherThread {
            block: unit.block.index,
            thread: first.thread + other as u16,
            line: op.line,
            wrote: true,
            same_value: false,
        };
        return report(unit, op, lane, other, true);
    }
    let mut thread_accesses = [const { None }; LANES];
    let mut lanes = [0; LANES];
    let mut count = 0;
    let mut last = None;
    for lane in Lanes(unit.active) {
        let address = addresses[lane];
        let is_device_memory = address
            .checked_add(bytes)
            .is_some_and(|end| end <= SHARED_WINDOW);
        let is_repeated = stored.is_none() && last == Some(address);
        if is_repeated && let Some(access) = &mut thread_accesses[count - 1] {
            let access: &mut ThreadAccess<'_> = access;
            access.accessor.distance = (lane - lanes[count - 1]) as i8;
        }
        if is_device_memory && !is_repeated {
            let accessor = Accessor {
                thread: first.thread + lane as u16,
                ..first
            };
            thread_accesses[count] = Some(ThreadAccess {
                accessor,
                address,
                bytes,
                stored: stored.map(|stored| &stored[lane][..bytes as usize]),
            });
            lanes[count] = lane;
            count += 1;
            last = Some(address);
        }
    }
    let race = accesses.record(
        &mut unit.cache.pages,
        thread_accesses[..count].iter().flatten(),
    );
    let Some((position, other)) = race else {
        return Control::Next;
    };
    let lane = lanes[position].wrapping_add_signed(other.distance.into());
    let [columns, rows, _] = unit.launch.grid;
    let other = OtherThread {
        block: [
            other.block % columns,
            other.block / columns % rows,
            other.block / columns / rows,
        ],
        thread: other.thread,
        line: other.line,
        wrote: other.wrote,
        same_value: other.same_value,
    };
    report(unit, op, lane, other, stored.is_some())
}

/// Returns two lanes that store different values to the same bytes.
fn different_lanes(
    unit: &Unit<'_>,
    op: &Op,
    addresses: &[u64; LANES],
    stored: &Stored,
) -> Option<(usize, usize)> {
    let bytes = bytes(op) as usize;
    // Equal addresses of local memory are different bytes.
    let lanes = if op.space == Space::Generic {
        lanes_where(|lane| resolve(addresses[lane]).0 != Space::Local) & unit.active
    } else {
        unit.active
    };
    for lane in Lanes(lanes) {
        for other in Lanes(lanes & ((1 << lane) - 1)) {
            let distance = addresses[lane].abs_diff(addresses[other]) as usize;
            if distance >= bytes {
                continue;
            }
            let (low, high) = if addresses[lane] < addresses[other] {
                (lane, other)
            } else {
                (other, lane)
            };
            if stored[low][distance..bytes] != stored[high][..bytes - distance] {
                return Some((lane, other));
            }
        }
    }
    None
}

/// Reports a race of stores to shared memory, with equal or different values.
#[cold]
fn compare(unit: &mut Unit<'_>, op: &Op, suspects: Suspects, stored: &Stored) -> Control {
    let addresses = addresses(unit, op);
    if suspects.is_common
        && let Some((lane, other)) = different_lanes(unit, op, &addresses, stored)
    {
        let other = OtherThread {
            block: unit.block.index,
            thread: (unit.warp.index * 32) as u16 + other as u16,
            line: op.line,
            wrote: true,
            same_value: false,
        };
        return report(unit, op, lane, other, true);
    }
    if suspects.lanes == 0 {
        return Control::Next;
    }
    let same_value = Lanes(suspects.lanes & unit.active).all(|lane| {
        let offset = if addresses[lane] < BLOCK_STRIDE {
            addresses[lane]
        } else {
            addresses[lane].wrapping_sub(SHARED_WINDOW)
        };
        let memory = unit.block.shared.host_bytes(offset, bytes(op));
        memory.is_some_and(|memory| {
            (0..bytes(op) as usize).all(|index| memory.load::<u8>(index) == stored[lane][index])
        })
    });
    let other = OtherThread {
        block: unit.block.index,
        thread: suspects.thread,
        line: suspects.line,
        wrote: true,
        same_value,
    };
    report(unit, op, suspects.first, other, true)
}

/// Reports a race with another thread. Threads that store the same value continue.
#[cold]
pub(crate) fn report(
    unit: &mut Unit<'_>,
    op: &Op,
    lane: usize,
    other: OtherThread,
    write: bool,
) -> Control {
    let thread = thread_index(u32::from(other.thread), unit.launch.block);
    let access = Some(Access {
        address: addresses(unit, op)[lane],
        size: bytes(op) as u32,
        write,
    });
    let resume = if other.same_value {
        Resume::After
    } else {
        Resume::End
    };
    let kind = ReportKind::Race {
        block: other.block,
        thread,
        wrote: other.wrote,
        same_value: other.same_value,
    };
    unit.fault(Trap {
        access,
        resume,
        other_line: other.line,
        ..Trap::new(kind, lane).in_space(op.space)
    })
}
