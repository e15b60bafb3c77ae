//! Copies from and to arrays.

use std::ffi::c_void;

use curium_driver::extend::ON_THE_SCOPE;
use curium_driver::hazard::Operation;
use curium_driver::sys::{CUDA_MEMCPY3D, CUmemorytype};
use curium_driver::{Context, Error, Result, Stream};

use super::array_copy::{ArrayCopy, enqueue};
use super::{Array, ArrayRegion, Texel};
use crate::capture_advice::{READ_LATER, without_stream};
use crate::copy::{host, peer, pitched};
use crate::{AsDeviceSlice, AsDeviceSliceMut, wait};

/// An operand of a copy.
#[derive(Clone, Copy)]
enum Side<'a, T> {
    Array(&'a Array<T>, [usize; 3]),
    /// Host elements without padding.
    Host(*mut c_void),
}

impl<T: Texel> Array<T> {
    /// Copies `source` to the array, row by row and layer by layer, without padding. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the number of elements differs.
    #[doc(alias = "cuMemcpyHtoA")]
    pub fn copy_from_slice(&self, source: &[T]) -> Result<()> {
        self.copy_from_slice_on(self.stream(), source)
            .map_err(without_stream("Array::copy_from_slice"))
    }

    /// Copies like [`Array::copy_from_slice`], on `stream`. In a capture, the graph keeps a copy of `source` and uploads it at each
    /// launch.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_slice`].
    pub fn copy_from_slice_on(&self, stream: &Stream, source: &[T]) -> Result<()> {
        self.copy_region_from_slice_on(stream, ArrayRegion::whole(self.shape()), source)
    }

