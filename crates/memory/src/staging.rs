//! Staged copies: copies of large pageable memory at the speed of pinned memory.
//!
//! The driver copies a slice through a small pinned block with one thread. Here several threads do the same, each with
//! its own lane: a stream and two pinned blocks. While the CPU copies one block, the device copies the other.
//!
//! - The lanes belong to the context. They are created on demand, at most [`StagingOptions::lanes`] of them, and
//!   concurrent copies share them.
//! - The calling thread serves one lane. The threads of the others belong to the context and sleep between copies,
//!   since starting a thread takes as long as copying several megabytes.
//! - The parts of a copy are short at first and grow ([`job`]), so that the device starts early.
//! - The driver's own copy is used where it is faster or staging is impossible: for small copies, pinned memory,
//!   streams that are being captured, copies within another access, and copies that find no free lane or no pinned
//!   memory.

mod direction;
mod job;
mod lane;
mod options;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::hazard::is_nested;
use curium_driver::sys::{CUdeviceptr, CUpointer_attribute, CUstreamCaptureStatus};
use curium_driver::{Context, Driver, Error, Result, Stream, call};
use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use self::direction::{Direction, FIRST_PART};
use self::job::{Job, Lengths, Split};
use self::lane::Lane;
pub use self::options::StagingOptions;

/// The staging lanes of one [`Context`] and its clones. Another retention of the same primary context has its own lanes
/// and options.
pub struct Staging {
    /// A weak reference, because the context owns this value.
    context: Context,
    /// The threshold from the options, stored separately so that small copies read it without a lock.
    threshold: AtomicUsize,
    pool: Mutex<Pool>,
}

struct Pool {
    options: StagingOptions,
    idle: Vec<Lane>,
    /// The threads; `None` until a copy requires them.
    threads: Option<Arc<ThreadPool>>,
    /// The number of lanes, including those in use.
    lanes: usize,
    /// Incremented when the options change. Lanes of an older generation are not reused.
    generation: u64,
}

/// The lanes of one copy, which return to the pool when it ends.
struct Lanes {
    staging: Arc<Staging>,
    lanes: Vec<Lane>,
    /// `None` until there are enough lanes.
    threads: Option<Arc<ThreadPool>>,
    lengths: Lengths,
}

/// Enqueues a part of a copy on the stream of a lane, as an access to the device memory.
pub(crate) trait Access: Fn(&Stream, &mut dyn FnMut() -> Result<()>) -> Result<()> + Sync {}

impl<F: Fn(&Stream, &mut dyn FnMut() -> Result<()>) -> Result<()> + Sync> Access for F {}

/// The maximum number of lanes of a context: more exceed the memory bandwidth. There are as many threads, so that a
/// copy that an observer makes within another copy never waits for a thread that waits for it.
const MOST_LANES: usize = 64;

impl Staging {
    /// Returns the options of a context.
    #[must_use]
    #[inline]
    pub fn options(context: &Context) -> StagingOptions {
        Self::of(context).pool.lock().options
    }

    /// Sets the options of a context. Copies in progress keep their options.
    ///
    /// # Errors
    ///
    /// An argument error if the block size is 0.
    #[inline]
    pub fn set_options(context: &Context, options: StagingOptions) -> Result<()> {
        if options.block_bytes == 0 {
            return Err(Error::argument("Staging::set_options", "zero block size"));
        }
        let staging = Self::of(context);
        let mut pool = staging.pool.lock();
        pool.options = options;
        staging.threshold.store(options.threshold, Ordering::Relaxed);
        pool.generation += 1;
        let threads = pool.threads.take();
        drop(pool);
        drop(threads);
        Self::trim(context);
        Ok(())
    }

    /// Frees the pinned memory that no copy is using. It is allocated again on demand.
    ///
    /// CUDA: `cuMemFreeHost`, `cuStreamDestroy_v2`, `cuEventDestroy_v2`.
    #[inline]
    pub fn trim(context: &Context) {
        let staging = Self::of(context);
        let idle = {
            let mut pool = staging.pool.lock();
            pool.lanes -= pool.idle.len();
            std::mem::take(&mut pool.idle)
        };
        drop(idle);
    }

