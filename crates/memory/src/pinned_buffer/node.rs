//! Pinned memory on a NUMA node.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::Zeroable;
use curium_driver::{Context, Error, Result, Returned};

use super::{PinnedBuffer, Source};
use crate::size;
use crate::virtual_memory::{Mapping, map_on_node};

impl<T> PinnedBuffer<T> {
    /// Allocates `len` elements on a host NUMA node and sets every byte to zero. `node` is the
    /// operating system's number; the device attribute `HOST_NUMA_ID` is the node closest to a
    /// device.
    ///
    /// The other constructors use `cuMemHostAlloc`, which follows the NUMA policy of the calling
    /// thread. This constructor maps memory of the node, in units of the granularity (usually 2
    /// MiB). Only the context's device can access it.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`. Requires a driver
    /// for CUDA 12.2.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, or if the alignment of `T` exceeds the
    /// granularity; `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_DEVICE` or
    /// `CUDA_ERROR_NOT_SUPPORTED` if the node does not exist or its memory cannot be mapped;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "CU_MEM_LOCATION_TYPE_HOST_NUMA")]
    pub fn zeroed_on_node(context: &Context, len: usize, node: u32) -> Result<Self>
    where
        T: Zeroable,
    {
        const OPERATION: &str = "PinnedBuffer::zeroed_on_node";
        let buffer = Self::allocate_on_node(OPERATION, context, len, node)?;
        // SAFETY: the host can write the mapped bytes, which no other code uses yet, and zero bytes
        // are valid elements.
        unsafe { buffer.pointer.write_bytes(0, len) };
        Ok(buffer)
    }

    /// Allocates elements that need not be valid on a host NUMA node.
    pub(super) fn allocate_on_node(
        operation: &'static str,
        context: &Context,
        len: usize,
        node: u32,
    ) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let mapping = map_on_node(operation, context, node, bytes)?;
        let address = mapping.as_pointer().as_raw();
        size::aligned::<T>(operation, address)?;
        let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut::<T>(address as usize))
            .ok_or_else(|| {
                Error::argument(operation, "the driver mapped the memory at address 0")
            })?;
        let source = Source::Node(Some(mapping));
        Ok(Self {
            pointer,
            len,
            context: context.clone(),
            source,
            _elements: PhantomData,
        })
    }
}

/// Unmaps a mapping, which is kept if the driver call fails.
pub(super) fn unmap(slot: &mut Option<Mapping>) -> Result<()> {
    match slot.take().map(Mapping::close) {
        Some(Err(Returned {
            value: mapping,
            error,
        })) => {
            *slot = Some(mapping);
            Err(error)
        }
        _ => Ok(()),
    }
}
