//! Copies from and to arrays.

use std::ffi::c_void;

use curium_driver::hazard::Operation;
use curium_driver::sys::{CUDA_MEMCPY3D, CUmemorytype};
use curium_driver::{Context, Error, Result, Stream};

use super::array_copy::{ArrayCopy, enqueue};
use super::{Array, ArrayRegion, Texel};
use crate::capture_advice::{ON, READ_LATER};
use crate::peer_access;
use crate::transfer::{host, pitched};
use crate::{DeviceSlice, wait};

/// An operand of a copy.
#[derive(Clone, Copy)]
enum Side<'a, T> {
    Array(&'a Array<T>, [usize; 3]),
    /// Host elements without padding.
    Host(*mut c_void),
}

impl<T: Texel> Array<T> {
    /// Copies `source` to the array, row by row and layer by layer, without padding. Waits until
    /// the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the number of elements differs.
    #[doc(alias = "cuMemcpyHtoA")]
    pub fn copy_from_slice(&self, source: &[T]) -> Result<()> {
        self.upload(
            "Array::copy_from_slice",
            ArrayRegion::whole(self.shape()),
            source,
        )
    }

    /// Copies the array to `target`, row by row and layer by layer, without padding. Waits until
    /// the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the number of elements differs; an error of earlier asynchronous work
    /// in the context.
    #[doc(alias = "cuMemcpyAtoH")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.download(
            "Array::copy_to_slice",
            ArrayRegion::whole(self.shape()),
            target,
        )
    }

    /// Copies the array to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut target = bytemuck::zeroed_vec(self.len());
        self.download(
            "Array::to_vec",
            ArrayRegion::whole(self.shape()),
            &mut target,
        )?;
        Ok(target)
    }

    /// Copies `source` to a region of the array. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    pub fn copy_region_from_slice(&self, region: ArrayRegion, source: &[T]) -> Result<()> {
        self.upload("Array::copy_region_from_slice", region, source)
    }

    /// Copies a region of the array to `target`. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    pub fn copy_region_to_slice(&self, region: ArrayRegion, target: &mut [T]) -> Result<()> {
        self.download("Array::copy_region_to_slice", region, target)
    }

    /// Copies `source`, which must have the same number of elements and may be on another device,
    /// to a region of the array. Returns once the copy is enqueued on the stream of this value.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    #[doc(alias = "cuMemcpyDtoA")]
    pub fn copy_from_device(&self, region: ArrayRegion, source: &DeviceSlice<T>) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_device";
        let operation = self.stream().enqueue_or(OPERATION, ON)?;
        self.check(OPERATION, region, source.len())?;
        self.driver()
            .check_same(source.owner_stream().driver(), OPERATION)?;
        self.copy_from_memory(operation, region, source)
    }

    /// Copies a region of the array to `target`, which must have the same number of elements and
    /// may be on another device. Returns once the copy is enqueued on the stream of this value.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    #[doc(alias = "cuMemcpyAtoD")]
    pub fn copy_to_device(&self, region: ArrayRegion, target: &mut DeviceSlice<T>) -> Result<()> {
        const OPERATION: &str = "Array::copy_to_device";
        let operation = self.stream().enqueue_or(OPERATION, ON)?;
        self.check(OPERATION, region, target.len())?;
        self.driver()
            .check_same(target.owner_stream().driver(), OPERATION)?;
        let memory = pitched::PitchedOperand {
            end: target.operand(),
            layout: tight::<T>(region.extent),
        };
        ArrayCopy::new(self, region.origin, memory, false).run(operation)
    }

    /// Copies `region` of another array, which may be on another device, to the region of this
    /// array that starts at `origin`. Returns once the copy is enqueued on the stream of this
    /// value.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if a region is out of bounds, or if both arrays are the same.
    #[doc(alias = "cuMemcpyAtoA")]
    pub fn copy_from_array(
        &self,
        origin: [usize; 3],
        source: &Self,
        region: ArrayRegion,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_array";
        let mut operation = self.stream().enqueue_or(OPERATION, ON)?;
        self.driver().check_same(source.driver(), OPERATION)?;
        region.check(OPERATION, source.shape())?;
        ArrayRegion { origin, ..region }.check(OPERATION, self.shape())?;
        let to = Side::Array(self, origin);
        let from = Side::Array(source, region.origin);
        let stream = operation.stream();
        let to_stream = self.uses().stream();
        let from_stream = source.uses().stream();
        let contexts = (to_stream.context(), from_stream.context());
        let needs_contexts = !contexts.0.shares_objects_with(stream.context())
            || !contexts.1.shares_objects_with(stream.context());
        if needs_contexts && to_stream.device().as_raw() != from_stream.device().as_raw() {
            peer_access::connect(contexts.0, contexts.1)?;
        }
        operation.keep(&self.handle);
        operation.keep(&source.handle);
        let is_one = std::sync::Arc::ptr_eq(self.uses(), source.uses());
        if !is_one {
            source.uses().before_read(&mut operation)?;
        }
        self.uses().before_write(&mut operation)?;
        // SAFETY: both regions are in bounds, the arrays belong to these contexts, and the stream
        // has waited for conflicting accesses.
        unsafe {
            copy(
                &operation,
                to,
                from,
                region.extent,
                needs_contexts.then_some(contexts),
            )
        }?;
        if !is_one {
            source.uses().after_read(&mut operation);
        }
        self.uses().after_write(&mut operation);
        Ok(())
    }

    /// Copies `source` to a region.
    fn upload(&self, operation: &'static str, region: ArrayRegion, source: &[T]) -> Result<()> {
        let stream = self.stream();
        self.check(operation, region, source.len())?;
        if stream.is_capture_active() {
            let kept = host::kept(stream, source)?;
            return self.copy_from_memory(stream.enqueue_or(operation, ON)?, region, &kept);
        }
        self.check_own_device(operation, stream)?;
        let mut enqueued = stream.enqueue_now(operation, ON)?.blocking();
        let from = Side::Host(source.as_ptr().cast_mut().cast());
        self.uses().before_write(&mut enqueued)?;
        // SAFETY: the slice has as many elements as the region and is borrowed until the stream has
        // been synchronized below.
        unsafe {
            copy(
                &enqueued,
                Side::Array(self, region.origin),
                from,
                region.extent,
                None,
            )
        }?;
        self.uses().after_write(&mut enqueued);
        drop(enqueued);
        wait::until_done(stream)
    }

    /// Copies a region to `target`.
    fn download(
        &self,
        operation: &'static str,
        region: ArrayRegion,
        target: &mut [T],
    ) -> Result<()> {
        let stream = self.stream();
        self.check(operation, region, target.len())?;
        self.check_own_device(operation, stream)?;
        let mut enqueued = stream.enqueue_now(operation, READ_LATER)?.blocking();
        let to = Side::Host(target.as_mut_ptr().cast());
        self.uses().before_read(&mut enqueued)?;
        // SAFETY: the slice has as many elements as the region and is borrowed until the stream has
        // been synchronized below.
        unsafe {
            copy(
                &enqueued,
                to,
                Side::Array(self, region.origin),
                region.extent,
                None,
            )
        }?;
        self.uses().after_read(&mut enqueued);
        drop(enqueued);
        wait::until_done(stream)
    }

    /// Enqueues a copy of `source`, which has as many elements as the region.
    fn copy_from_memory(
        &self,
        operation: Operation<'_>,
        region: ArrayRegion,
        source: &DeviceSlice<T>,
    ) -> Result<()> {
        let memory = pitched::PitchedOperand {
            end: source.operand(),
            layout: tight::<T>(region.extent),
        };
        ArrayCopy::new(self, region.origin, memory, true).run(operation)
    }

    /// Returns an argument error unless work on `stream` can access the array directly.
    fn check_own_device(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        if self
            .uses()
            .stream()
            .context()
            .shares_objects_with(stream.context())
        {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("context mismatch (the array belongs to another context than {stream:?})"),
        ))
    }

    fn check(&self, operation: &'static str, region: ArrayRegion, len: usize) -> Result<()> {
        region.check(operation, self.shape())?;
        let count = region.len();
        if count == len {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!(
                "length mismatch (the region has {count} elements, the other operand has {len})"
            ),
        ))
    }
}

