//! A staging buffer: pinned memory that the tiles of a copy use in turns, and a stream.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Context, Event, EventFlags, Result, Stream};
use parking_lot::Mutex;

use super::Access;
use super::direction::{Direction, SHORTEST_TILE};
use super::past_cache::copy_past_cache;
use super::progress::{Progress, Size, Split};
use crate::enqueue;
use crate::{PinnedBuffer, PinnedFlags, wait};

/// A staging buffer, used by one copy at a time.
pub(super) struct Ring {
    stream: Stream,
    memory: PinnedBuffer<u8>,
    /// One event for each slot of the shortest length, recorded after each batch that ends with the
    /// slot.
    events: Vec<Event>,
    generation: u64,
    /// `true` if all work on the stream is known to have completed.
    is_sound: bool,
}

/// The minimum number of slots of a staging buffer of several bytes.
const FEWEST_SLOTS: usize = 8;

/// Calls the function that it is given once or more often, on any threads, and returns when all
/// calls have returned.
pub(super) trait Run: FnOnce(&(dyn Fn() + Sync)) {}

impl<F: FnOnce(&(dyn Fn() + Sync))> Run for F {}

impl Ring {
    /// Creates a staging buffer of `bytes` bytes, which must not be 0.
    pub(super) fn new(context: &Context, bytes: usize, generation: u64) -> Result<Self> {
        let slots = bytes / tile_length(bytes, SHORTEST_TILE);
        let events = (0..slots)
            .map(|_| Event::new(context, EventFlags::DISABLE_TIMING))
            .collect::<Result<_>>()?;
        let memory = PinnedBuffer::zeroed(context, bytes, PinnedFlags::empty())?;
        Ok(Self {
            stream: context.stream()?,
            memory,
            events,
            generation,
            is_sound: true,
        })
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Returns the size of the pinned memory in bytes.
    #[inline]
    pub(super) fn byte_len(&self) -> usize {
        self.memory.len()
    }

    /// Returns the number of tiles of a copy of `bytes` bytes.
    #[inline]
    pub(super) fn tiles(&self, direction: Direction, bytes: usize) -> usize {
        bytes.div_ceil(tile_length(self.byte_len(), direction.tile()))
    }

    /// Copies `source` to the device on the threads of `run`, and waits until the copy has
    /// completed.
    ///
    /// # Safety
    ///
    /// `target` is the address of live memory of the same size, which this stream may write under
    /// `access`.
    pub(super) unsafe fn upload(
        &mut self,
        target: CUdeviceptr,
        source: &[u8],
        access: &impl Access,
        run: impl Run,
    ) -> Result<()> {
        let enqueue = |operation: &Operation<'_>, staged: *mut u8, offset: usize, bytes| {
            // SAFETY: the caller guarantees the target; `staged` has this many bytes, and is not
            // accessed until the event recorded after the copy has completed.
            unsafe {
                enqueue::to_device(
                    operation,
                    target + offset as CUdeviceptr,
                    staged.cast_const().cast(),
                    bytes,
                )
            }
        };
        self.copy(
            Direction::ToDevice,
            source,
            source.len(),
            stage,
            access,
            enqueue,
            run,
        )
    }

