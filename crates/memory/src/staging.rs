//! Staged copies: copies of large pageable memory at the speed of pinned memory.
//!
//! The driver copies a slice through a small pinned block with one thread. Here several threads
//! copy tiles of the slice to or from a staging buffer ([`ring`]), while the device copies batches
//! of consecutive tiles on one stream ([`progress`]).
//!
//! - The staging buffers belong to the context. They are allocated on demand, one for each of two
//!   concurrent copies.
//! - The calling thread copies too. The other threads belong to the context and sleep between
//!   copies, because starting a thread takes as long as copying several megabytes.
//! - Tiles are copied to unused slots of the staging buffer with stores that bypass the CPU's
//!   caches ([`past_cache`]).
//! - The driver's own copy is used where it is faster or staging is impossible: for pinned memory,
//!   streams that are being captured, copies within another access or another staged copy, and
//!   copies that find no free staging buffer or no pinned memory.
//!
//! Small copies pass through bounce buffers ([`bounce`]).

mod bounce;
mod direction;
mod options;
mod past_cache;
mod progress;
mod ring;

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::hazard::{Operation, is_nested};
use curium_driver::sys::{CUdeviceptr, CUpointer_attribute};
use curium_driver::{Context, Driver, Error, Result, Stream, call};
use parking_lot::Mutex;
use rayon_core::{Scope, ThreadPool, ThreadPoolBuilder};

pub(crate) use self::bounce::Bounce;
use self::bounce::BouncePool;
pub(crate) use self::direction::Direction;
pub use self::options::StagingOptions;
use self::ring::Ring;

/// The staging buffers of one [`Context`] and its clones. Another retention of the same primary
/// context has its own buffers and options.
pub struct Staging {
    /// A weak reference, because the context owns this value.
    context: Context,
    /// The threshold from the options, stored separately so that small copies read it without a
    /// lock.
    threshold: AtomicUsize,
    /// The maximum sizes of copies through bounce buffers, by direction, from the options.
    upload_bounce_bytes: AtomicUsize,
    download_bounce_bytes: AtomicUsize,
    pool: Mutex<Pool>,
    bounce: Mutex<BouncePool>,
}

struct Pool {
    options: StagingOptions,
    idle: Vec<Ring>,
    /// The threads; `None` until a copy requires them.
    threads: Option<Arc<ThreadPool>>,
    /// The number of staging buffers, including those in use.
    rings: usize,
    /// Incremented when the options change. Staging buffers of an older generation are not reused.
    generation: u64,
}

/// The staging buffer and the threads of one copy, which return to the pool when it ends.
struct Staged {
    staging: Arc<Staging>,
    /// `None` once it has been returned.
    ring: Option<Ring>,
    pool: Arc<ThreadPool>,
    direction: Direction,
    /// The number of threads of the copy, including the calling thread.
    threads: usize,
}

thread_local! {
    /// `true` while this thread takes part in a staged copy.
    static IS_STAGING: Cell<bool> = const { Cell::new(false) };
}

