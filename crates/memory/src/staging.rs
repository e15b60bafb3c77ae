//! Copies of large pageable memory at the speed of pinned memory.
//!
//! The driver copies from and to an ordinary slice through one small pinned block and one thread. Here several threads do the same,
//! each over a lane of its own: a stream, and two pinned blocks that take turns, so that one is copied by the processor while the
//! other is copied by the device.
//!
//! - The lanes belong to the context. They are made when they are needed first, there are never more than
//!   [`StagingOptions::lanes`] of them, and copies that run at the same time share them.
//! - The calling thread serves one lane. The threads for the others belong to the context, and sleep between copies: to start threads takes
//!   as long as to copy some megabytes.
//! - The parts of a copy are short at first and grow ([`job`]), so that the device does not wait for a whole block.
//! - The driver copies by itself where that is faster or staging is impossible: small copies, memory that is pinned already, streams that
//!   are being captured, copies in the middle of another access, and copies that find no lane free or no pinned memory left.

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

/// The staging lanes of one [`Context`] and its clones. Another retention of the same primary context has its own lanes and options.
pub struct Staging {
    /// A weak reference, because the context owns this value.
    context: Context,
    /// The threshold of the options, stored separately so that small copies read it without a lock.
    threshold: AtomicUsize,
    pool: Mutex<Pool>,
}

struct Pool {
    options: StagingOptions,
    idle: Vec<Lane>,
    /// The threads; `None` until a copy needs them.
    threads: Option<Arc<ThreadPool>>,
    /// The number of lanes, in use or not.
    lanes: usize,
    /// Incremented when the options change: lanes of earlier options are not reused.
    generation: u64,
}

/// The lanes of one copy, which are returned to the pool when it ends.
struct Lanes {
    staging: Arc<Staging>,
    lanes: Vec<Lane>,
    /// `None` until there are enough lanes.
    threads: Option<Arc<ThreadPool>>,
    lengths: Lengths,
}

/// Enqueues a part of a copy on the stream of a lane as an access to the device's memory.
pub(crate) trait Access: Fn(&Stream, &mut dyn FnMut() -> Result<()>) -> Result<()> + Sync {}

impl<F: Fn(&Stream, &mut dyn FnMut() -> Result<()>) -> Result<()> + Sync> Access for F {}

/// The maximum number of lanes of a context: more exceed the memory bandwidth. There are as many threads, so that copies which an
/// observer makes within others never wait for a thread that waits for them.
const MOST_LANES: usize = 64;

impl Staging {
    /// Returns the options of a context.
    #[must_use]
    #[inline]
    pub fn options(context: &Context) -> StagingOptions {
        Self::of(context).pool.lock().options
    }

