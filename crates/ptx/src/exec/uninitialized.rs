//! Checks for reads of uninitialized memory.
//!
//! The state of each byte of device, shared and local memory is recorded if only kernels and the driver's copies access it. Loads, atomics
//! that read, matrix instructions and asynchronous copies are checked before they read. Stores are recorded before they write, so no thread
//! observes a store before its record. Memory that others may write counts as written.

use std::ops::Range;
use std::sync::Arc;

use super::access::{addresses, trap};
use super::lane::{FULL, LANES, Lanes, Row};
use super::local;
use super::memory::Memory;
use super::op::{Control, Op, Space};
use super::report::{ReportKind, Resume, Trap};
use super::runs;
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, resolve};
use super::written::Written;

/// The maximum distance between a warp's lowest and highest address for a single check.
const SPAN: u64 = 8192;

/// The allocations that a worker has looked up most recently.
#[derive(Debug, Default)]
pub(crate) struct WrittenCache {
    entries: [Known; 4],
    next: usize,
}

/// The memory at an address.
struct MemoryAt<'u> {
    offset: u64,
    size: u64,
    written: Option<&'u Written>,
}

/// An allocation, and the record of its written bytes if there is one.
#[derive(Clone, Debug, Default)]
struct Known {
    base: u64,
    size: u64,
    written: Option<Arc<Written>>,
}

impl WrittenCache {
    /// Returns the allocation that contains an address, if any.
    fn known(&mut self, memory: &dyn Memory, address: u64) -> Option<&Known> {
        let holds = |entry: &Known| address.wrapping_sub(entry.base) < entry.size;
        let index = match self.entries.iter().position(holds) {
            Some(index) => index,
            None => self.fetch(memory, address)?,
        };
        Some(&self.entries[index])
    }

    #[cold]
    fn fetch(&mut self, memory: &dyn Memory, address: u64) -> Option<usize> {
        let segment = memory.segment(address)?;
        let (index, written) = (self.next, memory.written(address));
        self.entries[index] = Known {
            base: segment.base,
            size: segment.size,
            written,
        };
        self.next = (index + 1) % self.entries.len();
        Some(index)
    }
}

/// Reports an uninitialized read by the next load, of as many bytes as its alignment.
pub(crate) fn run_check(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if let Some(offset) = local::offset(unit, op) {
        let lacking = unit.warp.written.lacking(offset, bytes, unit.active);
        return if lacking == 0 {
            Control::Next
        } else {
            stop(unit, op, lacking.trailing_zeros() as usize, offset)
        };
    }
    if is_whole(unit, op.space) || are_runs_written(unit, op, bytes) {
        return Control::Next;
    }
    check_lanes(unit, op, bytes)
}

/// Finds the uninitialized bytes of the next load, and passes them to it. For a load in several parts, `b` is the start of the part, and
/// `c` is 1 in the first.
pub(crate) fn run_find(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if op.c == 1 {
        unit.warp.found = None;
    }
    if let Some(offset) = local::offset(unit, op) {
        if unit.warp.written.lacking(offset, bytes, unit.active) != 0 {
            note_found(unit, op, &[offset; LANES]);
        }
        return Control::Next;
    }
    if !is_whole(unit, op.space) && !are_runs_written(unit, op, bytes) {
        find_in_lanes(unit, op, bytes);
    }
    Control::Next
}

/// Checks a load lane by lane.
#[inline(never)]
fn find_in_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64) {
    let addresses = active_addresses(unit, op);
    if !is_covered(unit, op.space, &addresses, bytes) {
        note_found(unit, op, &addresses);
    }
}

/// Records the uninitialized bytes at the lanes' addresses.
#[cold]
fn note_found(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES]) {
    let space = if op.space == Space::Frame {
        Space::Local
    } else {
        op.space
    };
    let bytes = u64::from(op.align_mask) + 1;
    for lane in Lanes(unit.active) {
        if is_written(unit, space, lane, addresses[lane], bytes) != Some(false) {
            continue;
        }
        for byte in 0..bytes {
            if is_written(unit, space, lane, addresses[lane].wrapping_add(byte), 1) == Some(false) {
                let found = unit.warp.found.get_or_insert_default();
                found.bytes[lane] |= 1 << (u64::from(op.b) + byte);
                found.addresses[lane] = addresses[lane].wrapping_sub(u64::from(op.b));
            }
        }
    }
    if unit.warp.found.is_some() {
        unit.frame.undefined.get_or_insert_default();
    }
}

