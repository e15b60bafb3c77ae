//! Resources behind pointers, and forwarding of adaptor methods.

use std::sync::Arc;

use curium_driver::{DevicePointer, Result, Stream};

use super::Resource;

/// Implements maintenance methods of an adaptor by forwarding to its field `inner`.
macro_rules! upkeep_of_inner {
    () => {
        #[inline]
        fn purge(&self) -> curium_driver::Result<()> {
            self.inner.purge()
        }

        #[inline]
        fn synchronize(&self, stream: &curium_driver::Stream) -> curium_driver::Result<()> {
            self.inner.synchronize(stream)
        }

        #[inline]
        fn trim(&self, stream: &curium_driver::Stream, keep: usize) -> curium_driver::Result<()> {
            self.inner.trim(stream, keep)
        }

        #[inline]
        fn segment_changes(&self, since: u64) -> Vec<crate::resource::SegmentChange> {
            self.inner.segment_changes(since)
        }
    };
}

pub(super) use upkeep_of_inner;

/// Implements the trait for a pointer to a resource.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        // SAFETY: every call is forwarded to one resource, which upholds the contract and which the
        // pointer keeps alive.
        unsafe impl<R: Resource + ?Sized> Resource for $pointer {
            #[inline]
            fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
                (**self).allocate(stream, bytes, alignment)
            }

            #[inline]
            unsafe fn deallocate(
                &self,
                stream: &Stream,
                pointer: DevicePointer<u8>,
                bytes: usize,
                alignment: usize,
            ) -> Result<()> {
                // SAFETY: the memory came from the resource that the pointer refers to, whose
                // contract the caller upholds.
                unsafe { (**self).deallocate(stream, pointer, bytes, alignment) }
            }

            #[inline]
            fn detached(&self) -> Option<Arc<dyn Resource>> {
                (**self).detached()
            }

            #[inline]
            fn allocates_in_graphs(&self) -> bool {
                (**self).allocates_in_graphs()
            }

            #[inline]
            fn purge(&self) -> Result<()> {
                (**self).purge()
            }

            #[inline]
            fn synchronize(&self, stream: &Stream) -> Result<()> {
                (**self).synchronize(stream)
            }

            #[inline]
            fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
                (**self).trim(stream, keep)
            }

            #[inline]
            fn segment_changes(&self, since: u64) -> Vec<super::SegmentChange> {
                (**self).segment_changes(since)
            }
        }
    )*};
}

forward!(&R, Box<R>, Arc<R>);
