//! Default streams, and streams of other libraries.

use std::any::Any;

use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUstream};

use crate::{Context, Result, Returned, Stream};

/// The owner of a stream, which destroys it.
pub(super) enum Ownership {
    /// Its last clone.
    Owned,
    /// Other code owns the stream. The value, if any, keeps it alive.
    Borrowed(#[expect(dead_code, reason = "it is only kept")] Option<Box<dyn Any + Send + Sync>>),
}

mod sealed {
    pub trait AsRawStream {}
}

/// The raw handle of a [`Stream`], for calls to other code.
///
/// It is a trait, and not a method of the stream, because work that is enqueued through the handle
/// passes no check and is not tracked: it may be missing from a graph that is being captured, and
/// memory may be freed while it runs. Curium's own operations use
/// [`Operation::raw_stream`](crate::hazard::Operation::raw_stream).
pub trait AsRawStream: sealed::AsRawStream {
    /// Returns the raw handle. It is valid for as long as a clone of the stream exists.
    fn as_raw(&self) -> CUstream;
}

impl sealed::AsRawStream for Stream {}

impl AsRawStream for Stream {
    #[inline]
    fn as_raw(&self) -> CUstream {
        self.shared.raw.raw()
    }
}

impl Stream {
    /// Returns `true` if the handle is that of the legacy default stream, on which some operations
    /// are not supported.
    #[must_use]
    pub fn is_legacy_default(&self) -> bool {
        let raw = self.as_raw();
        raw.is_null() || raw == CU_STREAM_LEGACY
    }

    /// Returns the legacy default stream of `context`, which synchronizes with every blocking
    /// stream of the context.
    ///
    /// # Safety
    ///
    /// The handle refers to the default stream of the context that is *current*. Whenever a thread
    /// uses or drops the result, a clone of it, or a buffer that was used on it, `context` is
    /// current on that thread.
    #[must_use]
    pub unsafe fn legacy_default(context: &Context) -> Self {
        Self::with_ownership(context, CU_STREAM_LEGACY, Ownership::Borrowed(None))
    }

    /// Returns the per-thread default stream of the calling thread in `context`, which synchronizes
    /// with the legacy default stream.
    ///
    /// # Safety
    ///
    /// The handle refers to the default stream of the thread that uses it, in the context that is *current*.
    /// The result, its clones, and the buffers used on it therefore stay on this thread, and
    /// `context` is current whenever they are used or dropped.
    #[must_use]
    pub unsafe fn per_thread_default(context: &Context) -> Self {
        Self::with_ownership(context, CU_STREAM_PER_THREAD, Ownership::Borrowed(None))
    }

    /// Takes ownership of the stream `raw` of `context`. It is destroyed with the last clone of the
    /// result.
    ///
    /// # Safety
    ///
    /// - `raw` is a live stream of this context and driver, and not a default stream.
    /// - No other code destroys it, or uses it after the last clone is dropped.
    #[must_use]
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Self {
        Self::with_ownership(context, raw, Ownership::Owned)
    }

    /// Borrows the stream `raw` of `context`, which another library owns. `owner` keeps it alive,
    /// for example a handle of that library. It is dropped with the last clone of the result.
    ///
    /// # Safety
    ///
    /// - `raw` is a stream of this context and driver, and not a default stream.
    /// - It stays live for as long as `owner` exists.
    #[must_use]
    pub unsafe fn borrow_raw(
        context: &Context,
        raw: CUstream,
        owner: impl Any + Send + Sync,
    ) -> Self {
        Self::with_ownership(context, raw, Ownership::Borrowed(Some(Box::new(owner))))
    }

    /// Returns the raw handle, and transfers ownership to the caller unless the stream is borrowed.
    ///
    /// # Errors
    ///
    /// Returns the stream to the caller if clones of it, or buffers that were used on it, still
    /// exist.
    pub fn into_raw(self) -> Result<CUstream, Returned<Self>> {
        let mut shared = self.unshare("Stream::into_raw")?;
        shared.ownership = Ownership::Borrowed(None);
        Ok(shared.raw.raw())
    }
}