/// Returns the lanes' addresses of a store, from those of its first element.
pub(crate) fn store_addresses(unit: &Unit<'_>, op: &Op) -> [u64; LANES] {
    match local::offset(unit, op) {
        Some(offset) => [offset; LANES],
        None => addresses(unit, op),
    }
}

/// Returns `true` if an address is in device memory.
pub(crate) fn is_global(space: Space, address: u64) -> bool {
    place(space, address).0 == Space::Global
}

/// Marks bytes as uninitialized.
pub(crate) fn remove(unit: &mut Unit<'_>, space: Space, lane: usize, address: u64, bytes: u64) {
    let (space, offset) = place(space, address);
    if matches!(space, Space::Local | Space::Frame) {
        unit.warp.written.remove(offset, bytes, 1 << lane);
    } else if let Some(MemoryAt {
        offset,
        written: Some(written),
        ..
    }) = memory_at(unit, space, offset)
    {
        written.remove(offset, bytes);
    }
}

/// Checks a load lane by lane.
#[inline(never)]
fn check_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64) -> Control {
    let addresses = active_addresses(unit, op);
    if is_covered(unit, op.space, &addresses, bytes) {
        return Control::Next;
    }
    let active = Lanes(unit.active);
    match active
        .into_iter()
        .find(|&lane| is_written(unit, op.space, lane, addresses[lane], bytes) == Some(false))
    {
        Some(lane) => stop(unit, op, lane, addresses[lane]),
        None => Control::Next,
    }
}

/// Records the next store, of as many bytes as its alignment.
pub(crate) fn run_note(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if let Some(offset) = local::offset(unit, op) {
        unit.warp.written.add(offset, bytes, unit.active);
        return Control::Next;
    }
    if is_whole(unit, op.space) || are_runs_written(unit, op, bytes) {
        return Control::Next;
    }
    note_lanes(unit, op, bytes);
    Control::Next
}

/// Records a store run by run if the warp writes in runs, and otherwise lane by lane.
#[inline(never)]
fn note_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64) {
    let addresses = active_addresses(unit, op);
    let runs = runs::of_warp(unit, op)
        .filter(|runs| runs.starts.iter().all(|start| !is_local(op.space, *start)));
    if let Some(runs) = runs {
        for Range { start, end } in runs
            .ranges(bytes)
            .into_iter()
            .filter(|range| !range.is_empty())
        {
            add(unit, op.space, 0, start, end - start);
        }
    } else if !is_covered(unit, op.space, &addresses, bytes) {
        Lanes(unit.active).for_each(|lane| add(unit, op.space, lane, addresses[lane], bytes));
    }
}

/// Returns `true` if an access is to the block's own shared memory, and all of that memory is written.
#[inline(always)]
fn is_whole(unit: &Unit<'_>, space: Space) -> bool {
    let is_own = || unit.block.cluster.is_of_one();
    space == Space::Shared && unit.block.shared.written().is_some_and(Written::is_whole) && is_own()
}

/// Returns `true` if a warp accesses runs of written memory, the usual case.
#[inline(always)]
fn are_runs_written(unit: &mut Unit<'_>, op: &Op, bytes: u64) -> bool {
    let Some(runs) = runs::of_warp(unit, op) else {
        return false;
    };
    runs.ranges(bytes)
        .into_iter()
        .filter(|range| !range.is_empty())
        .all(|Range { start, end }| {
            !is_local(op.space, start)
                && is_written(unit, op.space, 0, start, end - start) == Some(true)
        })
}

/// Returns `true` if ranges of the block's own shared memory are written.
#[inline(always)]
pub(crate) fn are_written_in_shared(
    unit: &Unit<'_>,
    mut ranges: impl Iterator<Item = Range<u64>>,
) -> bool {
    unit.block.shared.written().is_none_or(|written| {
        written.is_whole()
            || ranges.all(|range| {
                range.is_empty() || written.covers(range.start, range.end - range.start)
            })
    })
}

