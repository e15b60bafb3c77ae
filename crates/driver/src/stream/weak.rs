//! Weak references to streams.

use std::fmt;
use std::sync::{Arc, Weak};

use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
use parking_lot::Mutex;

use super::{Shared, Stream};
use crate::AsRawStream as _;
use crate::{Driver, Event, EventFlags, Result};

/// A weak reference to a stream. After the stream's end it refers to the point after all of its
/// work.
///
/// It may be dropped on any thread at any time, and releases no resources of the stream.
#[derive(Clone)]
pub struct WeakStream {
    stream: Weak<Shared>,
    last: Arc<Last>,
    identity: u64,
}

/// The point after all work of a destroyed stream.
#[derive(Default)]
pub(super) struct Last {
    event: Mutex<Option<Arc<Event>>>,
}

impl Stream {
    /// Returns an identifier that no other stream of this process has or will have.
    #[inline]
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.shared.identity
    }

    /// Returns a weak reference to this stream.
    ///
    /// Returns `None` for the legacy and the per-thread default stream, whose handles refer to
    /// another stream in another context or thread.
    #[must_use]
    #[inline]
    pub fn downgrade(&self) -> Option<WeakStream> {
        let raw = self.as_raw();
        if raw.is_null() || raw == CU_STREAM_LEGACY || raw == CU_STREAM_PER_THREAD {
            return None;
        }
        let last = Arc::clone(self.shared.last.get_or_init(Arc::default));
        Some(WeakStream {
            stream: Arc::downgrade(&self.shared),
            last,
            identity: self.identity(),
        })
    }
}

impl WeakStream {
    /// Returns the identifier of the stream.
    #[must_use]
    #[inline]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the stream, if it still exists.
    #[must_use]
    #[inline]
    pub fn upgrade(&self) -> Option<Stream> {
        self.stream.upgrade().map(|shared| Stream { shared })
    }

    /// Returns the point after all work of the destroyed stream; `None` if the stream still exists
    /// or the driver failed to record it.
    #[must_use]
    #[inline]
    pub fn last(&self) -> Option<Arc<Event>> {
        self.last.event.lock().clone()
    }
}

impl Shared {
    /// Records the point after all work of the stream for its weak references. The stream is about
    /// to be destroyed, and is still live.
    pub(super) fn leave_last(&mut self) {
        let Some(last) = self.last.take().filter(|last| Arc::strong_count(last) > 1) else {
            return;
        };
        // If this fails, waiters wait for the whole context.
        *last.event.lock() = self.last_event().map(Arc::new).ok();
    }

    fn last_event(&self) -> Result<Event> {
        let event = Event::new(&self.context, EventFlags::DISABLE_TIMING)?;
        let driver: &Driver = &self.driver;
        // SAFETY: the event is new and the stream is still live, and both belong to this driver and
        // context.
        unsafe { crate::call!(driver, cuEventRecord(event.as_raw(), self.raw.raw())) }?;
        Ok(event)
    }
}

impl fmt::Debug for WeakStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WeakStream({})", self.identity)
    }
}