    /// Copies the array to `target`, row by row and layer by layer, without padding. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the number of elements differs; an error of earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpyAtoH")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.copy_to_slice_on(self.stream(), target)
            .map_err(without_stream("Array::copy_to_slice"))
    }

    /// Copies like [`Array::copy_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_to_slice`]; an argument error if the stream is being captured.
    pub fn copy_to_slice_on(&self, stream: &Stream, target: &mut [T]) -> Result<()> {
        self.copy_region_to_slice_on(stream, ArrayRegion::whole(self.shape()), target)
    }

    /// Copies the array to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.to_vec_on(self.stream())
            .map_err(without_stream("Array::to_vec"))
    }

    /// Copies like [`Array::to_vec`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`Array::to_vec`]; an argument error if the stream is being captured.
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut target = bytemuck::zeroed_vec(self.len());
        self.copy_to_slice_on(stream, &mut target)?;
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
        self.copy_region_from_slice_on(self.stream(), region, source)
            .map_err(without_stream("Array::copy_region_from_slice"))
    }

    /// Copies like [`Array::copy_region_from_slice`], on `stream`. In a capture, the graph keeps a copy of `source` and uploads it at each
    /// launch.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_region_from_slice`].
    pub fn copy_region_from_slice_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        source: &[T],
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_region_from_slice_on";
        self.check(OPERATION, region, source.len())?;
        if stream.is_capture_active() {
            return self.copy_from_device_on(stream, region, &host::kept(stream, source)?);
        }
        self.expect_own_device(OPERATION, stream)?;
        let mut operation = stream.enqueue_now(OPERATION, ON_THE_SCOPE)?;
        let from = Side::Host(source.as_ptr().cast_mut().cast());
        self.uses().before_write(&mut operation)?;
        // SAFETY: the slice has as many elements as the region and is borrowed until the stream has been synchronized below.
        unsafe {
            copy(
                &operation,
                Side::Array(self, region.origin),
                from,
                region.extent,
                None,
            )
        }?;
        self.uses().after_write(&mut operation);
        drop(operation);
        wait::until_done(stream)
    }

    /// Copies a region of the array to `target`. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    pub fn copy_region_to_slice(&self, region: ArrayRegion, target: &mut [T]) -> Result<()> {
        self.copy_region_to_slice_on(self.stream(), region, target)
            .map_err(without_stream("Array::copy_region_to_slice"))
    }

    /// Copies like [`Array::copy_region_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_region_to_slice`]; an argument error if the stream is being captured.
    pub fn copy_region_to_slice_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        target: &mut [T],
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_region_to_slice_on";
        self.check(OPERATION, region, target.len())?;
        self.expect_own_device(OPERATION, stream)?;
        let mut operation = stream.enqueue_now(OPERATION, READ_LATER)?;
        let to = Side::Host(target.as_mut_ptr().cast());
        self.uses().before_read(&mut operation)?;
        // SAFETY: the slice has as many elements as the region and is borrowed until the stream has been synchronized below.
        unsafe {
            copy(
                &operation,
                to,
                Side::Array(self, region.origin),
                region.extent,
                None,
            )
        }?;
        self.uses().after_read(&mut operation);
        drop(operation);
        wait::until_done(stream)
    }

    /// Copies `source`, which must have the same number of elements and may be on another device, to a region of the
    /// array. Returns once the copy is enqueued on the array's stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    #[doc(alias = "cuMemcpyDtoA")]
    pub fn copy_from_device(
        &self,
        region: ArrayRegion,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()> {
        self.copy_from_device_on(self.stream(), region, source)
            .map_err(without_stream("Array::copy_from_device"))
    }

    /// Copies like [`Array::copy_from_device`], on `stream`.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_device`].
    pub fn copy_from_device_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_device_on";
        let operation = stream.enqueue(OPERATION)?;
        let source = source.as_device_slice();
        self.check(OPERATION, region, source.len())?;
        self.driver()
            .expect_same(source.stream().driver(), OPERATION)?;
        let memory = pitched::PitchedOperand {
            end: source.end(),
            layout: tight::<T>(region.extent),
        };
        ArrayCopy::new(self, region.origin, memory, true).run(operation)
    }

    /// Copies a region of the array to `target`, which must have the same number of elements and may be on another
    /// device. Returns once the copy is enqueued on the array's stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds or the number of elements differs.
    #[doc(alias = "cuMemcpyAtoD")]
    pub fn copy_to_device(
        &self,
        region: ArrayRegion,
        target: &mut impl AsDeviceSliceMut<Element = T>,
    ) -> Result<()> {
        self.copy_to_device_on(self.stream(), region, target)
            .map_err(without_stream("Array::copy_to_device"))
    }

    /// Copies like [`Array::copy_to_device`], on `stream`.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_to_device`].
    pub fn copy_to_device_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        target: &mut impl AsDeviceSliceMut<Element = T>,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_to_device_on";
        let operation = stream.enqueue(OPERATION)?;
        let target = target.as_device_slice_mut();
        self.check(OPERATION, region, target.len())?;
        self.driver()
            .expect_same(target.stream().driver(), OPERATION)?;
        let memory = pitched::PitchedOperand {
            end: target.into_end(),
            layout: tight::<T>(region.extent),
        };
        ArrayCopy::new(self, region.origin, memory, false).run(operation)
    }

    /// Copies `region` of another array, which may be on another device, to the region of this array that starts at
    /// `origin`. Returns once the copy is enqueued on this array's stream.
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
        self.copy_from_array_on(self.stream(), origin, source, region)
            .map_err(without_stream("Array::copy_from_array"))
    }

    /// Copies like [`Array::copy_from_array`], on `stream`.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_array`].
    pub fn copy_from_array_on(
        &self,
        stream: &Stream,
        origin: [usize; 3],
        source: &Self,
        region: ArrayRegion,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_array_on";
        let mut operation = stream.enqueue(OPERATION)?;
        self.driver().expect_same(source.driver(), OPERATION)?;
        region.check(OPERATION, source.shape())?;
        ArrayRegion { origin, ..region }.check(OPERATION, self.shape())?;
        let to = Side::Array(self, origin);
        let from = Side::Array(source, region.origin);
        let contexts = (self.stream().context(), source.stream().context());
        let needs_contexts = !contexts.0.shares_objects_with(stream.context())
            || !contexts.1.shares_objects_with(stream.context());
        if needs_contexts && self.stream().device().as_raw() != source.stream().device().as_raw() {
            peer::connect(contexts.0, contexts.1)?;
        }
        operation.keep(&self.handle);
        operation.keep(&source.handle);
        let is_one = std::sync::Arc::ptr_eq(self.uses(), source.uses());
        if !is_one {
            source.uses().before_read(&mut operation)?;
        }
        self.uses().before_write(&mut operation)?;
        // SAFETY: both regions are in bounds, the arrays belong to these contexts, and the stream has waited for
        // conflicting accesses.
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

    /// Returns an argument error unless work on `stream` can access the array directly.
    fn expect_own_device(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        if self
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
/// Both operands are in bounds, belong to the contexts, and are live until the copy has completed. The stream has
/// waited for conflicting accesses.
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