/// Checks one lane's read, if the launch checks for uninitialized reads.
#[inline]
pub(crate) fn check(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
) -> Result<(), Trap> {
    if unit.launch.program.checking.uninitialized
        && is_written(unit, space, lane, address, bytes) == Some(false)
    {
        return Err(trap(ReportKind::Uninitialized, lane, address, bytes, false).in_space(space));
    }
    Ok(())
}

/// Records one lane's write, if the launch checks for uninitialized reads.
#[inline]
pub(crate) fn note(unit: &mut Unit<'_>, space: Space, lane: usize, address: u64, bytes: u64) {
    if unit.launch.program.checking.uninitialized {
        add(unit, space, lane, address, bytes);
    }
}

/// Returns the lanes' addresses. Inactive lanes get the address of an active one.
fn active_addresses(unit: &Unit<'_>, op: &Op) -> [u64; LANES] {
    let addresses = addresses(unit, op);
    if unit.active == FULL {
        return addresses;
    }
    let mut filled = Row::splat(addresses[unit.leader()]);
    filled.merge(&addresses, unit.active);
    filled.0
}

/// Returns `true` if everything between the lowest and the highest address is in one allocation and written, the usual case.
fn is_covered(unit: &mut Unit<'_>, space: Space, addresses: &[u64; LANES], bytes: u64) -> bool {
    let (mut low, mut high) = (u64::MAX, 0);
    for &address in addresses {
        (low, high) = (low.min(address), high.max(address));
    }
    let is_near = high - low <= SPAN && !is_local(space, low);
    is_near && is_written(unit, space, 0, low, high - low + bytes) == Some(true)
}

/// Returns `true` if an address is in local memory.
fn is_local(space: Space, address: u64) -> bool {
    place(space, address).0 == Space::Local
}

/// Returns `true` if all of these bytes are or may be written, or `None` if they are not in one allocation.
fn is_written(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
) -> Option<bool> {
    let (space, offset) = place(space, address);
    if space == Space::Local {
        return Some(unit.warp.written.lacking(offset, bytes, 1 << lane) == 0);
    }
    let MemoryAt {
        offset,
        size,
        written,
    } = memory_at(unit, space, offset)?;
    let is_inside = offset <= size && size - offset >= bytes;
    is_inside.then(|| written.is_none_or(|written| written.covers(offset, bytes)))
}

/// Marks bytes as written.
fn add(unit: &mut Unit<'_>, space: Space, lane: usize, address: u64, bytes: u64) {
    let (space, offset) = place(space, address);
    if space == Space::Local {
        unit.warp.written.add(offset, bytes, 1 << lane);
    } else if let Some(MemoryAt {
        offset,
        written: Some(written),
        ..
    }) = memory_at(unit, space, offset)
    {
        written.add(offset, bytes);
    }
}

/// Returns the memory of an address that is not local: the offset in it, its size, and the record of its written bytes.
fn memory_at<'u>(unit: &'u mut Unit<'_>, space: Space, address: u64) -> Option<MemoryAt<'u>> {
    match space {
        Space::Global => {
            let known = unit.cache.written.known(unit.launch.memory, address)?;
            Some(MemoryAt {
                offset: address - known.base,
                size: known.size,
                written: known.written.as_deref(),
            })
        }
        Space::Shared => {
            let shared = unit.block.shared_of(address)?;
            Some(MemoryAt {
                offset: address % BLOCK_STRIDE,
                size: shared.size(),
                written: shared.written(),
            })
        }
        _ => None,
    }
}

/// Returns the space of an address and the offset in it.
fn place(space: Space, address: u64) -> (Space, u64) {
    if space == Space::Generic {
        resolve(address)
    } else {
        (space, address)
    }
}

/// Reports an uninitialized read by the next load. If the launch continues, the load is executed.
#[cold]
fn stop(unit: &mut Unit<'_>, op: &Op, lane: usize, address: u64) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    let trap = trap(ReportKind::Uninitialized, lane, address, bytes, false).in_space(op.space);
    unit.fault(Trap {
        resume: Resume::After,
        ..trap
    })
}
