//! Host access to managed memory.

use crate::AnyBitPattern;
use curium_driver::{AttachMode, Error, Result, Stream};

use super::UnifiedBuffer;
use crate::host_attachment::{HostAttachment, attach};
use crate::{HostView, HostViewMut};

/// The attachment of a managed buffer: what may access it on systems without concurrent managed
/// access.
pub(super) enum Attachment {
    Global,
    Host,
    Stream(Stream),
}

impl<T> UnifiedBuffer<T> {
    /// Returns a host view for reading. Waits for the work that writes the elements.
    ///
    /// While the view exists, launching a graph that writes the memory is an error.
    ///
    /// Without [concurrent managed access](UnifiedBuffer#concurrent-managed-access), the buffer
    /// must be attached to the host or to a stream; [`UnifiedBuffer::host_view_mut`] needs no
    /// attachment.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if work is pending.
    ///
    /// # Errors
    ///
    /// - An argument error if a device of the system has no concurrent managed access and the
    ///   buffer is attached to all streams.
    /// - An argument error within a capture closure, because the captured work has not run.
    /// - The error of earlier asynchronous work in the context.
    pub fn host_view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        const OPERATION: &str = "UnifiedBuffer::host_view";
        self.check_host_access(OPERATION)?;
        let access = self.parts.origin.view(OPERATION, false)?;
        self.parts.origin.wait_for_writes()?;
        // SAFETY: the memory is live and holds `len` elements, for which every bit pattern is
        // valid. The writes have completed, and none can start while the buffer is borrowed and the
        // view exists. `check_host_access` has checked that the host may read.
        let elements = unsafe { std::slice::from_raw_parts(self.host_pointer(), self.len()) };
        Ok(HostView::new(elements, access))
    }

    /// Returns a host view for reading and writing. Waits for the work that accesses the elements.
    ///
    /// While the view exists, launching a graph that accesses the memory is an error.
    ///
    /// Without [concurrent managed access](UnifiedBuffer#concurrent-managed-access), the buffer is
    /// attached to the host while the view exists. Work on other memory may run in the meantime. If
    /// the view is forgotten, or its driver call fails when it is dropped, the next operation on
    /// the buffer ends the attachment, and graphs that use the memory cannot be launched until
    /// then. With concurrent managed access, they cannot be launched after a view was forgotten.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if work is pending;
    /// `cuStreamAttachMemAsync` without concurrent managed access.
    ///
    /// # Errors
    ///
    /// - An argument error within a capture closure, because the captured work has not run, and
    ///   without concurrent managed access while the buffer's stream is being captured.
    /// - The error of earlier asynchronous work in the context.
    pub fn host_view_mut(&mut self) -> Result<HostViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        const OPERATION: &str = "UnifiedBuffer::host_view_mut";
        // The attachment of a view that was forgotten, or whose end failed.
        self.parts.origin.end_host_attachment(OPERATION)?;
        let access = self.parts.origin.view(OPERATION, true)?;
        let attachment = self.attach_to_host(OPERATION)?;
        // The end of the attachment ends the access as well.
        let access = if attachment.is_some() {
            access.leave_open();
            None
        } else {
            Some(access)
        };
        let (_, accesses) = self.parts.origin.stream_and_accesses();
        accesses.synchronize()?;
        // SAFETY: the memory is live and holds `len` elements, for which every bit pattern is
        // valid. All accesses have completed, and none can start while the buffer is borrowed
        // exclusively and the view exists. `attach_to_host` ensures that the host may access it.
        let elements = unsafe { std::slice::from_raw_parts_mut(self.host_pointer(), self.len()) };
        Ok(HostViewMut::ending(elements, access, attachment))
    }

    /// Attaches the buffer to all streams, to the host, or to `stream`, in stream order.
    ///
    /// Required only on systems without
    /// [concurrent managed access](UnifiedBuffer#concurrent-managed-access). There, the host may
    /// access a buffer attached to the host while devices work on other memory, and a buffer
    /// attached to a stream while that stream is idle.
    ///
    /// CUDA: `cuStreamAttachMemAsync`.
    ///
    /// # Safety
    ///
    /// From then on, the memory is accessed only as `mode` allows:
    ///
    /// - with [`AttachMode::Host`], by no device;
    /// - with [`AttachMode::Stream`], only by work on `stream`, which is idle while a host view of
    ///   the buffer exists.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is being captured; any error returned by the driver.
    #[doc(alias = "cuStreamAttachMemAsync")]
    #[doc(alias = "cudaStreamAttachMemAsync")]
    pub unsafe fn attach(&mut self, stream: &Stream, mode: AttachMode) -> Result<()> {
        attach(
            "UnifiedBuffer::attach",
            &self.parts.origin,
            self.parts.pointer.cast(),
            stream,
            mode,
        )?;
        self.attachment = match mode {
            AttachMode::Host => Attachment::Host,
            AttachMode::Stream => Attachment::Stream(stream.clone()),
            _ => Attachment::Global,
        };
        Ok(())
    }

    /// Returns the host address of the memory, which equals the device address.
    fn host_pointer(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.parts.pointer.as_raw() as usize)
    }

    /// Returns an error if the host must not read the buffer while devices work. Waits for the
    /// stream to which the buffer is attached.
    fn check_host_access(&self, operation: &'static str) -> Result<()> {
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

    /// Attaches the buffer to the host if that is required for host access. Returns the attachment,
    /// which must be undone.
    fn attach_to_host(&self, operation: &'static str) -> Result<Option<HostAttachment<'_>>> {
        match &self.attachment {
            _ if self.is_concurrent => Ok(None),
            Attachment::Host => Ok(None),
            Attachment::Stream(stream) => stream.synchronize().map(|()| None),
            Attachment::Global => {
                HostAttachment::new(operation, &self.parts.origin, self.parts.pointer.cast())
                    .map(Some)
            }
        }
    }
}
