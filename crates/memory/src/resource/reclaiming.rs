//! What is tried before memory is called short.

mod reclaimer;
mod rung;

use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use curium_driver::{DevicePointer, Error, RecoveryAttempt, Result, Stream};
use parking_lot::Mutex;

pub use self::reclaimer::ReclaimerGuard;
use self::reclaimer::Reclaimers;
use self::rung::Counters;
pub use self::rung::{LadderStatistics, Rung, RungStatistics};
use super::forward::upkeep_of_inner;
use super::{Resource, StreamOrdered};

/// A resource that does not give up when memory is short before it has tried what there is, one rung after the other, each
/// followed by a new attempt:
///
/// 1. [`Rung::Purge`]: what threads hold is put together.
/// 2. [`Rung::Synchronize`]: the work of the context is waited for, so that what it used can be used again.
/// 3. [`Rung::Trim`]: the resource and the device's current pool give back what they do not use.
/// 4. [`Rung::Reclaim`]: those who [registered](Reclaiming::register) give up memory, the ones of the highest priority first.
///
/// A rung that fails is passed by, and told of in the error if nothing helps; an error that ends the context ends the ladder. On a
/// stream that is being captured nothing is waited for.
///
/// ```
/// # use curium_driver::Driver;
/// use curium_memory::{CachingResource, Reclaiming, Resource};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
/// # /*
/// let driver = Driver::load()?;
/// # */
/// let context = driver.device(0)?.primary_context()?;
/// let resource = Reclaiming::new(CachingResource::new(&context)?);
/// let _guard = resource.register(0, |bytes| {
///     println!("{bytes} bytes are missing");
///     0
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reclaiming<R> {
    inner: R,
    reclaimers: Arc<Reclaimers>,
    counters: Counters,
    /// The threads that are on the ladder: what they allocate meanwhile, in a reclaimer, does not begin anew.
    climbing: Mutex<Vec<ThreadId>>,
}

/// One way up the ladder.
struct Climb<'a, R> {
    resource: &'a Reclaiming<R>,
    stream: &'a Stream,
    bytes: usize,
    alignment: usize,
    is_capturing: bool,
    /// The error of the last attempt.
    error: Error,
    attempts: Vec<RecoveryAttempt>,
}

impl<R: Resource> Reclaiming<R> {
    /// A resource that tries what there is before `inner` fails for want of memory.
    #[inline]
    pub fn new(inner: R) -> Self {
        Self { inner, reclaimers: Arc::default(), counters: Counters::default(), climbing: Mutex::default() }
    }

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Has `reclaim` called when memory is short and nothing else helped, until the guard is dropped; higher priorities come first.
    ///
    /// It is told how many bytes are asked for, frees what it can, also in the order of streams, and returns how many bytes that
    /// were; with 0 the next one is called at once. It is called without a lock, maybe on several threads at a time.
    #[inline]
    pub fn register(&self, priority: i32, reclaim: impl Fn(usize) -> usize + Send + Sync + 'static) -> ReclaimerGuard {
        Reclaimers::register(&self.reclaimers, priority, Arc::new(reclaim))
    }

    /// How often each rung was tried, and what came of it.
    #[inline]
    pub fn statistics(&self) -> LadderStatistics {
        self.counters.statistics()
    }

    #[track_caller]
    #[cold]
    #[inline]
    fn climb(&self, stream: &Stream, bytes: usize, alignment: usize, error: Error) -> Result<DevicePointer<u8>> {
        let thread = thread::current().id();
        if self.climbing.lock().contains(&thread) {
            return Err(error);
        }
        self.climbing.lock().push(thread);
        let _leave = Leave { climbing: &self.climbing, thread };
        let is_capturing = stream.is_capturing()?;
        let climb = Climb { resource: self, stream, bytes, alignment, is_capturing, error, attempts: Vec::new() };
        climb.run()
    }
}

impl<R: Resource> Climb<'_, R> {
    #[track_caller]
    #[inline]
    fn run(mut self) -> Result<DevicePointer<u8>> {
        for rung in [Rung::Purge, Rung::Synchronize, Rung::Trim] {
            if let Some(pointer) = self.step(rung)? {
                return Ok(pointer);
            }
        }
        for reclaim in self.resource.reclaimers.by_priority() {
            if reclaim(self.bytes) != 0
                && let Some(pointer) = self.step(Rung::Reclaim)?
            {
                return Ok(pointer);
            }
        }
        Err(self.error.with_recovery_attempts(self.attempts))
    }

    /// Does what a rung says and tries again: memory, nothing, or an error that ends all.
    #[track_caller]
    #[inline]
    fn step(&mut self, rung: Rung) -> Result<Option<DevicePointer<u8>>> {
        let failure = self.recover(rung).err();
        let counter = self.resource.counters.of(rung);
        counter.count_try(failure.is_some());
        if failure.as_ref().is_some_and(Error::is_sticky) {
            return failure.map_or(Ok(None), Err);
        }
        self.attempts.push(RecoveryAttempt::new(rung.name(), failure));
        match self.resource.inner.allocate(self.stream, self.bytes, self.alignment) {
            Ok(pointer) => {
                counter.count_help();
                Ok(Some(pointer))
            }
            Err(error) if error.is_out_of_memory() => {
                self.error = error;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn recover(&self, rung: Rung) -> Result<()> {
        let (inner, stream) = (&self.resource.inner, self.stream);
        let wait = || if self.is_capturing { Ok(()) } else { inner.synchronize(stream) };
        let trim = || inner.trim(stream, 0).and(StreamOrdered.trim(stream, 0));
        match rung {
            Rung::Purge => inner.purge(),
            Rung::Synchronize => wait(),
            Rung::Trim => trim(),
            // What was freed on streams is there once they have been waited for.
            Rung::Reclaim => inner.purge().and(wait()).and(trim()),
        }
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for Reclaiming<R> {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        match self.inner.allocate(stream, bytes, alignment) {
            Err(error) if error.is_out_of_memory() => self.climb(stream, bytes, alignment, error),
            result => result,
        }
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promises are those of the resource inside, where the memory came from.
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }
    }

    upkeep_of_inner!();
}

impl<R: fmt::Debug> fmt::Debug for Reclaiming<R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reclaiming").field(&self.inner).finish()
    }
}

/// Takes a thread off the ladder, also when a reclaimer panics.
struct Leave<'a> {
    climbing: &'a Mutex<Vec<ThreadId>>,
    thread: ThreadId,
}

impl Drop for Leave<'_> {
    #[inline]
    fn drop(&mut self) {
        self.climbing.lock().retain(|thread| *thread != self.thread);
    }
}
