//! Copies from and to arrays.

use std::ffi::c_void;

use curium_driver::extend::PASS_THE_SCOPE;
use curium_driver::hazard::AccessGuard;
use curium_driver::sys::{CUDA_MEMCPY3D, CUmemorytype};
use curium_driver::{Context, Error, Result, Stream};

use super::array_copy::{ArrayCopy, put};
use super::{Array, ArrayRegion, Texel};
use crate::capture_advice::READ_LATER;
use crate::copy::{grid, host, peer};
use crate::{AsDeviceSlice, AsDeviceSliceMut, wait};

/// One side of a copy.
#[derive(Clone, Copy)]
enum Side<'a, T> {
    Array(&'a Array<T>, [usize; 3]),
    /// Elements without gaps.
    Host(*mut c_void),
}

impl<T: Texel> Array<T> {
    /// Copies `source` to the array: row by row, layer by layer, without gaps. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error unless there are as many elements as the array has.
    #[doc(alias = "cuMemcpyHtoA")]
    #[inline]
    pub fn copy_from_slice(&self, source: &[T]) -> Result<()> {
        self.stream().expect_captured("Array::copy_from_slice", "use `copy_from_slice_on(scope, …)`")?;
        self.copy_from_slice_on(self.stream(), source)
    }

    /// As [`Array::copy_from_slice`], on any stream. In a capture the graph keeps a copy of `source`, and copies that in each launch.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_slice`].
    #[inline]
    pub fn copy_from_slice_on(&self, stream: &Stream, source: &[T]) -> Result<()> {
        self.copy_region_from_slice_on(stream, ArrayRegion::whole(self.shape()), source)
    }

