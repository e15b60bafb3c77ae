//! A block of a resource.

use curium_driver::AsRawStream as _;
use curium_driver::{DevicePointer, Stream, call};
use curium_memory::Resource;

/// A block of memory of a resource, deallocated on drop.
pub(super) struct Block<'a> {
    pub(super) resource: &'a dyn Resource,
    pub(super) stream: &'a Stream,
    pub(super) pointer: DevicePointer<u8>,
    pub(super) bytes: usize,
    pub(super) alignment: usize,
}

impl<'a> Block<'a> {
    pub(super) fn new(resource: &'a dyn Resource, stream: &'a Stream, bytes: usize) -> Self {
        Self::aligned(resource, stream, bytes, 256)
    }

    pub(super) fn aligned(
        resource: &'a dyn Resource,
        stream: &'a Stream,
        bytes: usize,
        alignment: usize,
    ) -> Self {
        let pointer = resource
            .allocate(stream, bytes, alignment)
            .expect("allocation failed");
        assert!(
            pointer.as_raw().is_multiple_of(alignment as u64),
            "{pointer:?} is not aligned to {alignment}"
        );
        Self {
            resource,
            stream,
            pointer,
            bytes,
            alignment,
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.pointer.as_raw()
    }

    /// Sets every byte on its stream.
    pub(super) fn fill(&self, value: u8) {
        let address = self.address();
        let stream = self.stream.as_raw();
        // SAFETY: the block has this many bytes and is used on its stream.
        unsafe {
            call!(
                self.stream.driver(),
                cuMemsetD8Async(address, value, self.bytes, stream)
            )
        }
        .expect("write failed");
    }

    /// Waits for the stream and returns `true` if every byte is `value`.
    pub(super) fn holds(&self, value: u8) -> bool {
        let mut bytes = vec![!value; self.bytes];
        let to = bytes.as_mut_ptr().cast();
        let from = self.address();
        let stream = self.stream.as_raw();
        // A block may span several parts of a segment, and such ranges can be copied only while a
        // context is current.
        let read = self.stream.context().entered(|driver| {
            // SAFETY: both sides have this many bytes, and the stream is waited for.
            unsafe { call!(driver, cuMemcpyDtoHAsync_v2(to, from, self.bytes, stream)) }
        });
        read.expect("read failed");
        self.stream.synchronize().expect("the stream works");
        bytes == vec![value; self.bytes]
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // SAFETY: the block was allocated from this resource with this size and alignment, and its
        // work is on its stream.
        unsafe {
            self.resource
                .deallocate(self.stream, self.pointer, self.bytes, self.alignment)
        }
        .expect("deallocation failed");
    }
}
