//! External semaphores.

use std::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore, CUexternalSemaphoreHandleType,
};
use curium_driver::{Context, GraphSemaphore, Result, Returned, SemaphoreOwner, Stream, call};
use parking_lot::Mutex;

#[cfg(unix)]
use super::descriptor;

/// A semaphore that another API created and exported. It orders work of both sides.
///
/// Destroying it waits on the host for the streams on which signals, waits and graphs with such
/// nodes were enqueued. This never returns if one of them waits for a signal that never comes.
pub struct ExternalSemaphore {
    context: Context,
    raw: CUexternalSemaphore,
    kind: ExternalSemaphoreKind,
    /// The streams on which signals, waits and graphs with such nodes were enqueued. The driver's
    /// semaphore must outlive their work.
    streams: Mutex<Vec<Stream>>,
}

/// The handle type of an external semaphore.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ExternalSemaphoreKind {
    /// A binary semaphore, whose value is ignored:
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`, or
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT` on Windows.
    Opaque,
    /// A timeline semaphore.
    Timeline,
    /// A shared handle of a Direct3D 12 fence.
    #[cfg(windows)]
    D3d12Fence,
    /// A shared handle of a Direct3D 11 fence.
    #[cfg(windows)]
    D3d11Fence,
}

// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Send for ExternalSemaphore {}
// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Sync for ExternalSemaphore {}

