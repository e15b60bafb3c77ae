//! A staging lane: a stream and two alternating pinned blocks.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Context, Event, EventFlags, Result, Stream};

use super::Access;
use super::job::{Job, Split};
use crate::copy::host;
use crate::{PinnedBuffer, PinnedFlags, wait};

/// A stream and two pinned blocks, used by one copy at a time.
pub(super) struct Lane {
    stream: Stream,
    blocks: [Block; 2],
    generation: u64,
    /// `true` if all work on the stream is known to have completed.
    is_sound: bool,
}

/// A pinned block, and the event of its last device access.
struct Block {
    memory: PinnedBuffer<u8>,
    done: Event,
}

impl Lane {
    #[inline]
    pub(super) fn new(context: &Context, block_bytes: usize, generation: u64) -> Result<Self> {
        let blocks = [Block::new(context, block_bytes)?, Block::new(context, block_bytes)?];
        Ok(Self { stream: context.stream()?, blocks, generation, is_sound: true })
    }

    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Returns the size of a block in bytes.
    #[inline]
    pub(super) fn block_bytes(&self) -> usize {
        self.blocks[0].memory.len()
    }

    /// Returns the pinned memory in bytes.
    #[inline]
    pub(super) fn byte_len(&self) -> usize {
        self.blocks.iter().map(|block| block.memory.len()).sum()
    }

    /// Copies parts of `job` to the device until none is left, and waits for them.
    ///
    /// # Safety
    ///
    /// `target` is the address of live memory that covers all parts, which this stream may write under `access`. No
    /// part is longer than a block.
    #[inline]
    pub(super) unsafe fn upload(&mut self, target: CUdeviceptr, job: &Job<&[u8]>, access: &impl Access) -> Result<()> {
        // SAFETY: the caller guarantees the target.
        self.work(job, |lane| unsafe { lane.upload_parts(target, job, access) })
    }

    /// Copies parts of `job` from the device until none is left, and waits for them.
    ///
    /// # Safety
    ///
    /// `source` is the address of live memory that covers all parts, which this stream may read under `access`. No part
    /// is longer than a block.
    #[inline]
    pub(super) unsafe fn download(
        &mut self,
        source: CUdeviceptr,
        job: &Job<&mut [MaybeUninit<u8>]>,
        access: &impl Access,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the source.
        self.work(job, |lane| unsafe { lane.download_parts(source, job, access) })
    }

    /// Runs `copy`, and always waits for the stream, since the device may be accessing the blocks.
    #[inline]
    fn work<S: Split>(&mut self, job: &Job<S>, copy: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.is_sound = false;
        let copied = catch_unwind(AssertUnwindSafe(|| copy(self)));
        // Neither the blocks nor the device memory may be freed while the device copies, and no other code tracks this
        // stream.
        let waited = wait::until_done(&self.stream);
        let result = copied.unwrap_or_else(|payload| resume_unwind(payload)).and(waited);
        match result {
            Ok(()) => self.is_sound = true,
            Err(_) => job.stop(),
        }
        result
    }

    /// # Safety
    ///
    /// As for [`Lane::upload`].
    #[inline]
    unsafe fn upload_parts(&mut self, target: CUdeviceptr, job: &Job<&[u8]>, access: &impl Access) -> Result<()> {
        for turn in 0.. {
            let Some((offset, part)) = job.next() else { break };
            let block = &mut self.blocks[turn % 2];
            block.done.synchronize()?;
            block.memory[..part.len()].copy_from_slice(part);
            let (stream, from, to) = (&self.stream, block.memory.as_ptr().cast(), target + offset as CUdeviceptr);
            // SAFETY: the caller guarantees the target; the block holds this many bytes, and is not accessed until the
            // event recorded after the copy has completed.
            access(stream, &mut || unsafe { host::to_device(stream, to, from, part.len()) })?;
            block.done.record(stream)?;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Lane::download`].
    #[inline]
    unsafe fn download_parts(
        &mut self,
        source: CUdeviceptr,
        job: &Job<&mut [MaybeUninit<u8>]>,
        access: &impl Access,
    ) -> Result<()> {
        let mut pending: [Option<&mut [MaybeUninit<u8>]>; 2] = [None, None];
        for turn in 0.. {
            let (block, pending) = (&mut self.blocks[turn % 2], &mut pending[turn % 2]);
            if let Some(part) = pending.take() {
                block.give(part)?;
            } else if turn >= 2 {
                // Both blocks are empty, and no part was left for either.
                break;
            }
            let Some((offset, part)) = job.next() else { continue };
            let place = block.memory[..part.len()].as_mut_ptr().cast();
            let (stream, to, from) = (&self.stream, place, source + offset as CUdeviceptr);
            // SAFETY: the caller guarantees the source; the block has room for this many bytes, and is not accessed
            // until the event recorded after the copy has completed.
            access(stream, &mut || unsafe { host::to_host(stream, to, from, part.len()) })?;
            block.done.record(stream)?;
            *pending = Some(part);
        }
        Ok(())
    }
}

impl Block {
    #[inline]
    fn new(context: &Context, bytes: usize) -> Result<Self> {
        let memory = PinnedBuffer::zeroed(context, bytes, PinnedFlags::empty())?;
        Ok(Self { memory, done: Event::new(context, EventFlags::DISABLE_TIMING)? })
    }

    /// Waits for the device's copy into this block, and copies the block to `part`.
    #[inline]
    fn give(&self, part: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.done.synchronize()?;
        let staged = &self.memory[..part.len()];
        // SAFETY: initialized bytes are valid as `MaybeUninit<u8>`, which has the same layout, and the borrow is the same.
        let staged = unsafe { std::slice::from_raw_parts(staged.as_ptr().cast::<MaybeUninit<u8>>(), staged.len()) };
        part.copy_from_slice(staged);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use curium_driver::Driver;
    use curium_sim::{Config, Simulator};

    use super::super::job::Lengths;
    use super::*;

    #[test]
    fn lane_whose_copy_panics_waits_for_its_stream() {
        let simulator = Simulator::new(Config::new()).expect("a simulator can be made");
        let driver = simulator.driver::<Driver>().expect("the simulator initializes");
        let context = driver.device(0).and_then(|device| device.primary_context()).expect("there is a device");
        let mut lane = Lane::new(&context, 4096, 0).expect("a lane can be made");
        static HAS_RUN: AtomicBool = AtomicBool::new(false);
        let job = Job::new(&[0_u8; 1][..], 1, Lengths { first: 1, shortest: 1, longest: 1 });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            lane.work(&job, |lane| {
                let _ran = lane.stream.launch_host_function(|| {
                    std::thread::sleep(Duration::from_millis(50));
                    HAS_RUN.store(true, Ordering::Release);
                })?;
                panic!("this panic is part of the test")
            })
        }));
        assert!(panicked.is_err() && HAS_RUN.load(Ordering::Acquire), "the work on the lane is done");
        assert!(!lane.is_sound());
    }
}
