//! Checks for reads of uninitialized memory.
//!
//! The state of each byte of device, shared and local memory is recorded if only kernels and the
//! driver's copies access it. Loads, atomics that read, matrix instructions and asynchronous copies
//! are checked before they read. Stores are recorded before they write, so no thread observes a
//! store before its record. Memory that others may write counts as written.

use std::ops::Range;

use crate::exec::check::report::{ReportKind, Resume, Trap};
use crate::exec::check::written::Written;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::memory::window::{BLOCK_STRIDE, resolve};
use crate::exec::ops::access::{addresses, local, pattern, trap};
use crate::exec::space::Space;
use crate::exec::values::lane::{FULL, LANES, Lanes, Row};

/// The maximum distance between a warp's lowest and highest address for a single check.
const SPAN: u64 = 8192;

/// The memory at an address.
struct MemoryAt<'u> {
    offset: u64,
    size: u64,
    written: Option<&'u Written>,
}

/// Reports an uninitialized read by the next load, of as many bytes as its alignment.
pub(crate) fn run_check(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if let Some(offset) = local::offset(unit, op) {
        let lanes = unit.warp.written.uninitialized(offset, bytes, unit.active);
        return if lanes == 0 {
            Control::Next
        } else {
            report(unit, op, lanes.trailing_zeros() as usize, offset)
        };
    }
    if is_whole(unit, op.space) || is_pattern_written(unit, op, bytes) {
        return Control::Next;
    }
    check_lanes(unit, op, bytes)
}

/// Finds the uninitialized bytes of the next load, and passes them to it. For a load in several
/// parts, `b` is the start of the part, and `c` is 1 in the first.
pub(crate) fn run_find(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if op.c == 1 {
        unit.warp.uninitialized = None;
    }
    if let Some(offset) = local::offset(unit, op) {
        if unit.warp.written.uninitialized(offset, bytes, unit.active) != 0 {
            record_uninitialized(unit, op, &[offset; LANES]);
        }
        return Control::Next;
    }
    if !is_whole(unit, op.space) && !is_pattern_written(unit, op, bytes) {
        find_in_lanes(unit, op, bytes);
    }
    Control::Next
}

/// Checks a load lane by lane.
#[inline(never)]
fn find_in_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64) {
    let addresses = active_addresses(unit, op);
    if !is_covered(unit, op.space, &addresses, bytes) {
        record_uninitialized(unit, op, &addresses);
    }
}

/// Records the uninitialized bytes at the lanes' addresses.
#[cold]
fn record_uninitialized(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES]) {
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
                let load = unit.warp.uninitialized.get_or_insert_default();
                load.bytes[lane] |= 1 << (u64::from(op.b) + byte);
                load.addresses[lane] = addresses[lane].wrapping_sub(u64::from(op.b));
            }
        }
    }
    if unit.warp.uninitialized.is_some() {
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
    resolve_space(space, address).0 == Space::Global
}

/// Marks bytes as uninitialized.
pub(crate) fn remove(unit: &mut Unit<'_>, space: Space, lane: usize, address: u64, bytes: u64) {
    let (space, offset) = resolve_space(space, address);
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
    for lane in Lanes(unit.active) {
        if is_written(unit, op.space, lane, addresses[lane], bytes) == Some(false) {
            return report(unit, op, lane, addresses[lane]);
        }
    }
    Control::Next
}

/// Records the next store, of as many bytes as its alignment.
pub(crate) fn run_record(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if let Some(offset) = local::offset(unit, op) {
        unit.warp.written.add(offset, bytes, unit.active);
        return Control::Next;
    }
    if is_whole(unit, op.space) || is_pattern_written(unit, op, bytes) {
        return Control::Next;
    }
    record_lanes(unit, op, bytes);
    Control::Next
}

/// Records a store by half warps if it has an access pattern, and otherwise lane by lane.
#[inline(never)]
fn record_lanes(unit: &mut Unit<'_>, op: &Op, bytes: u64) {
    let addresses = active_addresses(unit, op);
    let pattern = pattern::for_full_warp(unit, op).filter(|pattern| {
        pattern
            .starts
            .iter()
            .all(|start| !is_local(op.space, *start))
    });
    if pattern.is_none() && is_covered(unit, op.space, &addresses, bytes) {
        return;
    }
    record_first_store(unit, op, &addresses, bytes);
    if let Some(pattern) = pattern {
        for Range { start, end } in pattern
            .ranges(bytes)
            .into_iter()
            .filter(|range| !range.is_empty())
        {
            add(unit, op.space, 0, start, end - start);
        }
    } else {
        for lane in Lanes(unit.active) {
            add(unit, op.space, lane, addresses[lane], bytes);
        }
    }
}