    /// Returns the size of the pinned memory that a context holds for staging, in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(context: &Context) -> usize {
        Self::of(context).pool.lock().idle.iter().map(Lane::byte_len).sum()
    }

    #[inline]
    fn of(context: &Context) -> Arc<Self> {
        let make = |context| {
            let options = StagingOptions::new();
            let pool = Pool { options, idle: Vec::new(), threads: None, lanes: 0, generation: 0 };
            Self { context, threshold: AtomicUsize::new(options.threshold), pool: Mutex::new(pool) }
        };
        // SAFETY: lanes, which hold the objects created from the context, are in the pool or in a `Lanes`. A `Lanes` is
        // dropped by the copy before it returns, as is this value by every caller, and all of them borrow the context
        // in the meantime.
        unsafe { context.attached(make) }
    }

    /// Returns a free lane, or a new one if the maximum is not reached and there is enough memory. Without a lane, the
    /// driver's own copy is used, which reports the problem if it fails too.
    #[inline]
    fn lane(&self) -> Option<Lane> {
        let (generation, block_bytes) = {
            let mut pool = self.pool.lock();
            // Lanes of an older generation are dropped when the options change or when they are put back.
            let generation = pool.generation;
            if let Some(index) = pool.idle.iter().rposition(|lane| lane.generation() == generation) {
                return Some(pool.idle.swap_remove(index));
            }
            if pool.lanes >= pool.options.lanes.min(MOST_LANES) {
                return None;
            }
            pool.lanes += 1;
            (pool.generation, pool.options.block_bytes)
        };
        let lane = Lane::new(&self.context, block_bytes, generation).ok();
        if lane.is_none() {
            self.pool.lock().lanes -= 1;
        }
        lane
    }

    /// Returns the worker threads of the lanes, which the first copy starts.
    #[inline]
    fn threads(&self) -> Option<Arc<ThreadPool>> {
        let mut pool = self.pool.lock();
        if pool.threads.is_none() {
            let threads =
                ThreadPoolBuilder::new().num_threads(pool.options.lanes.saturating_sub(1).clamp(1, MOST_LANES));
            let threads = threads.thread_name(|index| format!("curium-staging-{index}"));
            pool.threads = threads.build().ok().map(Arc::new);
        }
        pool.threads.clone()
    }

    /// Returns lanes to the pool. Failed lanes and lanes of an older generation are dropped.
    #[inline]
    fn put_back(&self, lanes: Vec<Lane>) {
        let mut pool = self.pool.lock();
        let (kept, dropped): (Vec<_>, Vec<_>) =
            lanes.into_iter().partition(|lane| lane.is_sound() && lane.generation() == pool.generation);
        pool.lanes -= dropped.len();
        pool.idle.extend(kept);
        drop(pool);
        drop(dropped);
    }
}

/// Copies `source` to the device in place of a synchronous copy on `stream`. Returns `None`, without copying, if that
/// is not faster. `access` enqueues each part, after ordering the lane's stream.
///
/// # Safety
///
/// `target` is the address of live memory of the same size, which streams ordered by `access` may write.
#[inline]
pub(crate) unsafe fn upload(
    stream: &Stream,
    target: CUdeviceptr,
    source: &[u8],
    access: impl Access,
) -> Option<Result<()>> {
    let lanes = Lanes::take(stream, source.as_ptr().cast(), source.len(), Direction::ToDevice)?;
    // SAFETY: the caller guarantees the target.
    Some(unsafe { lanes.upload(target, source, &access) })
}

/// Copies from the device to `target` in place of a synchronous copy on `stream`. Returns `None`, without copying, if
/// that is not faster. `access` enqueues each part, after ordering the lane's stream. On success, all of `target` is
/// initialized.
///
/// # Safety
///
/// `source` is the address of live memory of the same size, which streams ordered by `access` may read.
#[inline]
pub(crate) unsafe fn download(
    stream: &Stream,
    target: &mut [MaybeUninit<u8>],
    source: CUdeviceptr,
    access: impl Access,
) -> Option<Result<()>> {
    let lanes = Lanes::take(stream, target.as_ptr().cast(), target.len(), Direction::ToHost)?;
    // SAFETY: the caller guarantees the source.
    Some(unsafe { lanes.download(target, source, &access) })
}

impl Lanes {
    /// Takes lanes for a copy of `bytes` bytes between the device and `host`, in place of a copy on `stream`. Returns
    /// `None` if the driver's own copy is preferable.
    #[inline]
    fn take(stream: &Stream, host: *const c_void, bytes: usize, direction: Direction) -> Option<Self> {
        let staging = Staging::of(stream.context());
        if bytes < staging.threshold.load(Ordering::Relaxed) {
            return None;
        }
        // The worker threads could wait for a launch that waits for the enclosing access.
        if is_nested() {
            return None;
        }
        let options = staging.pool.lock().options;
        let shortest = direction.shortest_part().min(options.block_bytes);
        let lanes = direction.lanes(options.lanes).min(bytes / shortest);
        if lanes < direction.enough() {
            return None;
        }
        if is_capturing(stream) || !is_pageable(stream.driver(), host, bytes) {
            return None;
        }
        let make = || Ok((0..lanes).map_while(|_| staging.lane()).collect::<Vec<_>>());
        // Creating a lane must not invalidate captures on other threads.
        let lanes = with_relaxed_capture_mode(stream.driver(), make).ok()?;
        // The options may have changed since they were read.
        let longest = lanes.iter().map(Lane::block_bytes).fold(options.block_bytes, usize::min);
        let lengths = Lengths { first: FIRST_PART, shortest, longest };
        let mut taken = Self { staging, lanes, threads: None, lengths };
        if taken.lanes.len() < direction.enough() {
            return None;
        }
        taken.threads = taken.staging.threads();
        taken.threads.is_some().then_some(taken)
    }

