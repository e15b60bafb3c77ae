//! Races of a launch's threads for device memory, and the comparison of stored values.
//!
//! Two threads race if both access a byte, at least one of them stores, and the accesses are unordered. Barriers order the threads of their
//! block, and synchronizations of a warp those of the warp. Threads that store the same value with one instruction do not race. Fences, volatile and ordered accesses, and the synchronization of clusters may order all accesses of the
//! launch, so accesses before and after them are not compared. Atomics and the accesses of matrix instructions, asynchronous copies,
//! textures and surfaces are not recorded.

use super::access::addresses;
use super::frame::InFile;
use super::lane::{HALF, LANES, Lanes, lanes_where};
use super::launch_shadow::{LINE, Rival, Visit, Visitor};
use super::memory::Word;
use super::op::{Control, Op, Space};
use super::race::thread_index;
use super::report::{Access, ReportKind, Resume, Trap};
use super::runs::{self, Runs};
use super::shadow::Shadow;
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, SHARED_WINDOW, resolve};

/// The maximum number of bytes that one thread stores with one check.
const MOST_BYTES: usize = 32;
/// The maximum number of elements that one thread stores with one check.
pub(crate) const MOST_ELEMENTS: usize = 4;

/// The bytes that each lane stores.
type Stored = [[u8; MOST_BYTES]; LANES];

/// Lanes whose stores to shared memory race with an earlier store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspects {
    pub(crate) lanes: u32,
    /// The first lane, and the thread that it races with.
    pub(crate) first: usize,
    pub(crate) thread: u16,
    /// `true` if lanes store to the same bytes.
    pub(crate) is_common: bool,
}

impl Suspects {
    /// Creates the suspects of a store in which lanes store to the same bytes, and none races with an earlier access.
    pub(crate) fn common() -> Self {
        Self {
            lanes: 0,
            first: 0,
            thread: 0,
            is_common: true,
        }
    }
}

/// Records the next load.
pub(crate) fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    unit.warp.steps.now += 1;
    if record_lines(unit, op, None) {
        Control::Next
    } else {
        record(unit, op, None)
    }
}

/// Records the next store, of elements in rows `d`, `b`, `c` and `e`, and compares the values of threads that race for shared memory.
pub(crate) fn run_store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    match unit.warp.suspects.take() {
        Some(suspects) => return compare(unit, op, suspects, &stored::<T, S>(unit, op)),
        None if op.space == Space::Shared => return Control::Next,
        None => {}
    }
    unit.warp.steps.now += 1;
    if T::SIZE == 4 {
        let values = unit.frame.row::<S>(op.d).map(|value| value.extend() as u32);
        if record_lines(unit, op, Some(&values)) {
            return Control::Next;
        }
    }
    record(unit, op, Some(&stored::<T, S>(unit, op)))
}