impl<T: Texel> Side<'_, T> {
    fn source(&self, raw: &mut CUDA_MEMCPY3D, [width, rows, _]: [usize; 3]) {
        let size = size_of::<T>();
        (raw.srcPitch, raw.srcHeight) = (width * size, rows);
        match *self {
            Self::Array(array, [x, y, z]) => {
                raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (raw.srcArray, raw.srcXInBytes, raw.srcY, raw.srcZ) =
                    (array.as_raw(), x * size, y, z);
            }
            Self::Host(pointer) => {
                raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                raw.srcHost = pointer;
            }
        }
    }

    fn target(&self, raw: &mut CUDA_MEMCPY3D, [width, rows, _]: [usize; 3]) {
        let size = size_of::<T>();
        (raw.dstPitch, raw.dstHeight) = (width * size, rows);
        match *self {
            Self::Array(array, [x, y, z]) => {
                raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (raw.dstArray, raw.dstXInBytes, raw.dstY, raw.dstZ) =
                    (array.as_raw(), x * size, y, z);
            }
            Self::Host(pointer) => {
                raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                raw.dstHost = pointer;
            }
        }
    }
}

/// Returns the layout of elements without padding.
const fn tight<T>([width, height, depth]: [usize; 3]) -> pitched::PitchedLayout {
    let width = width * size_of::<T>();
    pitched::PitchedLayout {
        width,
        height,
        depth,
        pitch: width,
        layer: height,
    }
}

/// Enqueues a copy of `extent` elements, rows and layers, between contexts if they are given.
///
/// # Safety
///
/// Both operands are in bounds, belong to the contexts, and are live until the copy has completed.
/// The stream has waited for conflicting accesses.
unsafe fn copy<T: Texel>(
    operation: &Operation<'_>,
    to: Side<'_, T>,
    from: Side<'_, T>,
    extent: [usize; 3],
    contexts: Option<(&Context, &Context)>,
) -> Result<()> {
    let [width, rows, layers] = extent;
    let mut raw = CUDA_MEMCPY3D {
        WidthInBytes: width * size_of::<T>(),
        Height: rows,
        Depth: layers,
        ..CUDA_MEMCPY3D::default()
    };
    to.target(&mut raw, extent);
    from.source(&mut raw, extent);
    // SAFETY: the caller guarantees both operands.
    let result = unsafe { enqueue(operation, &raw, contexts) };
    result.map_err(|error| error.about(format!("{extent:?} elements of {}", T::FORMAT)))
}
