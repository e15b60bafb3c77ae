//! Images in external memory.

use curium_driver::sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
use curium_driver::{Error, Result, Stream, call};

use super::ExternalMemory;
use curium_memory::extend::array_descriptor;
use curium_memory::{ArrayFlags, ArrayShape, MipmappedArray, Texel};

impl ExternalMemory {
    /// Maps the image at `offset` bytes as a mipmapped array with `levels` levels, where level 0
    /// has this shape. `stream` is the array's stream. The array keeps the memory alive.
    ///
    /// The flags of a render target must include [`ArrayFlags::COLOR_ATTACHMENT`].
    ///
    /// CUDA: `cuExternalMemoryGetMappedMipmappedArray`.
    ///
    /// # Safety
    ///
    /// - The other API has created an image with this shape, element type, number of levels and
    ///   flags at `offset`.
    /// - Its accesses are ordered with those through the result, with semaphores that both sides
    ///   use.
    ///
    /// # Errors
    ///
    /// An argument error for a shape without elements, for 0 levels or more levels than the shape
    /// allows, if `offset` is out of bounds, or if the stream belongs to another context; any error
    /// returned by the driver.
    #[doc(alias = "cuExternalMemoryGetMappedMipmappedArray")]
    #[doc(alias = "cudaExternalMemoryGetMappedMipmappedArray")]
    pub unsafe fn map_image<T: Texel>(
        &self,
        stream: &Stream,
        offset: u64,
        shape: ArrayShape,
        levels: u32,
        flags: ArrayFlags,
    ) -> Result<MipmappedArray<T>> {
        const OPERATION: &str = "ExternalMemory::map_image";
        let array = array_descriptor::<T>(OPERATION, shape, levels, flags)?;
        if offset >= self.byte_len() {
            let reason = format!(
                "an image at offset {offset} of memory of {} bytes",
                self.byte_len()
            );
            return Err(Error::argument(OPERATION, reason));
        }
        if stream.context().as_raw() != self.context().as_raw() {
            return Err(Error::argument(
                OPERATION,
                format!(
                    "context mismatch ({stream:?} does not belong to {:?})",
                    self.context()
                ),
            ));
        }
        let description = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
            offset,
            arrayDesc: array,
            numLevels: levels,
            ..CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC::default()
        };
        let mut raw = std::ptr::null_mut();
        let memory = self.as_raw();
        let mapped = self.context().entered(|driver| {
            let output = &raw mut raw;
            let description = &raw const description;
            // SAFETY: both pointers are valid, the context is current, the memory is live, and the
            // caller guarantees the image.
            unsafe { call!(driver, cuExternalMemoryGetMappedMipmappedArray(output, memory, description) creates raw) }
        });
        mapped
            .map_err(|error| error.about(format!("{levels} levels of {shape} of {}", T::FORMAT)))?;
        let memory = self.clone();
        // SAFETY: the driver has just created the array with this shape in the context of the
        // stream, `memory` keeps its elements alive, and the caller orders the accesses of the
        // other API.
        Ok(unsafe {
            MipmappedArray::from_raw_with_owner(stream, raw, shape, levels, flags, memory)
        })
    }
}