    /// Copies the array to `target`: row by row, layer by layer, without gaps. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error unless there is room for as many elements as the array has; the error of any work of the context that failed
    /// before.
    #[doc(alias = "cuMemcpyAtoH")]
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.stream().expect_captured("Array::copy_to_slice", READ_LATER)?;
        self.copy_to_slice_on(self.stream(), target)
    }

    /// As [`Array::copy_to_slice`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_to_slice`]; an argument error if the stream is being captured.
    #[inline]
    pub fn copy_to_slice_on(&self, stream: &Stream, target: &mut [T]) -> Result<()> {
        self.copy_region_to_slice_on(stream, ArrayRegion::whole(self.shape()), target)
    }

    /// A copy of the array on the host. Waits until it is there.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.stream().expect_captured("Array::to_vec", READ_LATER)?;
        self.to_vec_on(self.stream())
    }

    /// As [`Array::to_vec`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`Array::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut target = bytemuck::zeroed_vec(self.len());
        self.copy_to_slice_on(stream, &mut target)?;
        Ok(target)
    }

    /// Copies `source` to a region of the array. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error unless the region is in the array, and there are as many elements as it has.
    #[inline]
    pub fn copy_region_from_slice(&self, region: ArrayRegion, source: &[T]) -> Result<()> {
        let instead = "use `copy_region_from_slice_on(scope, …)`";
        self.stream().expect_captured("Array::copy_region_from_slice", instead)?;
        self.copy_region_from_slice_on(self.stream(), region, source)
    }

    /// As [`Array::copy_region_from_slice`], on any stream. In a capture the graph keeps a copy of `source`, and copies that in each
    /// launch.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_region_from_slice`].
    #[inline]
    pub fn copy_region_from_slice_on(&self, stream: &Stream, region: ArrayRegion, source: &[T]) -> Result<()> {
        const OPERATION: &str = "Array::copy_region_from_slice";
        self.check(OPERATION, region, source.len())?;
        if stream.is_capture_active() {
            return self.copy_from_device_on(stream, region, &host::kept(stream, source)?);
        }
        self.expect_own_device(OPERATION, stream)?;
        stream.refuse_capture(OPERATION, PASS_THE_SCOPE)?;
        let from = Side::Host(source.as_ptr().cast_mut().cast());
        self.uses().write(stream, || {
            // SAFETY: the slice has as many elements as the region and is borrowed until the stream has been waited for below.
            unsafe { copy(stream, Side::Array(self, region.origin), from, region.extent, None) }
        })?;
        wait::until_done(stream)
    }

    /// Copies a region of the array to `target`. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error unless the region is in the array, and there is room for as many elements as it has.
    #[inline]
    pub fn copy_region_to_slice(&self, region: ArrayRegion, target: &mut [T]) -> Result<()> {
        self.stream().expect_captured("Array::copy_region_to_slice", READ_LATER)?;
        self.copy_region_to_slice_on(self.stream(), region, target)
    }

    /// As [`Array::copy_region_to_slice`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_region_to_slice`]; an argument error if the stream is being captured.
    #[inline]
    pub fn copy_region_to_slice_on(&self, stream: &Stream, region: ArrayRegion, target: &mut [T]) -> Result<()> {
        const OPERATION: &str = "Array::copy_region_to_slice";
        self.check(OPERATION, region, target.len())?;
        self.expect_own_device(OPERATION, stream)?;
        stream.refuse_capture(OPERATION, READ_LATER)?;
        let to = Side::Host(target.as_mut_ptr().cast());
        self.uses().read(stream, || {
            // SAFETY: the slice has as many elements as the region and is borrowed until the stream has been waited for below.
            unsafe { copy(stream, to, Side::Array(self, region.origin), region.extent, None) }
        })?;
        wait::until_done(stream)
    }

    /// Copies `source`, which has as many elements and may be on another device, to a region of the array. Returns when the copy is on
    /// the array's stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error unless the region is in the array and the source has as many elements.
    #[doc(alias = "cuMemcpyDtoA")]
    #[inline]
    pub fn copy_from_device(&self, region: ArrayRegion, source: &impl AsDeviceSlice<Element = T>) -> Result<()> {
        self.stream().expect_captured("Array::copy_from_device", "use `copy_from_device_on(scope, …)`")?;
        self.copy_from_device_on(self.stream(), region, source)
    }

    /// As [`Array::copy_from_device`], on any stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_device`].
    #[inline]
    pub fn copy_from_device_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_device";
        stream.expect_captured(OPERATION, PASS_THE_SCOPE)?;
        let source = source.as_device_slice();
        self.check(OPERATION, region, source.len())?;
        self.driver().expect_same(source.stream().driver(), OPERATION)?;
        let memory = grid::End { end: source.end(), place: tight::<T>(region.extent) };
        ArrayCopy::new(OPERATION, (self, region.origin), memory, true).run(stream)
    }

    /// Copies a region of the array to `target`, which has as many elements and may be on another device. Returns when the copy is on the
    /// array's stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error unless the region is in the array and the target has as many elements.
    #[doc(alias = "cuMemcpyAtoD")]
    #[inline]
    pub fn copy_to_device(&self, region: ArrayRegion, target: &mut impl AsDeviceSliceMut<Element = T>) -> Result<()> {
        self.stream().expect_captured("Array::copy_to_device", "use `copy_to_device_on(scope, …)`")?;
        self.copy_to_device_on(self.stream(), region, target)
    }

    /// As [`Array::copy_to_device`], on any stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_to_device`].
    #[inline]
    pub fn copy_to_device_on(
        &self,
        stream: &Stream,
        region: ArrayRegion,
        target: &mut impl AsDeviceSliceMut<Element = T>,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_to_device";
        stream.expect_captured(OPERATION, PASS_THE_SCOPE)?;
        let target = target.as_device_slice_mut();
        self.check(OPERATION, region, target.len())?;
        self.driver().expect_same(target.stream().driver(), OPERATION)?;
        let memory = grid::End { end: target.into_end(), place: tight::<T>(region.extent) };
        ArrayCopy::new(OPERATION, (self, region.origin), memory, false).run(stream)
    }

    /// Copies a region of another array, which may be on another device, to the place of this one that begins at `origin`. Returns when
    /// the copy is on this array's stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error unless the region is in the other array and its place in this one, and the two are not the same.
    #[doc(alias = "cuMemcpyAtoA")]
    #[inline]
    pub fn copy_from_array(&self, origin: [usize; 3], source: &Self, region: ArrayRegion) -> Result<()> {
        self.stream().expect_captured("Array::copy_from_array", "use `copy_from_array_on(scope, …)`")?;
        self.copy_from_array_on(self.stream(), origin, source, region)
    }

    /// As [`Array::copy_from_array`], on any stream.
    ///
    /// CUDA: `cuMemcpy3DAsync_v2`, `cuMemcpy3DPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`Array::copy_from_array`].
    #[inline]
    pub fn copy_from_array_on(
        &self,
        stream: &Stream,
        origin: [usize; 3],
        source: &Self,
        region: ArrayRegion,
    ) -> Result<()> {
        const OPERATION: &str = "Array::copy_from_array";
        stream.expect_captured(OPERATION, PASS_THE_SCOPE)?;
        self.driver().expect_same(source.driver(), OPERATION)?;
        region.check(OPERATION, source.shape())?;
        ArrayRegion { origin, ..region }.check(OPERATION, self.shape())?;
        let (to, from) = (Side::Array(self, origin), Side::Array(source, region.origin));
        let contexts = (self.stream().context(), source.stream().context());
        let is_apart =
            ![contexts.0, contexts.1].into_iter().all(|context| context.shares_objects_with(stream.context()));
        if is_apart && self.stream().device().as_raw() != source.stream().device().as_raw() {
            peer::connect(contexts.0, contexts.1)?;
        }
        // SAFETY: both regions are in their arrays, which are of these contexts, and the stream has waited for all that both must wait for.
        let enqueue = || unsafe { copy(stream, to, from, region.extent, is_apart.then_some(contexts)) };
        let mut guard = AccessGuard::new(stream)?;
        guard.keep(&self.handle);
        guard.keep(&source.handle);
        let is_one = std::sync::Arc::ptr_eq(self.uses(), source.uses());
        if !is_one {
            source.uses().before_read(&mut guard)?;
        }
        self.uses().before_write(&mut guard)?;
        enqueue()?;
        if !is_one {
            source.uses().after_read(&mut guard);
        }
        self.uses().after_write(&mut guard);
        Ok(())
    }

    /// An argument error unless work on `stream` reaches the array by itself.
    #[inline]
    fn expect_own_device(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        if self.stream().context().shares_objects_with(stream.context()) {
            return Ok(());
        }
        Err(Error::argument(operation, format!("{stream:?} is of another context than the array")))
    }

    #[inline]
    fn check(&self, operation: &'static str, region: ArrayRegion, len: usize) -> Result<()> {
        region.check(operation, self.shape())?;
        let count = region.len();
        if count == len {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("length mismatch (the region has {count} elements, the other side has {len})"),
        ))
    }
}

