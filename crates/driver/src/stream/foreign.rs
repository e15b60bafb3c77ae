//! Streams of other code: default streams, and those of other libraries.

use std::any::Any;

use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUstream};

use crate::{Context, Result, Returned, Stream};

/// The owner of a stream, which destroys it.
pub(super) enum Ownership {
    /// Its last clone.
    Owned,
    /// Other code owns the stream. The field keeps it alive, if set.
    Foreign(#[expect(dead_code, reason = "it is only kept")] Option<Box<dyn Any + Send + Sync>>),
}

impl Stream {
    /// Returns the legacy default stream of `context`, which waits for every blocking stream of the context, and they for it.
    ///
    /// # Safety
    ///
    /// The handle of this stream stands for the default stream of whichever context is *current*. So `context` is current on each
    /// thread that uses the result, a clone of it, or a buffer that was used on it, when it does so and when it drops them.
    #[must_use]
    #[inline]
    pub unsafe fn legacy_default(context: &Context) -> Self {
        Self::with_ownership(context, CU_STREAM_LEGACY, Ownership::Foreign(None))
    }

    /// Returns the default stream of the calling thread in `context`, which waits for the legacy default stream, and that for it.
    ///
    /// # Safety
    ///
    /// The handle of this stream stands for the default stream of whichever thread uses it, in whichever context is *current*. So the
    /// result, its clones, and the buffers that are used on it stay on this thread, and `context` is current when they are used and
    /// when they are dropped.
    #[must_use]
    #[inline]
    pub unsafe fn per_thread_default(context: &Context) -> Self {
        Self::with_ownership(context, CU_STREAM_PER_THREAD, Ownership::Foreign(None))
    }

    /// Takes over the stream `raw` of `context`, which is destroyed with the last clone of the result.
    ///
    /// # Safety
    ///
    /// - `raw` is a live stream of this context, in this driver, and no default stream.
    /// - Nobody else destroys it or uses it once the last clone is gone.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Self {
        Self::with_ownership(context, raw, Ownership::Owned)
    }

    /// Uses the stream `raw` of `context`, which another library made and destroys. `owner` is what keeps it alive, such as a handle of
    /// that library, and is dropped with the last clone of the result.
    ///
    /// # Safety
    ///
    /// - `raw` is a stream of this context, in this driver, and no default stream.
    /// - It stays live for as long as `owner` exists.
    #[must_use]
    #[inline]
    pub unsafe fn from_foreign(context: &Context, raw: CUstream, owner: impl Any + Send + Sync) -> Self {
        Self::with_ownership(context, raw, Ownership::Foreign(Some(Box::new(owner))))
    }

    /// Returns the driver's handle of this stream, which is the caller's to destroy from now on, if it was this value's.
    ///
    /// # Errors
    ///
    /// Gives the stream back if clones of it or buffers that were used on it still exist.
    #[inline]
    pub fn into_raw(self) -> Result<CUstream, Returned<Self>> {
        let mut shared = self.unshare("Stream::into_raw")?;
        shared.ownership = Ownership::Foreign(None);
        Ok(shared.raw.raw())
    }
}