/// Enqueues a part of a copy on the stream of a staging buffer, as an access to the device memory.
pub(crate) trait Access:
    Fn(&Stream, &mut dyn FnMut(&Operation<'_>) -> Result<()>) -> Result<()> + Sync
{
}

impl<F: Fn(&Stream, &mut dyn FnMut(&Operation<'_>) -> Result<()>) -> Result<()> + Sync> Access
    for F
{
}

/// The maximum number of threads of a copy. This many saturate the memory bandwidth.
const MAX_THREADS: usize = 64;

/// The maximum number of staging buffers of a context. Two copies, one in each direction, saturate
/// the bus.
const MAX_RINGS: usize = 2;

impl Staging {
    /// Returns the staging options of a context.
    #[must_use]
    #[inline]
    pub fn options(context: &Context) -> StagingOptions {
        Self::for_context(context).pool.lock().options
    }

    /// Sets the staging options of a context. Copies in progress keep their options.
    ///
    /// # Errors
    ///
    /// An argument error if the size of the buffers is 0.
    pub fn set_options(context: &Context, options: StagingOptions) -> Result<()> {
        if options.buffer_bytes == 0 {
            return Err(Error::argument("Staging::set_options", "zero buffer size"));
        }
        let staging = Self::for_context(context);
        let mut pool = staging.pool.lock();
        pool.options = options;
        staging
            .threshold
            .store(options.threshold, Ordering::Relaxed);
        staging
            .upload_bounce_bytes
            .store(options.upload_bounce_bytes, Ordering::Relaxed);
        staging
            .download_bounce_bytes
            .store(options.download_bounce_bytes, Ordering::Relaxed);
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
    pub fn trim(context: &Context) {
        let staging = Self::for_context(context);
        let idle = {
            let mut pool = staging.pool.lock();
            pool.rings -= pool.idle.len();
            std::mem::take(&mut pool.idle)
        };
        drop(idle);
        staging.trim_bounce_buffers();
    }

    /// Returns the size of the idle staging buffers of a context, in bytes. Buffers in use by a
    /// copy are not counted.
    #[must_use]
    #[inline]
    pub fn byte_len(context: &Context) -> usize {
        Self::for_context(context)
            .pool
            .lock()
            .idle
            .iter()
            .map(Ring::byte_len)
            .sum()
    }

    fn for_context(context: &Context) -> Arc<Self> {
        let make = |context| {
            let options = StagingOptions::new();
            let pool = Pool {
                options,
                idle: Vec::new(),
                threads: None,
                rings: 0,
                generation: 0,
            };
            Self {
                context,
                threshold: AtomicUsize::new(options.threshold),
                upload_bounce_bytes: AtomicUsize::new(options.upload_bounce_bytes),
                download_bounce_bytes: AtomicUsize::new(options.download_bounce_bytes),
                pool: Mutex::new(pool),
                bounce: Mutex::default(),
            }
        };
        // SAFETY: the objects created from the context belong to staging buffers, which are in the
        // pool or in a `Staged`. Every copy drops its `Staged`, and every caller drops this value,
        // while it borrows the context.
        unsafe { context.attached(make) }
    }

    /// Returns the maximum size in bytes of a copy through a bounce buffer.
    #[inline]
    fn bounce_bytes(&self, direction: Direction) -> usize {
        match direction {
            Direction::ToDevice => &self.upload_bounce_bytes,
            Direction::ToHost => &self.download_bounce_bytes,
        }
        .load(Ordering::Relaxed)
    }

    /// Returns a free staging buffer for a copy of `copied` bytes, or a new one if the maximum is
    /// not reached and there is enough memory. Without one, the driver's own copy is used, which
    /// reports the problem if it fails too.
    fn ring(&self, copied: usize) -> Option<Ring> {
        let (generation, bytes, shorter) = {
            let mut pool = self.pool.lock();
            let generation = pool.generation;
            let longest = pool.options.buffer_bytes;
            // The memory grows with the copies of the program, to the size in the options.
            let bytes = copied
                .checked_next_power_of_two()
                .map_or(longest, |enough| enough.min(longest));
            // Buffers of an older generation are dropped when the options change or when they are
            // put back.
            let index = pool
                .idle
                .iter()
                .rposition(|ring| ring.generation() == generation && ring.byte_len() >= bytes);
            if let Some(index) = index {
                return Some(pool.idle.swap_remove(index));
            }
            let shorter = pool.idle.pop();
            if shorter.is_none() {
                if pool.rings >= MAX_RINGS {
                    return None;
                }
                pool.rings += 1;
            }
            (generation, bytes, shorter)
        };
        // This must not invalidate captures on other threads.
        let ring = with_relaxed_capture_mode(self.context.driver(), || {
            drop(shorter);
            Ring::new(&self.context, bytes, generation)
        })
        .ok();
        if ring.is_none() {
            self.pool.lock().rings -= 1;
        }
        ring
    }

    /// Returns the worker threads, which the first copy starts.
    fn threads(&self) -> Option<Arc<ThreadPool>> {
        let mut pool = self.pool.lock();
        if pool.threads.is_none() {
            let threads = ThreadPoolBuilder::new().num_threads(
                pool.options
                    .threads
                    .saturating_sub(1)
                    .clamp(1, MAX_THREADS - 1),
            );
            let threads = threads.thread_name(|index| format!("curium-staging-{index}"));
            pool.threads = threads.build().ok().map(Arc::new);
        }
        pool.threads.clone()
    }

    /// Returns a staging buffer to the pool. Those of failed copies and of an older generation are
    /// dropped.
    fn return_ring(&self, ring: Ring) {
        let mut pool = self.pool.lock();
        if ring.is_sound() && ring.generation() == pool.generation {
            pool.idle.push(ring);
            return;
        }
        pool.rings -= 1;
        drop(pool);
        drop(ring);
    }
}

/// Copies `source` to the device in place of a synchronous copy on `stream`. Returns `None`,
/// without copying, if that is not faster. `access` enqueues each part, after ordering the staging
/// buffer's stream.
///
/// # Safety
///
/// `target` is the address of live memory of the same size, which streams ordered by `access` may
/// write.
pub(crate) unsafe fn upload(
    stream: &Stream,
    target: CUdeviceptr,
    source: &[u8],
    access: impl Access,
) -> Option<Result<()>> {
    let mut staged = Staged::take(
        stream,
        source.as_ptr().cast(),
        source.len(),
        Direction::ToDevice,
    )?;
    // SAFETY: the caller guarantees the target.
    Some(staged.copy(|ring, run| unsafe { ring.upload(target, source, &access, run) }))
}

/// Copies from the device to `target` in place of a synchronous copy on `stream`. Returns `None`,
/// without copying, if that is not faster. `access` enqueues each part, after ordering the staging
/// buffer's stream. On success, all of `target` is initialized.
///
/// # Safety
///
/// `source` is the address of live memory of the same size, which streams ordered by `access` may
/// read.
pub(crate) unsafe fn download(
    stream: &Stream,
    target: &mut [MaybeUninit<u8>],
    source: CUdeviceptr,
    access: impl Access,
) -> Option<Result<()>> {
    let mut staged = Staged::take(
        stream,
        target.as_ptr().cast(),
        target.len(),
        Direction::ToHost,
    )?;
    // SAFETY: the caller guarantees the source.
    Some(staged.copy(|ring, run| unsafe { ring.download(target, source, &access, run) }))
}

impl Staged {
    /// Takes a staging buffer for a copy of `bytes` bytes between the device and `host`, in place
    /// of a copy on `stream`. Returns `None` if the driver's own copy is preferable.
    fn take(
        stream: &Stream,
        host: *const c_void,
        bytes: usize,
        direction: Direction,
    ) -> Option<Self> {
        let staging = Staging::for_context(stream.context());
        if bytes < staging.threshold.load(Ordering::Relaxed) {
            return None;
        }
        // Within another access or a launch, the threads could wait for a launch that waits for it.
        // Within another staged copy, they could wait for a tile that this thread has claimed.
        if is_nested() || IS_STAGING.get() {
            return None;
        }
        let most = direction.max_threads(bytes);
        let threads = staging.pool.lock().options.threads.min(most);
        if threads < direction.enough()
            || stream.is_capturing().unwrap_or(true)
            || !is_pageable(stream.driver(), host, bytes)
        {
            return None;
        }
        let pool = staging.threads()?;
        let ring = staging.ring(bytes)?;
        let threads = threads.min(ring.tiles(direction, bytes));
        Some(Self {
            staging,
            ring: Some(ring),
            pool,
            direction,
            threads,
        })
    }

    /// Runs `copy` with the staging buffer, and with a function that runs another one on all
    /// threads of the copy. A thread that starts late finds no tile left, because the others have
    /// copied them.
    fn copy(
        &mut self,
        copy: impl FnOnce(&mut Ring, &dyn Fn(&(dyn Fn() + Sync))) -> Result<()>,
    ) -> Result<()> {
        let pool = &self.pool;
        let direction = self.direction;
        let others = self.threads - 1;
        let run = |serve: &(dyn Fn() + Sync)| {
            let serve = || {
                IS_STAGING.set(true);
                let _end = EndOfStaging;
                serve();
            };
            // If the caller is itself a worker of a thread pool, it would run other jobs of its
            // pool while it waits.
            if rayon_core::current_thread_index().is_some() {
                thread::scope(|scope| {
                    scope
                        .spawn(|| on_all_threads(pool, direction, others, &serve))
                        .join()
                        .unwrap_or_else(|payload| resume_unwind(payload));
                });
            } else {
                on_all_threads(pool, direction, others, &serve);
            }
        };
        self.ring.as_mut().map_or(Ok(()), |ring| copy(ring, &run))
    }
}

/// Runs `serve` on the calling thread and on `others` threads of the pool.
fn on_all_threads(
    pool: &ThreadPool,
    direction: Direction,
    others: usize,
    serve: &(dyn Fn() + Sync),
) {
    pool.in_place_scope(|scope| {
        match direction {
            // All tiles can be copied at once, so each thread is woken as early as possible.
            Direction::ToDevice => (0..others).for_each(|_| scope.spawn(|_| serve())),
            // The device copies first, and this thread enqueues the first batches.
            Direction::ToHost => wake(scope, others, serve),
        }
        serve();
    });
}

/// Runs `serve` on `count` threads, of which the calling thread wakes two, and each of these two
/// others.
fn wake<'a>(scope: &Scope<'a>, count: usize, serve: &'a (dyn Fn() + Sync)) {
    for count in [count / 2, count.div_ceil(2)]
        .into_iter()
        .filter(|count| *count > 0)
    {
        scope.spawn(move |scope| {
            wake(scope, count - 1, serve);
            serve();
        });
    }
}

/// Ends the part of this thread in a staged copy.
struct EndOfStaging;

impl Drop for EndOfStaging {
    fn drop(&mut self) {
        IS_STAGING.set(false);
    }
}

impl Drop for Staged {
    #[inline]
    fn drop(&mut self) {
        if let Some(ring) = self.ring.take() {
            self.staging.return_ring(ring);
        }
    }
}

/// Returns `true` if both ends of this host memory are unknown to the driver. Other memory is
/// pinned or managed, and is copied directly.
#[inline]
fn is_pageable(driver: &Driver, host: *const c_void, bytes: usize) -> bool {
    let ends = [host.addr(), host.addr() + bytes - 1];
    ends.into_iter()
        .all(|address| memory_type(driver, address as CUdeviceptr).is_ok_and(|kind| kind == 0))
}

/// Returns the type of memory at an address; 0 if it is unknown to the driver.
fn memory_type(driver: &Driver, address: CUdeviceptr) -> Result<u32> {
    let mut kind = 0_u32;
    let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut output: *mut c_void = (&raw mut kind).cast();
    // SAFETY: there is one attribute with an output pointer that is valid for writes, and any
    // address may be queried.
    unsafe {
        call!(
            driver,
            cuPointerGetAttributes(1, &raw mut attribute, &raw mut output, address)
        )
    }?;
    Ok(kind)
}
