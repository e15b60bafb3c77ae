//! Images that another interface has in its memory.

use curium_driver::sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
use curium_driver::{Error, Result, Stream, call};

use super::ExternalMemory;
use crate::array::check_levels;
use crate::{ArrayFlags, ArrayShape, MipmappedArray, Texel};

impl ExternalMemory {
    /// The image that begins at `offset`, as an array of `levels` levels of which level 0 has this shape. It copies on `stream`, and keeps
    /// the memory.
    ///
    /// An image that the other interface renders to was made with [`ArrayFlags::COLOR_ATTACHMENT`].
    ///
    /// CUDA: `cuExternalMemoryGetMappedMipmappedArray`.
    ///
    /// # Safety
    ///
    /// - The other interface has an image of this shape, element type, number of levels and these flags at `offset`.
    /// - What it does with the image is ordered before or after the uses here, by semaphores that both sides know.
    ///
    /// # Errors
    ///
    /// An argument error for a shape without elements, for no level and for more than the shape can have, if `offset` is beyond the memory,
    /// and if the stream is of another context; whatever the driver returns.
    #[doc(alias = "cuExternalMemoryGetMappedMipmappedArray")]
    #[inline]
    pub unsafe fn map_image<T: Texel>(
        &self,
        stream: &Stream,
        offset: u64,
        shape: ArrayShape,
        levels: u32,
        flags: ArrayFlags,
    ) -> Result<MipmappedArray<T>> {
        const OPERATION: &str = "ExternalMemory::map_image";
        check_levels(OPERATION, shape, levels)?;
        if offset >= self.byte_len() {
            let reason = format!("an image at offset {offset} of memory of {} bytes", self.byte_len());
            return Err(Error::argument(OPERATION, reason));
        }
        if stream.context().as_raw() != self.context().as_raw() {
            return Err(Error::argument(OPERATION, format!("{stream:?} is not of {:?}", self.context())));
        }
        let description = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
            offset,
            arrayDesc: shape.to_raw::<T>(flags),
            numLevels: levels,
            ..CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC::default()
        };
        let (mut raw, memory) = (std::ptr::null_mut(), self.as_raw());
        let mapped = self.context().entered(|driver| {
            let (place, description) = (&raw mut raw, &raw const description);
            // SAFETY: both places are valid, the context is current, the memory is live, and the caller vouches for the image.
            unsafe { call!(driver, cuExternalMemoryGetMappedMipmappedArray(place, memory, description) creates raw) }
        });
        mapped.map_err(|error| error.about(format!("{levels} levels of {shape} of {}", T::FORMAT)))?;
        Ok(MipmappedArray::in_external(stream, raw, (shape, levels, flags), self.clone()))
    }
}
