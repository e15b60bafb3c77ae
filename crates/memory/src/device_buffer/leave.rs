//! Freeing of buffers that graphs lease or own.

use curium_driver::extend::leak;
use curium_driver::hazard::Accesses;
use curium_driver::{DevicePointer, LeakedMemory, Result, Stream};

use super::DeviceBuffer;
use crate::resource::Resource;

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Leaves the memory to the graphs that lease it.
    #[cold]
    pub(super) fn leave(&mut self) -> Result<()> {
        if self.stream().is_created_by_capture() {
            return self.leave_to_scope();
        }
        let stream = self.stream().clone();
        let pointer = self.parts.pointer.cast();
        let bytes = self.byte_len();
        if let Some(resource) = self.resource.detached() {
            let end = move |accesses| {
                // SAFETY: the memory came from this resource or one that shares its state, and the
                // closure runs once, when the address is no longer used.
                let freed = unsafe {
                    end(
                        &resource,
                        &stream,
                        &accesses,
                        pointer,
                        bytes,
                        Self::ALIGNMENT,
                    )
                };
                if let Err(error) = freed {
                    leak(stream.driver(), LeakedMemory::new(1, bytes as u64), &error);
                }
                Ok(())
            };
            self.parts.origin.exclusive().leave(end);
        } else {
            let accesses = self.parts.origin.exclusive();
            accesses.revoke()?;
            // SAFETY: the memory came from this resource, no graph can use it any more, and it is
            // not used after this call.
            unsafe {
                end(
                    &self.resource,
                    &stream,
                    accesses,
                    pointer,
                    bytes,
                    Self::ALIGNMENT,
                )
            }?;
        }
        self.parts.pointer = DevicePointer::from_raw(0);
        Ok(())
    }

    /// Frees memory allocated in a capture: with a node if the capture is still active, otherwise
    /// when its graph ends.
    fn leave_to_scope(&mut self) -> Result<()> {
        let stream = self.stream().clone();
        let pointer = self.parts.pointer.cast();
        let bytes = self.byte_len();
        let mut release = stream.enqueue_release("DeviceBuffer::drop")?;
        let is_ordered = self
            .parts
            .origin
            .exclusive()
            .before_write(&mut release)
            .is_ok();
        // SAFETY: the memory is freed below, on a stream that is ordered after the captured work
        // that uses it, or registered again.
        let is_ours = is_ordered && unsafe { release.remove_allocation(pointer.as_raw()) };
        if is_ours {
            // SAFETY: the memory came from this resource, the captured work that uses it precedes
            // the free, and it is not used after this call.
            let freed = unsafe {
                self.resource
                    .deallocate(&stream, pointer, bytes, Self::ALIGNMENT)
            };
            if freed.is_err() {
                // The end of the capture frees the memory, or returns the error. A capture that was
                // invalidated leaves no memory.
                // SAFETY: the captured work allocated the memory, and nothing else frees it from
                // now on.
                unsafe { release.add_allocation(pointer.as_raw()) };
            }
        }
        self.parts.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

/// Deallocates memory once every access has completed.
///
/// # Safety
///
/// The memory came from the resource, or one that shares its state, with this size and alignment,
/// and no new access starts.
unsafe fn end<R: Resource + ?Sized>(
    resource: &R,
    stream: &Stream,
    accesses: &Accesses,
    pointer: DevicePointer<u8>,
    bytes: usize,
    alignment: usize,
) -> Result<()> {
    // The same fallback as for buffers that no graph leases.
    let waited = accesses.before_free(stream);
    waited.or_else(|error| {
        if error.function().is_some() {
            accesses.synchronize()
        } else {
            Err(error)
        }
    })?;
    // SAFETY: the caller guarantees the memory, and the stream has waited for every access.
    unsafe { resource.deallocate(stream, pointer, bytes, alignment) }
}
