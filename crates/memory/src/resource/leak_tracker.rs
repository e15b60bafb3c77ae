//! A resource that tracks leaks.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

use curium_driver::extend::release;
use curium_driver::{DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource adaptor that tracks live allocations and their call sites. It reports leaks, and
/// rejects double frees and frees with a different size or alignment.
///
/// Allocations that are still live when it is dropped are reported like failed drops; see
/// [`set_drop_observer`](curium_driver::set_drop_observer). The call site is the caller of the
/// buffer's constructor if the resource is a concrete type. Through `dyn Resource`, it is a
/// location in this crate.
#[derive(Debug)]
pub struct LeakTracker<R> {
    inner: R,
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    allocations: HashMap<u64, LiveAllocation>,
    next: u64,
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveAllocation {
    /// The address.
    pub pointer: DevicePointer<u8>,
    /// The size in bytes.
    pub bytes: usize,
    /// The alignment in bytes.
    pub alignment: usize,
    /// The sequence number of the allocation, from 0.
    pub number: u64,
    /// The identity of the stream on which it was allocated.
    pub stream: u64,
    /// The call site, or a location in this crate if the allocation was made through
    /// `dyn Resource`.
    pub site: &'static Location<'static>,
}

impl<R: Resource> LeakTracker<R> {
    /// Creates an adaptor that tracks the allocations of `inner`.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            live: Mutex::default(),
        }
    }

    /// Returns the inner resource.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Returns the live allocations, oldest first.
    pub fn live(&self) -> Vec<LiveAllocation> {
        self.live.lock().sorted()
    }
}

impl Live {
    fn sorted(&self) -> Vec<LiveAllocation> {
        let mut live: Vec<_> = self.allocations.values().copied().collect();
        live.sort_by_key(|allocation| allocation.number);
        live
    }

    fn insert(&mut self, allocation: LiveAllocation) {
        let number = self.next;
        self.next += 1;
        self.allocations.insert(
            allocation.pointer.as_raw(),
            LiveAllocation {
                number,
                ..allocation
            },
        );
    }

    /// Removes an allocation, which must have this size and alignment.
    fn remove(
        &mut self,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<LiveAllocation> {
        const OPERATION: &str = "LeakTracker::deallocate";
        let Some(allocation) = self.allocations.get(&pointer.as_raw()).copied() else {
            let reason =
                format!("not a live allocation of this resource ({bytes} bytes at {pointer:?})");
            return Err(Error::argument(OPERATION, reason));
        };
        if allocation.bytes != bytes || allocation.alignment != alignment {
            let reason = format!(
                "size or alignment mismatch (freed {bytes} bytes aligned to {alignment}, allocated {allocation})"
            );
            return Err(Error::argument(OPERATION, reason));
        }
        self.allocations.remove(&pointer.as_raw());
        Ok(allocation)
    }
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource> Resource for LeakTracker<R> {
    #[track_caller]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let site = Location::caller();
        let pointer = self.inner.allocate(stream, bytes, alignment)?;
        let stream = stream.identity();
        self.live.lock().insert(LiveAllocation {
            pointer,
            bytes,
            alignment,
            number: 0,
            stream,
            site,
        });
        Ok(pointer)
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // Removed first: once the memory is free, another thread may allocate the same address.
        let allocation = self.live.lock().remove(pointer, bytes, alignment)?;
        // SAFETY: the inner resource allocated the memory with this size and alignment, and the
        // caller guarantees that only earlier work on `stream` uses it.
        let freed = unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) };
        freed.inspect_err(|_| {
            self.live
                .lock()
                .allocations
                .insert(pointer.as_raw(), allocation);
        })
    }

    upkeep_of_inner!();
}

impl fmt::Display for LiveAllocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pointer,
            bytes,
            alignment,
            site,
            ..
        } = self;
        write!(
            formatter,
            "{bytes} bytes at {pointer:?} aligned to {alignment}, from {site}"
        )
    }
}

impl<R> Drop for LeakTracker<R> {
    fn drop(&mut self) {
        let leaks = self.live.get_mut().sorted();
        if !leaks.is_empty() {
            release(|| Err(leaked(&leaks)));
        }
    }
}

/// The maximum number of leaks that are reported individually.
const LISTED: usize = 16;

#[cold]
fn leaked(leaks: &[LiveAllocation]) -> Error {
    let bytes: usize = leaks.iter().map(|leak| leak.bytes).sum();
    let mut text = format!(
        "{} leaked allocations of {bytes} bytes in total",
        leaks.len()
    );
    for leak in leaks.iter().take(LISTED) {
        text.push_str(&format!("\n  {leak}"));
    }
    if leaks.len() > LISTED {
        text.push_str(&format!("\n  and {} more", leaks.len() - LISTED));
    }
    Error::argument("LeakTracker::drop", text)
}
