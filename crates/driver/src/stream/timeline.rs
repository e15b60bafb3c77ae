//! The timeline of a stream: a number in host memory that the device increases in stream order.
//!
//! A point of the stream is marked by the next sequence number, which the device writes to the
//! stream's word (`cuStreamWriteValue64`) after all work enqueued so far. A host that reads this
//! number or a greater one has passed the point: one load answers for every point of the stream,
//! without a driver call.
//!
//! 1. **Numbers only grow.** They are enqueued under a lock, so that the order of the numbers is
//!    the order of the stream. A word that is reused continues at the number that its previous user
//!    reached.
//! 2. **The device writes nothing after the context has failed**, and other code may capture the
//!    stream in the middle of a mark. An event is therefore recorded before each write. Its query
//!    returns the error of the context, and its completion counts as the number of the latest mark.
//! 3. **A read is always valid.** The words are memory of this process that is registered with the
//!    driver, not memory of the driver. It stays mapped at process exit, in forked children and
//!    after the context's end, and is freed only once every write has completed.

mod waits;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use curium_sys::{CUresult, CUstream_st, CUstreamWriteValue_flags};

pub(crate) use self::waits::{Key, Waiting, Waits};
use self::words::{Word, Words};
use super::Stream;
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::contain::TaskWaker;
use crate::base::exclusive::Exclusive;
use crate::base::handle::Handle;
use crate::base::identity::Identity;
use crate::base::wait_history::WaitHistory;
use crate::hazard::Operation;
use crate::{AsRawStream as _, Context, PooledEvent, Result, call};

/// The timeline of one stream. It may outlive the stream.
pub(crate) struct Timeline {
    word: Word,
    /// Recorded before each write.
    event: PooledEvent,
    /// The number of the latest mark, locked while a mark is enqueued.
    last: Exclusive<u64>,
    /// The same number, for readers without the lock.
    enqueued: AtomicU64,
    /// The tasks that wait for numbers.
    pub(crate) waits: Waits<TaskWaker>,
    pub(crate) history: WaitHistory,
    /// The identity of this timeline in the table of the background thread.
    pub(crate) identity: Identity,
    /// The handle of the stream, for error messages.
    raw: Handle<CUstream_st>,
    words: Arc<Words>,
    /// Dropped after the words, which belong to the context.
    _context: Context,
}

impl Stream {
    /// Returns the timeline of this stream; `None` if the device cannot write values in stream
    /// order.
    ///
    /// CUDA, on first use: `cuDeviceGetAttribute`, `cuMemHostRegister_v2`,
    /// `cuMemHostGetDevicePointer_v2`, `cuEventCreate`.
    pub(crate) fn timeline(&self) -> Result<Option<Arc<Timeline>>> {
        if let Some(timeline) = self.shared.timeline.get() {
            return Ok(Some(Arc::clone(timeline)));
        }
        let words = Words::attached_to(self.context());
        let Some(word) = words.acquire()? else {
            return Ok(None);
        };
        let event = match self.pooled_event() {
            Ok(event) => event,
            Err(error) => {
                words.release(word, word.value());
                return Err(error);
            }
        };
        let timeline = Arc::new(Timeline {
            word,
            event,
            last: Exclusive::new(word.value()),
            enqueued: AtomicU64::new(word.value()),
            waits: Waits::new(),
            history: WaitHistory::new(),
            identity: Identity::next(),
            raw: Handle::new(self.as_raw()),
            words,
            _context: self.context().clone(),
        });
        // Another thread may have been faster.
        Ok(Some(Arc::clone(
            self.shared.timeline.get_or_init(|| timeline),
        )))
    }
}

impl Timeline {
    /// Marks the point after all work currently enqueued on the stream of `operation`, and returns
    /// its number; `None` if the driver does not support the write on this stream.
    ///
    /// CUDA: `cuEventRecord`, `cuStreamWriteValue64_v2`.
    pub(crate) fn mark(&self, operation: &Operation<'_>) -> Result<Option<u64>> {
        let mut last = self.last.acquire(operation.name())?;
        self.event.record_unguarded(operation.stream())?;
        let sequence = *last + 1;
        // The default orders the write after all earlier writes of the device, for the whole
        // system.
        let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT.0;
        // SAFETY: the stream is live. The word is registered in its context until this write has
        // completed, and the host accesses it only as an atomic.
        let written = unsafe {
            call!(
                operation.driver(),
                cuStreamWriteValue64_v2(
                    operation.raw_stream(),
                    self.word.device_address(),
                    sequence,
                    flags
                )
            )
        };
        match written {
            Ok(()) => {
                *last = sequence;
                self.enqueued.store(sequence, Ordering::Release);
                Ok(Some(sequence))
            }
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_SUPPORTED) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number that the stream has reached. Makes no driver call.
    #[inline]
    pub(crate) fn reached(&self) -> u64 {
        self.word.value()
    }

    /// Spins until the stream has reached `sequence`, for at most `limit`. Returns `true` if it
    /// has.
    pub(crate) fn spin(&self, sequence: u64, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            for _ in 0..16 {
                if self.reached() >= sequence {
                    return true;
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= limit {
                return false;
            }
        }
    }

    /// Queries the driver for the number that the stream has reached, which the word may lack.
    /// Returns the error of the context if the device will never write it.
    ///
    /// CUDA: `cuEventQuery`, `cuThreadExchangeStreamCaptureMode`.
    pub(crate) fn query(&self) -> Result<u64> {
        // Read first: an event that has completed covers every mark that was enqueued before the
        // query.
        let enqueued = self.enqueued.load(Ordering::Acquire);
        let is_finished =
            with_relaxed_capture_mode(self.event.driver(), || self.event.is_finished())?;
        Ok(if is_finished {
            enqueued
        } else {
            self.reached()
        })
    }

    /// Returns the handle of the stream, for error messages.
    pub(crate) fn raw(&self) -> &Handle<CUstream_st> {
        &self.raw
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.words
            .release(self.word, self.enqueued.load(Ordering::Acquire));
    }
}
