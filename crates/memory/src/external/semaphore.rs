//! Semaphores that another interface has made.

use std::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(feature = "graphs")]
use std::sync::Arc;

#[cfg(unix)]
use curium_driver::sys::{CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUexternalSemaphoreHandleType};
use curium_driver::sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore,
};
use curium_driver::{Context, Result, Returned, Stream, call, release};
#[cfg(feature = "graphs")]
use curium_driver::{GraphSemaphore, SemaphoreOwner};
use parking_lot::Mutex;

#[cfg(unix)]
use super::descriptor;

/// A semaphore that another interface has made and exported: what both sides' queues are ordered by.
///
/// Its end, by [`Drop`] as well, waits on the host for the streams that signals and waits were put on, and for those that graphs with it
/// were launched on: for ever if one of them waits for what nobody signals.
pub struct ExternalSemaphore {
    context: Context,
    raw: CUexternalSemaphore,
    kind: ExternalSemaphoreKind,
    /// The streams that signals, waits, and graphs with such nodes were put on: the driver's semaphore must outlive these.
    streams: Mutex<Vec<Stream>>,
}

/// What kind of descriptor a semaphore was exported as.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ExternalSemaphoreKind {
    /// One that is signalled or not, and whose value is ignored: `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`.
    Opaque,
    /// One that counts up: a timeline semaphore.
    Timeline,
}

// SAFETY: the pointer is a name that only the driver looks behind, from any thread.
unsafe impl Send for ExternalSemaphore {}
// SAFETY: as for `Send`.
unsafe impl Sync for ExternalSemaphore {}

impl ExternalSemaphore {
    /// Imports a semaphore by a descriptor. The driver takes it over.
    ///
    /// CUDA: `cuImportExternalSemaphore`.
    ///
    /// # Errors
    ///
    /// An error of the driver if the descriptor is not one of its own; `CUDA_ERROR_NOT_SUPPORTED` where semaphores cannot be imported, as
    /// on the simulator. The descriptor is closed then. Memory may pass for a semaphore until it is used.
    #[cfg(unix)]
    #[doc(alias = "cuImportExternalSemaphore")]
    #[inline]
    pub fn import_fd(context: &Context, descriptor: OwnedFd, kind: ExternalSemaphoreKind) -> Result<Self> {
        let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: kind.to_raw(),
            ..CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default()
        };
        let mut raw = std::ptr::null_mut();
        context.entered(|driver| {
            descriptor::give("ExternalSemaphore::import_fd", descriptor, |given| {
                description.handle.fd = given;
                // SAFETY: both places are valid, the context is current, and the descriptor is open.
                unsafe { call!(driver, cuImportExternalSemaphore(&raw mut raw, &raw const description) creates raw) }
            })
        })?;
        Ok(Self { context: context.clone(), raw, kind, streams: Mutex::default() })
    }

    /// The kind.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> ExternalSemaphoreKind {
        self.kind
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUexternalSemaphore {
        self.raw
    }

    /// Signals the semaphore when the work that is on `stream` by now is done: a timeline semaphore with `value`, which is more than its
    /// last.
    ///
    /// CUDA: `cuSignalExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// An argument error on a stream of a capture scope, whose graph cannot keep the semaphore; whatever the driver returns.
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal(&self, stream: &Stream, value: u64) -> Result<()> {
        self.context.driver().expect_same(stream.driver(), "ExternalSemaphore::signal")?;
        stream.expect_running("ExternalSemaphore::signal")?;
        let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
        params.params.fence.value = value;
        let raw = self.raw;
        // SAFETY: the semaphore is live, and the one semaphore and its parameters are valid places during the call.
        unsafe {
            call!(
                stream.driver(),
                cuSignalExternalSemaphoresAsync(&raw const raw, &raw const params, 1, stream.as_raw())
            )
        }?;
        self.note(stream);
        Ok(())
    }

    /// Has work that is put on `stream` from now on wait until the semaphore is signalled: a timeline semaphore until it has reached
    /// `value`. It must be certain that somebody signals it: the stream waits for ever otherwise.
    ///
    /// CUDA: `cuWaitExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// As for [`ExternalSemaphore::signal`].
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait(&self, stream: &Stream, value: u64) -> Result<()> {
        self.context.driver().expect_same(stream.driver(), "ExternalSemaphore::wait")?;
        stream.expect_running("ExternalSemaphore::wait")?;
        let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
        params.params.fence.value = value;
        let raw = self.raw;
        // SAFETY: the semaphore is live, and the one semaphore and its parameters are valid places during the call.
        unsafe {
            call!(stream.driver(), cuWaitExternalSemaphoresAsync(&raw const raw, &raw const params, 1, stream.as_raw()))
        }?;
        self.note(stream);
        Ok(())
    }

    /// The semaphore as nodes of graphs signal it with `value`, or wait until it has reached that: see
    /// [`Graph::add_semaphore_signal`](curium_driver::Graph::add_semaphore_signal). The graphs keep it, and
    /// its end waits for their launches by [`GraphExec::launch`](curium_driver::GraphExec::launch).
    #[cfg(feature = "graphs")]
    #[must_use]
    #[inline]
    pub fn for_graph(self: &Arc<Self>, value: u64) -> GraphSemaphore {
        let owner: Arc<dyn SemaphoreOwner> = Arc::<Self>::clone(self);
        // SAFETY: the semaphore is one of this context, and `owner` is the value that keeps it.
        unsafe { GraphSemaphore::new(&self.context, self.raw, value, owner) }
    }

    /// Lets go of the semaphore, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for the streams
    /// that it was used on, and that graphs with it were launched on.
    ///
    /// CUDA: `cuStreamSynchronize`, `cuDestroyExternalSemaphore`.
    ///
    /// # Errors
    ///
    /// Gives the semaphore back if a stream that it was used on cannot be waited for, or if the driver refuses.
    #[doc(alias = "cuDestroyExternalSemaphore")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.destroy().map_err(|error| Returned::new(self, error))
    }

    /// Notes that a signal or a wait was put on `stream`.
    #[inline]
    fn note(&self, stream: &Stream) {
        let mut streams = self.streams.lock();
        if !streams.contains(stream) {
            streams.push(stream.clone());
        }
    }

    #[inline]
    fn destroy(&mut self) -> Result<()> {
        self.streams.get_mut().iter().map(Stream::synchronize).fold(Ok(()), Result::and)?;
        self.context.entered(|driver| {
            // SAFETY: the semaphore is live, no stream uses it any more, its context is current, and it is forgotten once it is destroyed.
            unsafe { call!(driver, cuDestroyExternalSemaphore(self.raw)) }
        })?;
        self.raw = std::ptr::null_mut();
        Ok(())
    }
}

#[cfg(unix)]
impl ExternalSemaphoreKind {
    const fn to_raw(self) -> CUexternalSemaphoreHandleType {
        match self {
            Self::Opaque => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
            Self::Timeline => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
        }
    }
}

#[cfg(feature = "graphs")]
impl SemaphoreOwner for ExternalSemaphore {
    #[inline]
    fn launched(&self, stream: &Stream) {
        self.note(stream);
    }
}

impl fmt::Debug for ExternalSemaphore {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ExternalSemaphore({:?}, {:?})", self.kind, self.raw)
    }
}

impl Drop for ExternalSemaphore {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            release(|| self.destroy());
        }
    }
}
