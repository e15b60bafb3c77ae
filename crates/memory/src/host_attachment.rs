//! The attachment of managed memory to the host.

use curium_driver::extend::release;
use curium_driver::{AttachMode, DevicePointer, Result, Stream};

use crate::tracked::Tracked;

/// Attaches a buffer to the host until dropped.
pub(crate) struct HostAttachment<'a> {
    tracked: &'a Tracked,
}

impl<'a> HostAttachment<'a> {
    pub(crate) fn new(
        operation: &'static str,
        tracked: &'a Tracked,
        pointer: DevicePointer<u8>,
    ) -> Result<Self> {
        attach(
            operation,
            tracked,
            pointer,
            tracked.stream(),
            AttachMode::Host,
        )?;
        tracked.begin_host_attachment(pointer.as_raw());
        Ok(Self { tracked })
    }
}

impl Drop for HostAttachment<'_> {
    fn drop(&mut self) {
        release(|| self.tracked.end_host_attachment("HostViewMut::drop"));
    }
}

/// Attaches the managed allocation at `pointer`. This counts as a write: later accesses on other
/// streams wait for it.
pub(crate) fn attach(
    name: &'static str,
    tracked: &Tracked,
    pointer: DevicePointer<u8>,
    stream: &Stream,
    mode: AttachMode,
) -> Result<()> {
    let mut operation = stream.enqueue_uncaptured(name)?;
    tracked.before_write(&mut operation)?;
    // SAFETY: the address is that of a whole live allocation of managed memory. The caller of
    // `UnifiedBuffer::attach` guarantees which code accesses it; a `HostAttachment` borrows its
    // buffer exclusively.
    unsafe { stream.attach_managed(pointer, 0, mode) }?;
    tracked.after_partial_write(&mut operation);
    Ok(())
}