    /// Copies from the device to `target` on the threads of `run`, and waits until the copy has
    /// completed. On success, all of `target` is initialized.
    ///
    /// # Safety
    ///
    /// `source` is the address of live memory of the same size, which this stream may read under
    /// `access`.
    pub(super) unsafe fn download(
        &mut self,
        target: &mut [MaybeUninit<u8>],
        source: CUdeviceptr,
        access: &impl Access,
        run: impl Run,
    ) -> Result<()> {
        let bytes = target.len();
        let enqueue = |operation: &Operation<'_>, staged: *mut u8, offset: usize, bytes| {
            // SAFETY: the caller guarantees the source; `staged` has room for this many bytes, and
            // is not accessed until the event recorded after the copy has completed.
            unsafe {
                enqueue::to_host(
                    operation,
                    staged.cast(),
                    source + offset as CUdeviceptr,
                    bytes,
                )
            }
        };
        self.copy(
            Direction::ToHost,
            target,
            bytes,
            unstage,
            access,
            enqueue,
            run,
        )
    }

    /// Copies `slice`. `copy_tile` copies from or to a slot; its last argument is `true` if the
    /// slot is used for the first time. `enqueue` receives the slots of a batch, the offset in the
    /// slice and the number of bytes.
    #[expect(
        clippy::too_many_arguments,
        reason = "the two directions differ in all of them"
    )]
    fn copy<S: Split + Send>(
        &mut self,
        direction: Direction,
        slice: S,
        bytes: usize,
        copy_tile: impl Fn(&mut [u8], S, bool) + Sync,
        access: &impl Access,
        enqueue: impl Fn(&Operation<'_>, *mut u8, usize, usize) -> Result<()> + Sync,
        run: impl Run,
    ) -> Result<()> {
        self.is_sound = false;
        let tile = tile_length(self.byte_len(), direction.tile());
        let size = Size {
            tile,
            tiles: self.tiles(direction, bytes),
            slots: self.byte_len() / tile,
        };
        let job = Job {
            stream: &self.stream,
            events: &self.events,
            slots: Slots {
                start: self.memory.as_mut_ptr(),
                tile,
                count: size.slots,
            },
            progress: Progress::new(direction, slice, size),
            bytes,
            result: Mutex::new(Ok(())),
        };
        let serve = || job.serve(&copy_tile, access, &enqueue);
        let copied = catch_unwind(AssertUnwindSafe(|| run(&serve)));
        let result = job.result.into_inner();
        // Neither the staging buffer nor the device memory may be freed while the device copies,
        // and no other code tracks this stream.
        let waited = wait::until_done(&self.stream);
        copied.unwrap_or_else(|payload| resume_unwind(payload));
        let result = result.and(waited);
        self.is_sound = result.is_ok();
        result
    }
}

/// Returns the length of a tile in a staging buffer of `bytes` bytes, up to `longest`.
fn tile_length(bytes: usize, longest: usize) -> usize {
    (bytes / FEWEST_SLOTS).clamp(1, longest)
}

/// Copies to a slot. While the slots are unused, the device reads each soon after it is written.
/// Later it lags behind, the tiles have left the caches of the cores, and bypassing the shared
/// cache would be slower.
fn stage(slot: &mut [u8], source: &[u8], is_first_use: bool) {
    if is_first_use {
        copy_past_cache(slot, source);
    } else {
        slot.copy_from_slice(source);
    }
}

/// Copies from a slot.
fn unstage(slot: &mut [u8], target: &mut [MaybeUninit<u8>], _: bool) {
    // SAFETY: initialized bytes are valid as `MaybeUninit<u8>`, which has the same layout, and the
    // borrow is the same.
    let staged =
        unsafe { slice::from_raw_parts(slot.as_ptr().cast::<MaybeUninit<u8>>(), slot.len()) };
    target.copy_from_slice(staged);
}

/// One copy through a staging buffer.
struct Job<'ring, S> {
    stream: &'ring Stream,
    events: &'ring [Event],
    slots: Slots,
    progress: Progress<S>,
    /// The size of the copy.
    bytes: usize,
    /// The first error.
    result: Mutex<Result<()>>,
}

