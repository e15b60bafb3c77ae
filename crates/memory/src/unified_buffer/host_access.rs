//! Host access to managed memory.

use bytemuck::AnyBitPattern;
use curium_driver::extend::release;
use curium_driver::hazard::AccessGuard;
use curium_driver::{AttachMode, DevicePointer, Error, Result, Stream};

use super::UnifiedBuffer;
use crate::tracked::Tracked;
use crate::{HostView, HostViewMut};

/// The attachment of a managed buffer: the streams, or the host, that may access it on systems without concurrent managed access.
pub(super) enum Attachment {
    Global,
    Host,
    Stream(Stream),
}

/// Attaches a buffer to the host until it is dropped.
pub(crate) struct HostAttachment<'a> {
    tracked: &'a Tracked,
}

impl<T> UnifiedBuffer<T> {
    /// Returns a view of the elements for the host to read. Waits for the work that writes them.
    ///
    /// While the view exists, launching a graph that writes the memory is an error.
    ///
    /// Without [concurrent managed access](UnifiedBuffer#concurrent-managed-access), the buffer must be attached to the host or to a
    /// stream; [`UnifiedBuffer::host_view_mut`] needs no attachment.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if work is pending.
    ///
    /// # Errors
    ///
    /// - An argument error if a device of the system has no concurrent managed access and the buffer is attached to all streams.
    /// - An argument error inside the closure of a capture, whose work has not run.
    /// - The error of earlier work of the context.
    pub fn host_view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        const OPERATION: &str = "UnifiedBuffer::host_view";
        self.expect_host_access(OPERATION)?;
        let access = self.tracked.view(OPERATION, false)?;
        self.tracked.wait_for_writes()?;
        // SAFETY: the memory is live and holds `len` elements, for which every bit pattern is valid. The writes have been waited for, and
        // none can start while the buffer is borrowed and the view exists. `expect_host_access` has checked that the host may read.
        let elements = unsafe { std::slice::from_raw_parts(self.host_pointer(), self.len) };
        Ok(HostView::new(elements, access))
    }

    /// Returns a view of the elements for the host to read and write. Waits for the work that uses them.
    ///
    /// While the view exists, launching a graph that uses the memory is an error.
    ///
    /// Without [concurrent managed access](UnifiedBuffer#concurrent-managed-access), the buffer is attached to the host while the view
    /// exists. Work on other memory may run meanwhile.
    /// If the view is forgotten, or its driver call fails when it is dropped, the next operation on the buffer ends the attachment. Graphs
    /// that use the memory cannot be launched after a view that was forgotten.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if work is pending; `cuStreamAttachMemAsync` without concurrent managed access.
    ///
    /// # Errors
    ///
    /// - An argument error inside the closure of a capture, whose work has not run, and without concurrent managed access while the
    ///   buffer's stream is being captured.
    /// - The error of earlier work of the context.
    pub fn host_view_mut(&mut self) -> Result<HostViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        const OPERATION: &str = "UnifiedBuffer::host_view_mut";
        let access = self.tracked.view(OPERATION, true)?;
        let attachment = self.attach_to_host(OPERATION)?;
        let (_, accesses) = self.tracked.stream_and_accesses();
        accesses.synchronize()?;
        // SAFETY: the memory is live and holds `len` elements, for which every bit pattern is valid. All uses have been waited for, and
        // none can start while the buffer is borrowed exclusively and the view exists. `attach_to_host` has made sure that the host may
        // access it.
        let elements = unsafe { std::slice::from_raw_parts_mut(self.host_pointer(), self.len) };
        Ok(HostViewMut::attached(elements, access, attachment))
    }

    /// Attaches the buffer to all streams, to the host or to `stream`, in the order of `stream`.
    ///
    /// Only systems without [concurrent managed access](UnifiedBuffer#concurrent-managed-access) need this: the host may access a buffer
    /// that is attached to it while devices work on other memory, and a buffer that is attached to a stream while that stream is idle.
    ///
    /// CUDA: `cuStreamAttachMemAsync`.
    ///
    /// # Safety
    ///
    /// From then on, only those access the memory that `mode` names:
    ///
    /// - with [`AttachMode::Host`], no device;
    /// - with [`AttachMode::Stream`], only work on `stream`, which is idle while a host view of the buffer exists.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is being captured; any error of the driver.
    #[doc(alias = "cuStreamAttachMemAsync")]
    pub unsafe fn attach(&mut self, stream: &Stream, mode: AttachMode) -> Result<()> {
        attach("UnifiedBuffer::attach", &self.tracked, self.pointer.cast(), stream, mode)?;
        self.attachment = match mode {
            AttachMode::Host => Attachment::Host,
            AttachMode::Stream => Attachment::Stream(stream.clone()),
            _ => Attachment::Global,
        };
        Ok(())
    }

    /// Returns the address of the memory for the host, which is the same as for the device.
    fn host_pointer(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.pointer.as_raw() as usize)
    }

    /// Returns an error if the host must not read the buffer while devices work. Waits for the stream that the buffer is attached to.
    fn expect_host_access(&self, operation: &'static str) -> Result<()> {
        match &self.attachment {
            _ if self.is_concurrent => Ok(()),
            Attachment::Host => Ok(()),
            Attachment::Stream(stream) => stream.synchronize(),
            Attachment::Global => Err(Error::argument(
                operation,
                "no concurrent managed access on this system; use `host_view_mut`, which attaches the buffer to the host, or \
                 call `attach` with `AttachMode::Host` before",
            )),
        }
    }

    /// Attaches the buffer to the host if it must be for the host to access it. Returns the attachment to undo.
    fn attach_to_host(&self, operation: &'static str) -> Result<Option<HostAttachment<'_>>> {
        match &self.attachment {
            _ if self.is_concurrent => Ok(None),
            Attachment::Host => Ok(None),
            Attachment::Stream(stream) => stream.synchronize().map(|()| None),
            Attachment::Global => HostAttachment::new(operation, &self.tracked, self.pointer.cast()).map(Some),
        }
    }
}

impl<'a> HostAttachment<'a> {
    fn new(operation: &'static str, tracked: &'a Tracked, pointer: DevicePointer<u8>) -> Result<Self> {
        attach(operation, tracked, pointer, tracked.stream(), AttachMode::Host)?;
        tracked.begin_host_attachment(pointer.as_raw());
        Ok(Self { tracked })
    }
}

impl Drop for HostAttachment<'_> {
    fn drop(&mut self) {
        release(|| self.tracked.end_host_attachment("HostViewMut::drop"));
    }
}

/// Attaches the managed allocation at `pointer`. It counts as a write: later uses on other streams wait for it.
fn attach(
    operation: &'static str,
    tracked: &Tracked,
    pointer: DevicePointer<u8>,
    stream: &Stream,
    mode: AttachMode,
) -> Result<()> {
    stream.expect_running(operation)?;
    let mut guard = AccessGuard::new(stream)?;
    tracked.before_write(operation, &mut guard)?;
    // SAFETY: the address is that of a whole live allocation of managed memory. The caller of `UnifiedBuffer::attach` guarantees who
    // accesses it; a `HostAttachment` borrows its buffer exclusively.
    unsafe { stream.attach_managed(pointer, 0, mode) }?;
    tracked.after_partial_write(&mut guard);
    Ok(())
}
