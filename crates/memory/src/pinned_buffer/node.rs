//! Pinned memory on a NUMA node.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::Zeroable;
use curium_driver::{Context, Error, Result, Returned};

use super::{PinnedBuffer, Source};
use crate::virtual_memory::{AddressRange, Granularity, Mapping, PhysicalMemory, PhysicalOptions};
use crate::{MemoryAccess, MemoryLocation, size};

impl<T> PinnedBuffer<T> {
    /// Allocates `len` elements on a host NUMA node and sets every byte to zero. `node` is the operating system's
    /// number; the device attribute `HOST_NUMA_ID` is the node closest to a device.
    ///
    /// The other constructors use `cuMemHostAlloc`, which follows the NUMA policy of the calling thread. This
    /// constructor maps memory of the node, in units of the granularity (usually 2 MiB). Only the context's device can
    /// access it.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`. Requires a driver for CUDA 12.2.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, or if the alignment of `T` exceeds the granularity;
    /// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_NOT_SUPPORTED` if the node does not exist
    /// or its memory cannot be mapped; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "CU_MEM_LOCATION_TYPE_HOST_NUMA")]
    pub fn zeroed_on_node(context: &Context, len: usize, node: u32) -> Result<Self>
    where
        T: Zeroable,
    {
        const OPERATION: &str = "PinnedBuffer::zeroed_on_node";
        let bytes = size::bytes::<T>(OPERATION, len)?;
        let mapping = map_on_node(OPERATION, context, node, bytes)?;
        let address = mapping.as_pointer().as_raw();
        size::aligned::<T>(OPERATION, address)?;
        let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut::<T>(address as usize))
            .ok_or_else(|| {
                Error::argument(OPERATION, "the driver mapped the memory at address 0")
            })?;
        // SAFETY: the host can write the mapped bytes, which no other code uses yet, and zero bytes are valid elements.
        unsafe { pointer.write_bytes(0, len) };
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

/// Maps at least `bytes` bytes of a node for the host and the device of `context`.
fn map_on_node(
    operation: &'static str,
    context: &Context,
    node: u32,
    bytes: usize,
) -> Result<Mapping> {
    let node = i32::try_from(node)
        .map_err(|_| Error::argument(operation, format!("no such NUMA node {node}")))?;
    let driver = context.driver();
    let location = MemoryLocation::HostNuma(node);
    let options = PhysicalOptions::new(location);
    let granularity = options.granularity(driver, Granularity::Minimum)?.max(1);
    let padded = bytes.checked_next_multiple_of(granularity);
    let padded = padded
        .ok_or_else(|| Error::argument(operation, format!("size overflow ({bytes} bytes)")))?;
    let memory = PhysicalMemory::with_options(driver, padded, &options)?;
    let mapping = AddressRange::reserve(driver, padded)?.map(0, &memory)?;
    let users = [location, context.device().into()].map(|user| (user, MemoryAccess::ReadWrite));
    mapping.set_accesses(&users)?;
    Ok(mapping)
}

/// Unmaps a mapping, which is kept if the driver call fails.
pub(super) fn unmap(place: &mut Option<Mapping>) -> Result<()> {
    match place.take().map(Mapping::close) {
        Some(Err(Returned {
            value: mapping,
            error,
        })) => {
            *place = Some(mapping);
            Err(error)
        }
        _ => Ok(()),
    }
}