impl<S: Split> Job<'_, S> {
    /// Copies tiles and enqueues batches until no tile is left or the copy has failed.
    fn serve(
        &self,
        copy_tile: &impl Fn(&mut [u8], S, bool),
        access: &impl Access,
        enqueue: &impl Fn(&Operation<'_>, *mut u8, usize, usize) -> Result<()>,
    ) {
        let stop = StopOnDrop(&self.progress);
        if let Err(error) = self.copy_tiles(copy_tile, access, enqueue) {
            let mut result = self.result.lock();
            if result.is_ok() {
                *result = Err(error);
            }
        } else {
            std::mem::forget(stop);
        }
    }

    fn copy_tiles(
        &self,
        copy_tile: &impl Fn(&mut [u8], S, bool),
        access: &impl Access,
        enqueue: &impl Fn(&Operation<'_>, *mut u8, usize, usize) -> Result<()>,
    ) -> Result<()> {
        loop {
            while let Some(batch) = self.progress.next_batch() {
                self.enqueue(batch, access, enqueue)?;
            }
            let Some(tile) = self.progress.claim() else {
                return Ok(());
            };
            if let Some(slot) = tile.wait_for {
                self.events[slot].synchronize()?;
            }
            let bytes = self
                .slots
                .tile
                .min(self.bytes - tile.index * self.slots.tile);
            // SAFETY: the tile is this thread's until it is finished, and the event shows that the
            // device has completed its last copy from or to the slot.
            let slot = unsafe { self.slots.get(tile.index, bytes) };
            copy_tile(slot, tile.part, tile.wait_for.is_none());
            self.progress.finish(tile.index);
        }
    }

    fn enqueue(
        &self,
        batch: Range<usize>,
        access: &impl Access,
        enqueue: &impl Fn(&Operation<'_>, *mut u8, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let offset = batch.start * self.slots.tile;
        let bytes = (batch.end * self.slots.tile).min(self.bytes) - offset;
        let staged = self.slots.address(batch.start);
        access(self.stream, &mut |operation| {
            enqueue(operation, staged, offset, bytes)?;
            self.events[(batch.end - 1) % self.slots.count].record(self.stream)
        })?;
        self.progress.enqueued(batch);
        Ok(())
    }
}

/// Stops a copy whose thread fails or panics, so that no other thread waits for it.
struct StopOnDrop<'job, S: Split>(&'job Progress<S>);

impl<S: Split> Drop for StopOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The slots of a staging buffer, shared by the threads of a copy.
struct Slots {
    start: *mut u8,
    /// The length of a slot in bytes.
    tile: usize,
    count: usize,
}

// SAFETY: the memory belongs to the staging buffer, which the copy borrows exclusively;
// `Slots::get` is unsafe.
unsafe impl Sync for Slots {}

impl Slots {
    /// Returns the address of the slot of a tile.
    fn address(&self, tile: usize) -> *mut u8 {
        self.start.wrapping_add(tile % self.count * self.tile)
    }

    /// Returns the first `bytes` bytes of the slot of a tile.
    ///
    /// # Safety
    ///
    /// Neither the device nor another thread accesses the slot, and `bytes` is at most its length.
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller guarantees that the slot is not shared"
    )]
    unsafe fn get(&self, tile: usize, bytes: usize) -> &mut [u8] {
        // SAFETY: the slot lies in the staging buffer, which is initialized, and the caller
        // guarantees exclusive access.
        unsafe { slice::from_raw_parts_mut(self.address(tile), bytes) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use curium_driver::Driver;
    use curium_sim::{Config, Simulator};

    use super::*;

    fn context() -> Context {
        let simulator = Simulator::new(Config::new()).expect("failed to create a simulator");
        let driver = simulator
            .driver::<Driver>()
            .expect("the simulator initializes");
        driver
            .device(0)
            .and_then(|device| device.primary_context())
            .expect("no device")
    }

    /// Small buffers have eight slots; buffers of a few bytes have one slot per byte.
    #[test]
    fn small_staging_buffers_have_fewer_slots() {
        let context = context();
        let mut sizes = vec![(1, 1), (7, 7), (4096, 8)];
        if !cfg!(miri) {
            sizes.push((8 << 20, 64));
        }
        for (bytes, slots) in sizes {
            let ring = Ring::new(&context, bytes, 0).expect("failed to create a staging buffer");
            assert_eq!((ring.events.len(), ring.byte_len()), (slots, bytes));
        }
    }

    #[test]
    fn copy_that_panics_waits_for_its_stream() {
        let context = context();
        let mut ring = Ring::new(&context, 4096, 0).expect("failed to create a staging buffer");
        static HAS_RUN: AtomicBool = AtomicBool::new(false);
        let access = |stream: &Stream, _: &mut dyn FnMut(&Operation<'_>) -> Result<()>| {
            let _ran = stream.launch_host_function(|| {
                std::thread::sleep(Duration::from_millis(50));
                HAS_RUN.store(true, Ordering::Release);
            })?;
            panic!("this panic is part of the test")
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: nothing is copied, because `access` panics first.
            unsafe { ring.upload(0, &[0; 4096], &access, |serve: &(dyn Fn() + Sync)| serve()) }
        }));
        assert!(
            panicked.is_err() && HAS_RUN.load(Ordering::Acquire),
            "the work on the stream is done"
        );
        assert!(!ring.is_sound());
    }
}
