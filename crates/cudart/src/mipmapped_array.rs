//! Mipmapped arrays.

use std::ffi::{c_int, c_uint};

use curium_sys::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUarray, CUmipmappedArray,
};

use crate::array::{Extent, descriptor};
use crate::state::enter;
use crate::texture::Channels;
use crate::{cu, forward, runtime};

runtime! {
    fn cudaMallocMipmappedArray(
        mipmap: *mut CUmipmappedArray,
        channels: Option<&Channels>,
        extent: Extent,
        levels: c_uint,
        flags: c_uint,
    ) {
        enter()?;
        let descriptor = descriptor(channels, extent, flags)?;
        // SAFETY: `descriptor` lives during the call, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuMipmappedArrayCreate(mipmap, &raw const descriptor, levels)) }
    }

    fn cudaFreeMipmappedArray(mipmap: CUmipmappedArray) {
        enter()?;
        if mipmap.is_null() {
            Ok(())
        } else {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            unsafe { cu!(cuMipmappedArrayDestroy(mipmap)) }
        }
    }
}

forward! {
    unsafe fn cudaMipmappedArrayGetMemoryRequirements(
        requirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        mipmap: CUmipmappedArray,
        device: c_int,
    ) = cuMipmappedArrayGetMemoryRequirements(requirements, mipmap, device);

    unsafe fn cudaMipmappedArrayGetSparseProperties(
        properties: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
        mipmap: CUmipmappedArray,
    ) = cuMipmappedArrayGetSparseProperties(properties, mipmap);

    unsafe fn cudaGetMipmappedArrayLevel(
        output: *mut CUarray,
        mipmap: CUmipmappedArray,
        level: c_uint,
    ) = cuMipmappedArrayGetLevel(output, mipmap, level);
}