    /// Copies `source` to the device. Waits until the copy has completed.
    ///
    /// # Safety
    ///
    /// `target` is the address of live memory of the same size, which the lanes' streams may write under `access`.
    #[inline]
    unsafe fn upload(mut self, target: CUdeviceptr, source: &[u8], access: &impl Access) -> Result<()> {
        let job = self.job(source);
        // SAFETY: the caller guarantees the target, and the parts lie at these offsets within `source`.
        self.run(|lane| unsafe { lane.upload(target, &job, access) })
    }

    /// Copies from the device to `target`. Waits until the copy has completed. On success, all of `target` is
    /// initialized.
    ///
    /// # Safety
    ///
    /// `source` is the address of live memory of the same size, which the lanes' streams may read under `access`.
    #[inline]
    unsafe fn download(
        mut self,
        target: &mut [MaybeUninit<u8>],
        source: CUdeviceptr,
        access: &impl Access,
    ) -> Result<()> {
        let job = self.job(target);
        // SAFETY: the caller guarantees the source, and the parts lie at these offsets within `target`.
        self.run(|lane| unsafe { lane.download(source, &job, access) })
    }

    #[inline]
    fn job<S: Split>(&self, slice: S) -> Job<S> {
        Job::new(slice, self.lanes.len(), self.lengths)
    }

    /// Runs `work` with every lane: one on the calling thread, the others on worker threads. A lane whose thread starts
    /// late finds no part left, because the other lanes have copied them.
    #[inline]
    fn run(&mut self, work: impl Fn(&mut Lane) -> Result<()> + Sync) -> Result<()> {
        let Some((own, others)) = self.lanes.split_first_mut() else { return Ok(()) };
        let Some(threads) = &self.threads else { return work(own) };
        if rayon_core::current_thread_index().is_some() {
            // If the caller is itself a worker of a thread pool, that thread would run other jobs of its pool while it
            // waits.
            return thread::scope(|scope| {
                let serve = || serve(threads, own, others, &work);
                scope.spawn(serve).join().unwrap_or_else(|payload| resume_unwind(payload))
            });
        }
        serve(threads, own, others, &work)
    }
}

/// Runs `work` with all lanes. The calling thread serves its `own` lane.
fn serve(
    threads: &ThreadPool,
    own: &mut Lane,
    others: &mut [Lane],
    work: &(impl Fn(&mut Lane) -> Result<()> + Sync),
) -> Result<()> {
    let result = Mutex::new(Ok(()));
    let note = |done: Result<()>| {
        let mut result = result.lock();
        if result.is_ok() {
            *result = done;
        }
    };
    threads.in_place_scope(|scope| {
        others.iter_mut().for_each(|lane| scope.spawn(|_| note(work(lane))));
        note(work(own));
    });
    result.into_inner()
}

impl Drop for Lanes {
    #[inline]
    fn drop(&mut self) {
        self.staging.put_back(std::mem::take(&mut self.lanes));
    }
}

/// Returns `true` if work on `stream` is captured instead of executed, or if the query fails, in which case the
/// driver's own copy reports the error.
#[inline]
fn is_capturing(stream: &Stream) -> bool {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: `status` is valid for writes, and the stream is live.
    let asked = unsafe { call!(stream.driver(), cuStreamIsCapturing(stream.as_raw(), &raw mut status)) };
    asked.is_err() || status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// Returns `true` if both ends of this host memory are unknown to the driver. Other memory is pinned or managed, and is
/// copied directly.
#[inline]
fn is_pageable(driver: &Driver, host: *const c_void, bytes: usize) -> bool {
    let ends = [host.addr(), host.addr() + bytes - 1];
    ends.into_iter().all(|address| memory_type(driver, address as CUdeviceptr).is_ok_and(|kind| kind == 0))
}

/// Returns the type of memory at an address; 0 if it is unknown to the driver.
#[inline]
fn memory_type(driver: &Driver, address: CUdeviceptr) -> Result<u32> {
    let mut kind = 0_u32;
    let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut place: *mut c_void = (&raw mut kind).cast();
    // SAFETY: there is one attribute with an output pointer that is valid for writes, and any address may be queried.
    unsafe { call!(driver, cuPointerGetAttributes(1, &raw mut attribute, &raw mut place, address)) }?;
    Ok(kind)
}