fn stored<T: Word, S: InFile>(unit: &Unit<'_>, op: &Op) -> Stored {
    let mut stored = [[0; MOST_BYTES]; LANES];
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

/// Records the accesses of a whole warp if each half accesses a line of device memory. Returns `false` if they must be recorded one by one.
/// Accesses that are recorded already may be recorded again.
fn record_lines(unit: &mut Unit<'_>, op: &Op, stored: Option<&[u32; LANES]>) -> bool {
    let launch = unit.launch;
    let Some(accesses) = &launch.accesses else {
        return true;
    };
    let Some(Runs { starts, step: 4 }) = runs::of_warp(unit, op) else {
        return false;
    };
    let is_line = |start: u64| start.is_multiple_of(LINE) && start <= SHARED_WINDOW - LINE;
    if bytes(op) != 4 || !starts.into_iter().all(is_line) {
        return false;
    }
    let by = visitor(unit);
    let halves = stored.map(|stored| stored.as_chunks::<HALF>().0);
    (0..).zip(starts).all(|(half, start)| {
        let by = Visitor {
            thread: by.thread + half * HALF as u16,
            ..by
        };
        let stored = halves.map(|halves| &halves[usize::from(half)]);
        accesses.record_line(&mut unit.cache.pages, start, by, stored)
    })
}

/// Returns the first thread of a warp.
fn visitor(unit: &Unit<'_>) -> Visitor {
    Visitor {
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
    let (addresses, bytes) = (addresses(unit, op), bytes(op));
    let by = visitor(unit);
    // A word records only its last writer, which need not be the one that wrote the same byte.
    if let Some(stored) = stored
        && bytes < 4
        && runs::of_warp(unit, op).is_none_or(|runs| runs.distance() != 0)
        && let Some((lane, other)) = different_lanes(unit, op, &addresses, stored)
    {
        let thread = by.thread + other as u16;
        return stop(unit, op, lane, (unit.block.index, thread), false, true);
    }
    let (mut visits, mut lanes, mut count) = ([const { None }; LANES], [0; LANES], 0);
    let mut last = None;
    for lane in Lanes(unit.active) {
        let address = addresses[lane];
        let is_device_memory = address
            .checked_add(bytes)
            .is_some_and(|end| end <= SHARED_WINDOW);
        let is_seen = stored.is_none() && last == Some(address);
        if is_seen && let Some(visit) = &mut visits[count - 1] {
            let visit: &mut Visit<'_> = visit;
            visit.by.distance = (lane - lanes[count - 1]) as i8;
        }
        if is_device_memory && !is_seen {
            let by = Visitor {
                thread: by.thread + lane as u16,
                ..by
            };
            let stored = stored.map(|stored| &stored[lane][..bytes as usize]);
            visits[count] = Some(Visit {
                by,
                address,
                bytes,
                stored,
            });
            (lanes[count], count, last) = (lane, count + 1, Some(address));
        }
    }
    let found = accesses.record(&mut unit.cache.pages, visits[..count].iter().flatten());
    found.map_or(Control::Next, |(position, rival)| {
        let lane = lanes[position].wrapping_add_signed(rival.distance.into());
        report(unit, op, lane, rival, stored.is_some())
    })
}

#[cold]
fn report(unit: &mut Unit<'_>, op: &Op, lane: usize, rival: Rival, write: bool) -> Control {
    let [columns, rows, _] = unit.launch.grid;
    let block = [
        rival.block % columns,
        rival.block / columns % rows,
        rival.block / columns / rows,
    ];
    let other = (block, rival.thread);
    stop(unit, op, lane, other, rival.same_value, write)
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
    let is_common = |lane: usize| resolve(addresses[lane]).0 != Space::Local;
    let lanes = if op.space == Space::Generic {
        lanes_where(is_common) & unit.active
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
        let thread = (unit.warp.index * 32) as u16 + other as u16;
        return stop(unit, op, lane, (unit.block.index, thread), false, true);
    }
    if suspects.lanes == 0 {
        return Control::Next;
    }
    let is_same = |lane: usize| {
        let offset = if addresses[lane] < BLOCK_STRIDE {
            addresses[lane]
        } else {
            addresses[lane].wrapping_sub(SHARED_WINDOW)
        };
        let place = unit.block.shared.place(offset, bytes(op));
        place.is_some_and(|place| {
            (0..bytes(op) as usize).all(|index| place.load::<u8>(index) == stored[lane][index])
        })
    };
    let same_value = Lanes(suspects.lanes & unit.active).all(is_same);
    stop(
        unit,
        op,
        suspects.first,
        (unit.block.index, suspects.thread),
        same_value,
        true,
    )
}

/// Reports a race with another thread. Threads that store the same value continue.
#[cold]
pub(crate) fn stop(
    unit: &mut Unit<'_>,
    op: &Op,
    lane: usize,
    (block, thread): ([u32; 3], u16),
    same_value: bool,
    write: bool,
) -> Control {
    let thread = thread_index(u32::from(thread), unit.launch.block);
    let access = Some(Access {
        address: addresses(unit, op)[lane],
        size: bytes(op) as u32,
        write,
    });
    let resume = if same_value {
        Resume::After
    } else {
        Resume::End
    };
    let kind = ReportKind::Race {
        block,
        thread,
        same_value,
    };
    unit.fault(Trap {
        access,
        resume,
        ..Trap::new(kind, lane).in_space(op.space)
    })
}
