//! Batches of copies, prefetches and discards.

use std::ffi::c_void;
use std::ptr;

use curium_sys::{
    CUDA_MEMCPY3D_BATCH_OP, CUdeviceptr, CUmemLocation, CUmemcpyAttributes, CUstream,
};

use crate::memory::address;
use crate::properties::MAJOR;
use crate::state::{Result, enter, per_thread};
use crate::{cu, forward, runtime};

/// The copies of a batch.
struct Copies {
    to: *mut CUdeviceptr,
    from: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attributes: *mut CUmemcpyAttributes,
    indices: *mut usize,
    attribute_count: usize,
}

/// The last arguments of a batch. Up to CUDA 12, an output for the index of a failed copy precedes
/// the others.
struct Submission {
    failure: *mut usize,
    flags: u64,
    stream: CUstream,
}

impl Submission {
    fn from_two_arguments(first: usize, second: CUstream) -> Self {
        if MAJOR <= 12 {
            Self {
                failure: ptr::with_exposed_provenance_mut(first),
                flags: 0,
                stream: second,
            }
        } else {
            Self {
                failure: ptr::null_mut(),
                flags: 0,
                stream: ptr::with_exposed_provenance_mut(first),
            }
        }
    }

    fn from_three_arguments(first: usize, second: usize, third: CUstream) -> Self {
        if MAJOR <= 12 {
            Self {
                failure: ptr::with_exposed_provenance_mut(first),
                flags: second as u64,
                stream: third,
            }
        } else {
            Self {
                failure: ptr::null_mut(),
                flags: first as u64,
                stream: ptr::with_exposed_provenance_mut(second),
            }
        }
    }

    fn with_per_thread_stream(self) -> Self {
        Self {
            stream: per_thread(self.stream),
            ..self
        }
    }
}

fn copy_batch(copies: &Copies, submission: &Submission) -> Result<()> {
    enter()?;
    if MAJOR <= 12 {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        return unsafe {
            cu!(cuMemcpyBatchAsync(
                copies.to,
                copies.from,
                copies.sizes,
                copies.count,
                copies.attributes,
                copies.indices,
                copies.attribute_count,
                submission.failure,
                submission.stream,
            ))
        };
    }
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe {
        cu!(cuMemcpyBatchAsync_v2(
            copies.to,
            copies.from,
            copies.sizes,
            copies.count,
            copies.attributes,
            copies.indices,
            copies.attribute_count,
            submission.stream,
        ))
    }
}

fn copy_3d_batch(
    count: usize,
    operations: *mut CUDA_MEMCPY3D_BATCH_OP,
    submission: &Submission,
) -> Result<()> {
    enter()?;
    let flags = submission.flags;
    let stream = submission.stream;
    if MAJOR <= 12 {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        return unsafe {
            cu!(cuMemcpy3DBatchAsync(
                count,
                operations,
                submission.failure,
                flags,
                stream
            ))
        };
    }
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuMemcpy3DBatchAsync_v2(count, operations, flags, stream)) }
}

runtime! {
    fn cudaMemcpyBatchAsync(
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indices: *mut usize,
        attribute_count: usize,
        first: usize,
        second: CUstream,
    ) {
        let copies = Copies { to, from, sizes, count, attributes, indices, attribute_count };
        copy_batch(&copies, &Submission::from_two_arguments(first, second))
    }

    fn cudaMemcpyBatchAsync_ptsz(
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indices: *mut usize,
        attribute_count: usize,
        first: usize,
        second: CUstream,
    ) {
        let copies = Copies { to, from, sizes, count, attributes, indices, attribute_count };
        let submission = Submission::from_two_arguments(first, second).with_per_thread_stream();
        copy_batch(&copies, &submission)
    }

    fn cudaMemcpy3DBatchAsync(
        count: usize,
        operations: *mut CUDA_MEMCPY3D_BATCH_OP,
        first: usize,
        second: usize,
        third: CUstream,
    ) {
        let submission = Submission::from_three_arguments(first, second, third);
        copy_3d_batch(count, operations, &submission)
    }

    fn cudaMemcpy3DBatchAsync_ptsz(
        count: usize,
        operations: *mut CUDA_MEMCPY3D_BATCH_OP,
        first: usize,
        second: usize,
        third: CUstream,
    ) {
        let submission = Submission::from_three_arguments(first, second, third);
        copy_3d_batch(count, operations, &submission.with_per_thread_stream())
    }
}

// The structures of the runtime have the layout of the driver's.
forward! {
    [cudaMemcpy3DWithAttributesAsync_ptsz(stream)]
    unsafe fn cudaMemcpy3DWithAttributesAsync(
        operation: *mut CUDA_MEMCPY3D_BATCH_OP,
        flags: u64,
        stream: CUstream,
    ) = cuMemcpy3DWithAttributesAsync(operation, flags, stream);

    [cudaMemcpyWithAttributesAsync_ptsz(stream)]
    unsafe fn cudaMemcpyWithAttributesAsync(
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        attributes: *mut CUmemcpyAttributes,
        stream: CUstream,
    ) = cuMemcpyWithAttributesAsync(address(to), address(from), size, attributes, stream);

    [cudaMemPrefetchBatchAsync_ptsz(stream)]
    unsafe fn cudaMemPrefetchBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        indices: *mut usize,
        location_count: usize,
        flags: u64,
        stream: CUstream,
    ) = cuMemPrefetchBatchAsync(
        addresses,
        sizes,
        count,
        locations,
        indices,
        location_count,
        flags,
        stream,
    );

    [cudaMemDiscardBatchAsync_ptsz(stream)]
    unsafe fn cudaMemDiscardBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        flags: u64,
        stream: CUstream,
    ) = cuMemDiscardBatchAsync(addresses, sizes, count, flags, stream);

    [cudaMemDiscardAndPrefetchBatchAsync_ptsz(stream)]
    unsafe fn cudaMemDiscardAndPrefetchBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        indices: *mut usize,
        location_count: usize,
        flags: u64,
        stream: CUstream,
    ) = cuMemDiscardAndPrefetchBatchAsync(
        addresses,
        sizes,
        count,
        locations,
        indices,
        location_count,
        flags,
        stream,
    );
}
