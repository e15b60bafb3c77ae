//! Operations on several ranges of managed memory in one call.

use crate::AnyBitPattern;
use curium_driver::hazard::Operation;
use curium_driver::sys::{CUdeviceptr, CUmemLocation};
use curium_driver::{Error, Function, Result, Stream, call};

use super::advice::enqueue_prefetch;
use crate::operand::Operand;
use crate::tracked::Accessibility;
use crate::{DeviceView, DeviceViewMut, MemoryLocation};

/// Prefetches each view of managed memory to its location, in stream order. Contents do not change.
///
/// CUDA: `cuMemPrefetchBatchAsync` since 13.0; one call per view on older drivers.
///
/// # Errors
///
/// An argument error if a view is not in managed memory.
#[doc(alias = "cuMemPrefetchBatchAsync")]
pub fn prefetch<T>(stream: &Stream, ranges: &[(DeviceView<'_, T>, MemoryLocation)]) -> Result<()> {
    let ends = ranges.iter().map(|(range, _)| range.operand());
    let mut operation = stream.enqueue_uncaptured("unified::prefetch")?;
    let mut batch = Batch::new(&operation, ends)?.with_locations(ranges.iter().map(|(_, at)| *at));
    if batch.is_empty() {
        return Ok(());
    }
    if stream.driver().has(Function::cuMemPrefetchBatchAsync) {
        let result = batch.prefetch(&operation);
        // On failure, a part of the batch may have been enqueued.
        ranges
            .iter()
            .for_each(|(range, _)| range.operand().tracked.after_read(&mut operation));
        return result;
    }
    ranges
        .iter()
        .filter(|(range, _)| !range.is_empty())
        .try_for_each(|(range, location)| {
            enqueue_prefetch(
                &operation,
                range.as_pointer().as_raw(),
                range.byte_len(),
                *location,
            )?;
            range.operand().tracked.after_read(&mut operation);
            Ok(())
        })
}

/// Discards the contents of views of managed memory, in stream order. They are undefined until they
/// are written, and their pages need not migrate.
///
/// Requires a driver for CUDA 13.0. CUDA: `cuMemDiscardBatchAsync`.
///
/// # Errors
///
/// An argument error if a view is not in managed memory.
#[doc(alias = "cuMemDiscardBatchAsync")]
pub fn discard<T: AnyBitPattern>(
    stream: &Stream,
    ranges: &mut [DeviceViewMut<'_, T>],
) -> Result<()> {
    let mut operation = stream.enqueue_uncaptured("unified::discard")?;
    let mut batch = Batch::new(&operation, ranges.iter().map(|range| range.operand()))?;
    if batch.is_empty() {
        return Ok(());
    }
    before_writes(&mut operation, ranges.iter().map(|range| range.operand()))?;
    let result = batch.discard(&operation);
    ranges
        .iter()
        .for_each(|range| range.operand().tracked.after_partial_write(&mut operation));
    result
}

/// Discards the contents of each view like [`discard`], and prefetches it to its location.
///
/// Requires a driver for CUDA 13.0. CUDA: `cuMemDiscardAndPrefetchBatchAsync`.
///
/// # Errors
///
/// An argument error if a view is not in managed memory.
#[doc(alias = "cuMemDiscardAndPrefetchBatchAsync")]
pub fn discard_and_prefetch<T: AnyBitPattern>(
    stream: &Stream,
    ranges: &mut [(DeviceViewMut<'_, T>, MemoryLocation)],
) -> Result<()> {
    let mut operation = stream.enqueue_uncaptured("unified::discard_and_prefetch")?;
    let ends = ranges.iter().map(|(range, _)| range.operand());
    let batch = Batch::new(&operation, ends.clone())?;
    let mut batch = batch.with_locations(ranges.iter().map(|(_, location)| *location));
    if batch.is_empty() {
        return Ok(());
    }
    before_writes(&mut operation, ends)?;
    let result = batch.discard_and_prefetch(&operation);
    ranges
        .iter()
        .for_each(|(range, _)| range.operand().tracked.after_partial_write(&mut operation));
    result
}

/// Ranges as the driver's arrays, without empty ones.
struct Batch {
    addresses: Vec<CUdeviceptr>,
    sizes: Vec<usize>,
    locations: Vec<CUmemLocation>,
    /// The index of the first range of each location: every range has its own location.
    firsts: Vec<usize>,
    /// The indices of the ranges that are not empty.
    kept: Vec<usize>,
}

impl Batch {
    fn new<'a>(operation: &Operation<'_>, ends: impl Iterator<Item = Operand<'a>>) -> Result<Self> {
        let locations = Vec::new();
        let firsts = Vec::new();
        let mut batch = Self {
            addresses: Vec::new(),
            sizes: Vec::new(),
            locations,
            firsts,
            kept: Vec::new(),
        };
        for (index, end) in ends.enumerate() {
            operation
                .driver()
                .check_same(end.stream().driver(), operation.name())?;
            if end.tracked.reach() != Accessibility::Managed {
                let reason = format!(
                    "memory at {:#x} is not managed (range {index})",
                    end.address
                );
                return Err(Error::argument(operation.name(), reason));
            }
            if end.bytes > 0 {
                batch.addresses.push(end.address);
                batch.sizes.push(end.bytes);
                batch.kept.push(index);
            }
        }
        Ok(batch)
    }

    fn with_locations(mut self, locations: impl Iterator<Item = MemoryLocation>) -> Self {
        let all: Vec<_> = locations.map(MemoryLocation::to_raw).collect();
        self.locations = self.kept.iter().map(|index| all[*index]).collect();
        self.firsts = (0..self.locations.len()).collect();
        self
    }

    fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    fn prefetch(&mut self, operation: &Operation<'_>) -> Result<()> {
        let count = self.addresses.len();
        let raw = operation.raw_stream();
        let ranges = self.addresses.as_mut_ptr();
        let sizes = self.sizes.as_mut_ptr();
        let locations = self.locations.as_mut_ptr();
        let firsts = self.firsts.as_mut_ptr();
        // SAFETY: all arrays have `count` entries, and the ranges are managed memory that is live
        // until the work has completed.
        unsafe {
            call!(
                operation.driver(),
                cuMemPrefetchBatchAsync(ranges, sizes, count, locations, firsts, count, 0, raw)
            )
        }
    }

    fn discard(&mut self, operation: &Operation<'_>) -> Result<()> {
        let count = self.addresses.len();
        let raw = operation.raw_stream();
        let ranges = self.addresses.as_mut_ptr();
        let sizes = self.sizes.as_mut_ptr();
        // SAFETY: both arrays have `count` entries, the ranges are live managed memory that is
        // borrowed exclusively, the stream has waited for conflicting accesses, and every bit
        // pattern is a valid element.
        unsafe {
            call!(
                operation.driver(),
                cuMemDiscardBatchAsync(ranges, sizes, count, 0, raw)
            )
        }
    }

    fn discard_and_prefetch(&mut self, operation: &Operation<'_>) -> Result<()> {
        let count = self.addresses.len();
        let raw = operation.raw_stream();
        let ranges = self.addresses.as_mut_ptr();
        let sizes = self.sizes.as_mut_ptr();
        let locations = self.locations.as_mut_ptr();
        let firsts = self.firsts.as_mut_ptr();
        // SAFETY: all arrays have `count` entries, each range has its location, and the ranges are
        // managed memory that is live until the work has completed.
        unsafe {
            call!(
                operation.driver(),
                cuMemDiscardAndPrefetchBatchAsync(
                    ranges, sizes, count, locations, firsts, count, 0, raw
                )
            )
        }
    }
}

fn before_writes<'a>(
    operation: &mut Operation<'_>,
    mut ends: impl Iterator<Item = Operand<'a>>,
) -> Result<()> {
    ends.try_for_each(|end| end.tracked.before_write(operation))
}
