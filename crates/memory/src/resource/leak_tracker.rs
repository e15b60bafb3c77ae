//! A resource that knows what is in use, and who asked for it.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

use curium_driver::{DevicePointer, Error, Result, Stream, release};
use parking_lot::Mutex;

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource that knows every allocation that is in use, with the line of code that asked for it, so that leaks are found, and
/// memory that is freed twice or with other figures than it was allocated with is refused.
///
/// What is still in use when it is dropped is reported like a failed drop, see
/// [`set_drop_observer`](curium_driver::set_drop_observer). The line of code is that of the caller where the resource is known by its
/// type; through `dyn Resource` it is not known.
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

/// Memory that is in use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveAllocation {
    /// Where it is.
    pub pointer: DevicePointer<u8>,
    /// How large it is.
    pub bytes: usize,
    /// What it is aligned to.
    pub alignment: usize,
    /// The number of the allocation, counted from 0 on.
    pub number: u64,
    /// The identity of the stream that it was allocated on.
    pub stream: u64,
    /// Who asked for it.
    pub site: &'static Location<'static>,
}

impl<R: Resource> LeakTracker<R> {
    /// A resource that knows what of `inner` is in use.
    #[inline]
    pub fn new(inner: R) -> Self {
        Self { inner, live: Mutex::default() }
    }

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// What is in use, in the order in which it was allocated.
    #[inline]
    pub fn live(&self) -> Vec<LiveAllocation> {
        self.live.lock().sorted()
    }
}

impl Live {
    #[inline]
    fn sorted(&self) -> Vec<LiveAllocation> {
        let mut live: Vec<_> = self.allocations.values().copied().collect();
        live.sort_by_key(|allocation| allocation.number);
        live
    }

    #[inline]
    fn insert(&mut self, allocation: LiveAllocation) {
        let number = self.next;
        self.next += 1;
        self.allocations.insert(allocation.pointer.as_raw(), LiveAllocation { number, ..allocation });
    }

    /// Forgets an allocation that is freed with these figures.
    #[inline]
    fn remove(&mut self, pointer: DevicePointer<u8>, bytes: usize, alignment: usize) -> Result<LiveAllocation> {
        let refused = |reason: String| Err(Error::argument("LeakTracker::deallocate", reason));
        let Some(known) = self.allocations.get(&pointer.as_raw()).copied() else {
            return refused(format!("{bytes} bytes at {pointer:?} are not in use, or not of this resource"));
        };
        if (known.bytes, known.alignment) != (bytes, alignment) {
            return refused(format!("{bytes} bytes aligned to {alignment} are freed that were allocated as {known}"));
        }
        self.allocations.remove(&pointer.as_raw());
        Ok(known)
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for LeakTracker<R> {
    #[track_caller]
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let site = Location::caller();
        let pointer = self.inner.allocate(stream, bytes, alignment)?;
        let stream = stream.identity();
        self.live.lock().insert(LiveAllocation { pointer, bytes, alignment, number: 0, stream, site });
        Ok(pointer)
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // It is forgotten first: once it is free, another thread may be given the same address.
        let known = self.live.lock().remove(pointer, bytes, alignment)?;
        // SAFETY: the caller's promises are those of the resource inside, where the memory came from.
        let freed = unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) };
        freed.inspect_err(|_| {
            self.live.lock().allocations.insert(pointer.as_raw(), known);
        })
    }

    upkeep_of_inner!();
}

impl fmt::Display for LiveAllocation {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, bytes, alignment, site, .. } = self;
        write!(formatter, "{bytes} bytes at {pointer:?} aligned to {alignment}, from {site}")
    }
}

impl<R> Drop for LeakTracker<R> {
    #[inline]
    fn drop(&mut self) {
        let leaks = self.live.get_mut().sorted();
        if !leaks.is_empty() {
            release(|| Err(leaked(&leaks)));
        }
    }
}

/// How many leaks are listed one by one.
const LISTED: usize = 16;

#[cold]
#[inline]
fn leaked(leaks: &[LiveAllocation]) -> Error {
    let bytes: usize = leaks.iter().map(|leak| leak.bytes).sum();
    let mut text = format!("{} allocations of {bytes} bytes were never freed", leaks.len());
    for leak in leaks.iter().take(LISTED) {
        text.push_str(&format!("\n  {leak}"));
    }
    if leaks.len() > LISTED {
        text.push_str(&format!("\n  and {} more", leaks.len() - LISTED));
    }
    Error::argument("LeakTracker::drop", text)
}