impl<T: Texel> Side<'_, T> {
    #[inline]
    fn source(&self, raw: &mut CUDA_MEMCPY3D, [width, rows, _]: [usize; 3]) {
        let size = size_of::<T>();
        (raw.srcPitch, raw.srcHeight) = (width * size, rows);
        match *self {
            Self::Array(array, [x, y, z]) => {
                raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (raw.srcArray, raw.srcXInBytes, raw.srcY, raw.srcZ) = (array.as_raw(), x * size, y, z);
            }
            Self::Host(pointer) => {
                raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                raw.srcHost = pointer;
            }
        }
    }

    #[inline]
    fn target(&self, raw: &mut CUDA_MEMCPY3D, [width, rows, _]: [usize; 3]) {
        let size = size_of::<T>();
        (raw.dstPitch, raw.dstHeight) = (width * size, rows);
        match *self {
            Self::Array(array, [x, y, z]) => {
                raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (raw.dstArray, raw.dstXInBytes, raw.dstY, raw.dstZ) = (array.as_raw(), x * size, y, z);
            }
            Self::Host(pointer) => {
                raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                raw.dstHost = pointer;
            }
        }
    }
}

/// Elements without gaps.
#[inline]
const fn tight<T>([width, height, depth]: [usize; 3]) -> grid::Place {
    let width = width * size_of::<T>();
    grid::Place { width, height, depth, pitch: width, layer: height }
}

/// Puts a copy of `extent` elements, rows and layers on `stream`; between contexts if they are named.
///
/// # Safety
///
/// Both sides have them, are of the contexts, live until the copy is done, and the stream has waited for all that the copy must wait for.
#[inline]
unsafe fn copy<T: Texel>(
    stream: &Stream,
    to: Side<'_, T>,
    from: Side<'_, T>,
    extent: [usize; 3],
    contexts: Option<(&Context, &Context)>,
) -> Result<()> {
    let [width, rows, layers] = extent;
    let mut raw =
        CUDA_MEMCPY3D { WidthInBytes: width * size_of::<T>(), Height: rows, Depth: layers, ..CUDA_MEMCPY3D::default() };
    to.target(&mut raw, extent);
    from.source(&mut raw, extent);
    // SAFETY: the caller vouches for both sides.
    let result = unsafe { put(stream, &raw, contexts) };
    result.map_err(|error| error.about(format!("{extent:?} elements of {}", T::FORMAT)))
}
