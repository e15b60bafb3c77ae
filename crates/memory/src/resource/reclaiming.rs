//! Out-of-memory recovery.

mod reclaimers;
mod recovery_step;

use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use curium_driver::{DevicePointer, Error, RecoveryAttempt, Result, Stream};
use parking_lot::Mutex;

pub use self::reclaimers::ReclaimerGuard;
use self::reclaimers::Reclaimers;
use self::recovery_step::Counters;
pub use self::recovery_step::{RecoveryStatistics, RecoveryStep, RecoveryStepStatistics};
use super::forward::upkeep_of_inner;
use super::{Resource, StreamOrdered};

/// A resource adaptor that recovers from out-of-memory errors. It takes the following steps in
/// order, and retries the allocation after each:
///
/// 1. [`RecoveryStep::Purge`] returns the blocks in thread caches to the central heap.
/// 2. [`RecoveryStep::Synchronize`] waits for the work in the context, so that the memory it
///    accessed can be reused.
/// 3. [`RecoveryStep::Trim`] returns unused memory of the resource and of the device's current pool
///    to the driver.
/// 4. [`RecoveryStep::Reclaim`] calls the [registered](Reclaiming::register) reclaimers, in
///    descending order of priority.
///
/// A step that fails is skipped, and the final error lists it. An error that loses the context ends
/// the recovery. On a stream that is being captured, no step waits.
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
    /// The threads in recovery. An allocation in a reclaimer starts no recovery of its own.
    recovering: Mutex<Vec<ThreadId>>,
}

/// The recovery of one failed allocation.
struct Recovery<'a, R> {
    resource: &'a Reclaiming<R>,
    stream: &'a Stream,
    bytes: usize,
    alignment: usize,
    is_capturing: bool,
    /// The error of the most recent attempt.
    error: Error,
    attempts: Vec<RecoveryAttempt>,
}

impl<R: Resource> Reclaiming<R> {
    /// Creates an adaptor that recovers from out-of-memory errors of `inner`.
    #[inline]
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            reclaimers: Arc::default(),
            counters: Counters::default(),
            recovering: Mutex::default(),
        }
    }

    /// Returns the inner resource.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Registers `reclaim` for the last step of out-of-memory recovery, until the guard is dropped.
    /// Reclaimers are called in descending order of priority.
    ///
    /// The closure receives the requested size in bytes, frees memory (stream-ordered frees count
    /// too), and returns the number of freed bytes. If it returns 0, the next reclaimer is called
    /// without a retry in between. It is called without a lock held, possibly by several threads
    /// concurrently.
    #[inline]
    pub fn register(
        &self,
        priority: i32,
        reclaim: impl Fn(usize) -> usize + Send + Sync + 'static,
    ) -> ReclaimerGuard {
        Reclaimers::register(&self.reclaimers, priority, Arc::new(reclaim))
    }

    /// Returns the statistics of each step.
    #[inline]
    pub fn statistics(&self) -> RecoveryStatistics {
        self.counters.statistics()
    }

    #[track_caller]
    #[cold]
    fn recover(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
        error: Error,
    ) -> Result<DevicePointer<u8>> {
        let Some(_recovering) = Recovering::begin(&self.recovering) else {
            return Err(error);
        };
        let is_capturing = stream.is_capturing()?;
        let recovery = Recovery {
            resource: self,
            stream,
            bytes,
            alignment,
            is_capturing,
            error,
            attempts: Vec::new(),
        };
        recovery.run()
    }
}

impl<R: Resource> Recovery<'_, R> {
    #[track_caller]
    fn run(mut self) -> Result<DevicePointer<u8>> {
        for step in [
            RecoveryStep::Purge,
            RecoveryStep::Synchronize,
            RecoveryStep::Trim,
        ] {
            if let Some(pointer) = self.attempt(step)? {
                return Ok(pointer);
            }
        }
        for reclaim in self.resource.reclaimers.by_priority() {
            if reclaim(self.bytes) != 0
                && let Some(pointer) = self.attempt(RecoveryStep::Reclaim)?
            {
                return Ok(pointer);
            }
        }
        Err(self.error.with_recovery_attempts(self.attempts))
    }

    /// Takes a step and retries the allocation. Returns `None` if it is still out of memory, and an
    /// error if the recovery must end.
    #[track_caller]
    fn attempt(&mut self, step: RecoveryStep) -> Result<Option<DevicePointer<u8>>> {
        let failure = self.take(step).err();
        let counter = self.resource.counters.counter(step);
        counter.count_try(failure.is_some());
        if failure.as_ref().is_some_and(Error::is_sticky) {
            return failure.map_or(Ok(None), Err);
        }
        self.attempts
            .push(RecoveryAttempt::new(step.name(), failure));
        match self
            .resource
            .inner
            .allocate(self.stream, self.bytes, self.alignment)
        {
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

    fn take(&self, step: RecoveryStep) -> Result<()> {
        let inner = &self.resource.inner;
        match step {
            RecoveryStep::Purge => inner.purge(),
            RecoveryStep::Synchronize => self.synchronize(),
            RecoveryStep::Trim => self.trim(),
            // Memory that a reclaimer freed in stream order is available after the wait.
            RecoveryStep::Reclaim => inner.purge().and(self.synchronize()).and(self.trim()),
        }
    }

    /// Waits for the stream, unless it is being captured.
    fn synchronize(&self) -> Result<()> {
        if self.is_capturing {
            return Ok(());
        }
        self.resource.inner.synchronize(self.stream)
    }

    /// Releases free memory of the resource and of the default pool to the operating system.
    fn trim(&self) -> Result<()> {
        let trimmed = self.resource.inner.trim(self.stream, 0);
        trimmed.and(StreamOrdered.trim(self.stream, 0))
    }
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource> Resource for Reclaiming<R> {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        match self.inner.allocate(stream, bytes, alignment) {
            Err(error) if error.is_out_of_memory() => self.recover(stream, bytes, alignment, error),
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
        // SAFETY: the memory came from the inner resource, and the caller upholds its contract.
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }
    }

    upkeep_of_inner!();
}

impl<R: fmt::Debug> fmt::Debug for Reclaiming<R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Reclaiming")
            .field(&self.inner)
            .finish()
    }
}

/// Marks the calling thread as recovering. Dropping it, including on panic of a reclaimer, removes
/// the mark.
struct Recovering<'a> {
    threads: &'a Mutex<Vec<ThreadId>>,
    thread: ThreadId,
}

impl<'a> Recovering<'a> {
    /// Returns `None` if the calling thread is already recovering.
    fn begin(threads: &'a Mutex<Vec<ThreadId>>) -> Option<Self> {
        let thread = thread::current().id();
        let mut locked = threads.lock();
        if locked.contains(&thread) {
            return None;
        }
        locked.push(thread);
        Some(Self { threads, thread })
    }
}

impl Drop for Recovering<'_> {
    #[inline]
    fn drop(&mut self) {
        self.threads.lock().retain(|thread| *thread != self.thread);
    }
}