    /// Changes the options of a context. Running copies keep their options.
    ///
    /// # Errors
    ///
    /// An argument error if a block has no bytes.
    #[inline]
    pub fn set_options(context: &Context, options: StagingOptions) -> Result<()> {
        if options.block_bytes == 0 {
            return Err(Error::argument("Staging::set_options", "a block of 0 bytes holds nothing"));
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

    /// Returns the pinned memory that a context holds for staging, in bytes.
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
        // SAFETY: lanes, which hold what is made from the context, are in the pool or in a `Lanes`, which borrows nothing but is dropped
        // by copies before they return, as is this value by every caller; all of them borrow the context meanwhile.
        unsafe { context.attached(make) }
    }

    /// Returns a free lane, or a new one if there may be one more and there is memory for it. Without a lane the driver's own way is left,
    /// which reports what is wrong if that fails as well.
    #[inline]
    fn lane(&self) -> Option<Lane> {
        let (generation, block_bytes) = {
            let mut pool = self.pool.lock();
            // Lanes of earlier options are dropped when the options change or when they are put back.
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

    /// Returns lanes to the pool. Lanes that failed, and lanes of earlier options, are dropped.
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

/// Copies `source` to the device in place of a copy on `stream` that is waited for, if that is faster; `None` if it is not, and
/// nothing was done. Each part of the copy is enqueued by `access`, which orders a lane's stream first.
///
/// # Safety
///
/// `target` is the address of as many live bytes, which may be written by streams that `access` has ordered.
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

/// Copies from the device to `target` in place of a copy on `stream` that is waited for, if that is faster; `None` if it is not, and
/// nothing was done. Each part of the copy is enqueued by `access`, which orders a lane's stream first. If it succeeds, all of `target` is
/// initialized.
///
/// # Safety
///
/// `source` is the address of as many live bytes, which may be read by streams that `access` has ordered.
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
    /// Lanes for a copy of `bytes` bytes between the device and `host`, in place of one on `stream`; none if that is better left to the
    /// driver.
    #[inline]
    fn take(stream: &Stream, host: *const c_void, bytes: usize, direction: Direction) -> Option<Self> {
        let staging = Staging::of(stream.context());
        if bytes < staging.threshold.load(Ordering::Relaxed) {
            return None;
        }
        // The worker threads would wait for a launch that waits for the access around this copy.
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
        // Creating a lane must not invalidate the captures of other threads.
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

    /// Copies `source` to the device. Waits until the copy is done.
    ///
    /// # Safety
    ///
    /// `target` is the address of as many live bytes, which the lanes' streams may write under `access`.
    #[inline]
    unsafe fn upload(mut self, target: CUdeviceptr, source: &[u8], access: &impl Access) -> Result<()> {
        let job = self.job(source);
        // SAFETY: the caller guarantees the target, and the parts lie at these offsets within `source`.
        self.run(|lane| unsafe { lane.upload(target, &job, access) })
    }

    /// Copies from the device to `target`. Waits until the copy is done; all of `target` is initialized if it succeeds.
    ///
    /// # Safety
    ///
    /// `source` is the address of as many live bytes, which the lanes' streams may read under `access`.
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

    /// Runs `work` with every lane: one on the calling thread, the others on worker threads. A lane that gets no thread in
    /// time finds nothing left to do: the others copy its parts.
    #[inline]
    fn run(&mut self, work: impl Fn(&mut Lane) -> Result<()> + Sync) -> Result<()> {
        let Some((own, others)) = self.lanes.split_first_mut() else { return Ok(()) };
        let Some(threads) = &self.threads else { return work(own) };
        if rayon_core::current_thread_index().is_some() {
            // A thread of the caller's own pool would run other jobs of that pool while it waits.
            return thread::scope(|scope| {
                let serve = || serve(threads, own, others, &work);
                scope.spawn(serve).join().unwrap_or_else(|payload| resume_unwind(payload))
            });
        }
        serve(threads, own, others, &work)
    }
}

/// Runs `work` with all lanes: the calling thread serves its `own`.
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

/// Returns `true` if work on `stream` is captured instead of run, or if the driver fails to report it: the driver's own copy reports why.
#[inline]
fn is_capturing(stream: &Stream) -> bool {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: `status` is a valid place for the answer, and the stream is live.
    let asked = unsafe { call!(stream.driver(), cuStreamIsCapturing(stream.as_raw(), &raw mut status)) };
    asked.is_err() || status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// Returns `true` if the driver knows neither end of this host memory. Memory that it knows is pinned or managed, and copied directly.
#[inline]
fn is_pageable(driver: &Driver, host: *const c_void, bytes: usize) -> bool {
    let ends = [host.addr(), host.addr() + bytes - 1];
    ends.into_iter().all(|address| memory_type(driver, address as CUdeviceptr).is_ok_and(|kind| kind == 0))
}

/// Returns the kind of memory at an address: 0 if the driver does not support it.
#[inline]
fn memory_type(driver: &Driver, address: CUdeviceptr) -> Result<u32> {
    let mut kind = 0_u32;
    let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut place: *mut c_void = (&raw mut kind).cast();
    // SAFETY: there is one attribute and one valid place for its value, and any address may be asked for.
    unsafe { call!(driver, cuPointerGetAttributes(1, &raw mut attribute, &raw mut place, address)) }?;
    Ok(kind)
}