/// Records a store to the block's own shared memory for reports, if it may write bytes that no
/// earlier store has written. Inactive lanes have the address of an active one.
fn record_first_store(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES], bytes: u64) {
    let offsets = addresses.map(|address| match resolve_space(op.space, address) {
        (Space::Shared, offset) => offset,
        _ => u64::MAX,
    });
    let first = offsets.iter().copied().min().unwrap_or(u64::MAX);
    let last = offsets.iter().copied().max().unwrap_or(u64::MAX);
    if last < BLOCK_STRIDE {
        let warp = unit.warp.index;
        unit.block
            .first_stores
            .record(op.line, warp, unit.active, first..last + bytes);
    }
}

/// Returns `true` if an access is to the block's own shared memory, and all of that memory is
/// written.
#[inline(always)]
fn is_whole(unit: &Unit<'_>, space: Space) -> bool {
    space == Space::Shared
        && unit.block.shared.written().is_some_and(Written::is_whole)
        && unit.block.cluster.is_single_block()
}

/// Returns `true` if a warp's accesses have a pattern and are to written memory, the usual case.
#[inline(always)]
fn is_pattern_written(unit: &mut Unit<'_>, op: &Op, bytes: u64) -> bool {
    let Some(pattern) = pattern::for_full_warp(unit, op) else {
        return false;
    };
    pattern
        .ranges(bytes)
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
        return Err(trap(
            ReportKind::Uninitialized,
            lane,
            address,
            bytes,
            AccessMode::Read,
        )
        .in_space(space));
    }
    Ok(())
}

/// Records one lane's write, if the launch checks for uninitialized reads.
#[inline]
pub(crate) fn record_write(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
) {
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

/// Returns `true` if everything between the lowest and the highest address is in one allocation and
/// written, the usual case.
fn is_covered(unit: &mut Unit<'_>, space: Space, addresses: &[u64; LANES], bytes: u64) -> bool {
    let mut low = u64::MAX;
    let mut high = 0;
    for &address in addresses {
        low = low.min(address);
        high = high.max(address);
    }
    let is_near = high - low <= SPAN && !is_local(space, low);
    is_near && is_written(unit, space, 0, low, high - low + bytes) == Some(true)
}

/// Returns `true` if an address is in local memory.
fn is_local(space: Space, address: u64) -> bool {
    resolve_space(space, address).0 == Space::Local
}

/// Returns `true` if all of these bytes are or may be written, or `None` if they are not in one
/// allocation.
fn is_written(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
) -> Option<bool> {
    let (space, offset) = resolve_space(space, address);
    if space == Space::Local {
        let lanes = unit.warp.written.uninitialized(offset, bytes, 1 << lane);
        return Some(lanes == 0);
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
    let (space, offset) = resolve_space(space, address);
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

/// Returns the memory of an address that is not local: the offset in it, its size, and the record
/// of its written bytes.
fn memory_at<'u>(unit: &'u mut Unit<'_>, space: Space, address: u64) -> Option<MemoryAt<'u>> {
    match space {
        Space::Global => {
            let cache = &mut unit.cache.written;
            let allocation = cache.allocation(unit.launch.memory, address)?;
            Some(MemoryAt {
                offset: address - allocation.base,
                size: allocation.size,
                written: allocation.written.as_deref(),
            })
        }
        Space::Shared => {
            let shared = unit.block.shared_memory(address)?;
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
fn resolve_space(space: Space, address: u64) -> (Space, u64) {
    if space == Space::Generic {
        resolve(address)
    } else {
        (space, address)
    }
}

/// Reports an uninitialized read by the next load. If the launch continues, the load is executed.
#[cold]
fn report(unit: &mut Unit<'_>, op: &Op, lane: usize, address: u64) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    let trap = trap(
        ReportKind::Uninitialized,
        lane,
        address,
        bytes,
        AccessMode::Read,
    )
    .in_space(op.space);
    unit.fault(Trap {
        resume: Resume::After,
        ..trap
    })
}