impl ExternalSemaphore {
    /// Imports a semaphore from a file descriptor and takes ownership of the descriptor.
    ///
    /// CUDA: `cuImportExternalSemaphore`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver if the descriptor does not refer to an exported semaphore;
    /// `CUDA_ERROR_NOT_SUPPORTED` on systems without external semaphores, such as the simulator. On
    /// error, the descriptor is closed. The driver may detect memory in place of a semaphore only
    /// when it is used.
    #[cfg(unix)]
    #[doc(alias = "cuImportExternalSemaphore")]
    #[doc(alias = "cudaImportExternalSemaphore")]
    pub fn import_fd(
        context: &Context,
        descriptor: OwnedFd,
        kind: ExternalSemaphoreKind,
    ) -> Result<Self> {
        let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: kind.to_raw(),
            ..CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default()
        };
        let mut raw = std::ptr::null_mut();
        context.entered(|driver| {
            descriptor::import_with_duplicate("ExternalSemaphore::import_fd", descriptor, |duplicate| {
                description.handle.fd = duplicate;
                // SAFETY: both pointers are valid, the context is current, and the descriptor is
                // open.
                unsafe { call!(driver, cuImportExternalSemaphore(&raw mut raw, &raw const description) creates raw) }
            })
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
            kind,
            streams: Mutex::default(),
        })
    }

    /// Imports a semaphore by a Win32 handle, which the caller keeps.
    ///
    /// CUDA: `cuImportExternalSemaphore`.
    ///
    /// # Errors
    ///
    /// An error of the driver if neither a driver nor Direct3D created the handle;
    /// `CUDA_ERROR_NOT_SUPPORTED` if semaphores cannot be imported, as on the simulator.
    #[cfg(windows)]
    #[doc(alias = "cuImportExternalSemaphore")]
    #[doc(alias = "cudaImportExternalSemaphore")]
    pub fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        kind: ExternalSemaphoreKind,
    ) -> Result<Self> {
        let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: kind.to_raw(),
            ..CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default()
        };
        description.handle.win32.handle = handle.as_raw_handle();
        let mut raw = std::ptr::null_mut();
        context.entered(|driver| {
            // SAFETY: both pointers are valid, the context is current, and the handle is open
            // during the call.
            unsafe { call!(driver, cuImportExternalSemaphore(&raw mut raw, &raw const description) creates raw) }
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
            kind,
            streams: Mutex::default(),
        })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ExternalSemaphoreKind {
        self.kind
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUexternalSemaphore {
        self.raw
    }

    /// Signals the semaphore after the work currently enqueued on `stream`. A timeline semaphore is
    /// set to `value`, which must be greater than its current value.
    ///
    /// CUDA: `cuSignalExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// An argument error on a stream of a capture scope, whose graph cannot keep the semaphore
    /// alive; any error returned by the driver.
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[doc(alias = "cudaSignalExternalSemaphoresAsync")]
    pub fn signal(&self, stream: &Stream, value: u64) -> Result<()> {
        self.context
            .driver()
            .check_same(stream.driver(), "ExternalSemaphore::signal")?;
        let operation = stream.enqueue_uncaptured("ExternalSemaphore::signal")?;
        let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
        params.params.fence.value = value;
        let raw = self.raw;
        // SAFETY: the semaphore is live, and the array of one semaphore and its parameters is valid
        // during the call.
        unsafe {
            call!(
                stream.driver(),
                cuSignalExternalSemaphoresAsync(
                    &raw const raw,
                    &raw const params,
                    1,
                    operation.raw_stream()
                )
            )
        }?;
        self.record_stream(stream);
        Ok(())
    }

    /// Makes later work on `stream` wait until the semaphore is signaled, or until a timeline
    /// semaphore reaches `value`. If it is never signaled, the stream waits forever.
    ///
    /// CUDA: `cuWaitExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// As for [`ExternalSemaphore::signal`].
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[doc(alias = "cudaWaitExternalSemaphoresAsync")]
    pub fn wait(&self, stream: &Stream, value: u64) -> Result<()> {
        self.context
            .driver()
            .check_same(stream.driver(), "ExternalSemaphore::wait")?;
        let operation = stream.enqueue_uncaptured("ExternalSemaphore::wait")?;
        let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
        params.params.fence.value = value;
        let raw = self.raw;
        // SAFETY: the semaphore is live, and the array of one semaphore and its parameters is valid
        // during the call.
        unsafe {
            call!(
                stream.driver(),
                cuWaitExternalSemaphoresAsync(
                    &raw const raw,
                    &raw const params,
                    1,
                    operation.raw_stream()
                )
            )
        }?;
        self.record_stream(stream);
        Ok(())
    }

    /// Returns the semaphore as an operand of graph nodes that signal it with `value`, or wait
    /// until it reaches `value`; see
    /// [`Graph::add_semaphore_signal`](curium_driver::Graph::add_semaphore_signal). The graphs keep
    /// it alive, and destroying it waits for launches by
    /// [`GraphExec::launch`](curium_driver::GraphExec::launch).
    #[must_use]
    pub fn for_graph(self: &Arc<Self>, value: u64) -> GraphSemaphore {
        let owner: Arc<dyn SemaphoreOwner> = Arc::<Self>::clone(self);
        // SAFETY: the semaphore belongs to this context, and `owner` keeps it alive.
        unsafe { GraphSemaphore::new(&self.context, self.raw, value, owner) }
    }

    /// Destroys the semaphore, as [`Drop`] does, and returns any error. Waits on the host for the
    /// streams on which the semaphore, and graphs that use it, were enqueued.
    ///
    /// CUDA: `cuStreamSynchronize`, `cuDestroyExternalSemaphore`.
    ///
    /// # Errors
    ///
    /// Returns the semaphore together with the error if such a stream cannot be synchronized or the
    /// driver call fails.
    #[doc(alias = "cuDestroyExternalSemaphore")]
    #[doc(alias = "cudaDestroyExternalSemaphore")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.destroy().map_err(|error| Returned::new(self, error))
    }

    /// Records that a signal or a wait was enqueued on `stream`.
    fn record_stream(&self, stream: &Stream) {
        let mut streams = self.streams.lock();
        if !streams.contains(stream) {
            streams.push(stream.clone());
        }
    }

    fn destroy(&mut self) -> Result<()> {
        self.streams
            .get_mut()
            .iter()
            .map(Stream::synchronize)
            .fold(Ok(()), Result::and)?;
        self.context.entered(|driver| {
            // SAFETY: the semaphore is live, no stream uses it, its context is current, and it is
            // not used after this call.
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

#[cfg(windows)]
impl ExternalSemaphoreKind {
    const fn to_raw(self) -> CUexternalSemaphoreHandleType {
        match self {
            Self::Opaque => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32,
            Self::Timeline => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32,
            Self::D3d12Fence => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE,
            Self::D3d11Fence => CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE,
        }
    }
}

impl SemaphoreOwner for ExternalSemaphore {
    fn launched(&self, stream: &Stream) {
        self.record_stream(stream);
    }
}

impl fmt::Debug for ExternalSemaphore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ExternalSemaphore({:?}, {:?})",
            self.kind, self.raw
        )
    }
}

impl Drop for ExternalSemaphore {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            release(|| self.destroy());
        }
    }
}
