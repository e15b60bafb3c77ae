//! Rows and layers that are written.

use std::fmt;

use bytemuck::NoUninit;
use curium_driver::extend::PASS_THE_SCOPE;
use curium_driver::hazard::AccessGuard;
use curium_driver::{DevicePointer, Result, Stream};

use super::{Extent, Grid, HostGrid, Pitch, describe, extent, part};
use crate::copy::CopyOptions;
use crate::copy::grid::{self as copies, Place};
use crate::copy::host;
use crate::fill::{self, Rows};
use crate::{DeviceSliceMut, wait};

/// Rows and layers of elements in memory that the device uses, borrowed exclusively. See [`Grid`].
pub struct GridMut<'a, T> {
    start: DeviceSliceMut<'a, T>,
    place: Place,
}

impl<'a, T> DeviceSliceMut<'a, T> {
    /// The elements from the first on as rows and layers. [`DeviceSliceMut::reborrow`] keeps this view.
    ///
    /// # Errors
    ///
    /// An argument error if they reach beyond the view, or if rows or layers overlap.
    #[inline]
    pub fn grid(self, extent: Extent, pitch: Pitch) -> Result<GridMut<'a, T>> {
        let place = pitch.place::<T>("DeviceSliceMut::grid", extent, self.byte_len())?;
        Ok(GridMut { start: self, place })
    }
}

impl<'a, T> GridMut<'a, T> {
    /// The rows and layers from `start` on, which are known to lie in the memory of the view.
    #[inline]
    pub(crate) fn new(start: DeviceSliceMut<'a, T>, place: Place) -> Self {
        Self { start, place }
    }

    /// How many elements, rows and layers there are.
    #[must_use]
    #[inline]
    pub fn extent(&self) -> Extent {
        extent::<T>(&self.place)
    }

    /// How rows and layers lie in memory.
    #[must_use]
    #[inline]
    pub fn pitch(&self) -> Pitch {
        Pitch { row_bytes: self.place.pitch, layer_rows: self.place.layer }
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.start.as_pointer()
    }

    /// The stream of the memory that this is a view of, on which it copies.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.start.stream()
    }

    /// The same elements to be read.
    #[must_use]
    #[inline]
    pub fn as_grid(&self) -> Grid<'_, T> {
        Grid::new(self.start.as_slice(), self.place)
    }

    /// The box of `extent` whose first element is in column, row and layer `origin`.
    ///
    /// # Errors
    ///
    /// An argument error if it reaches beyond this one.
    #[inline]
    pub fn part(self, origin: [usize; 3], extent: Extent) -> Result<Self> {
        let (offset, place) = part::<T>("GridMut::part", &self.place, origin, extent)?;
        let pointer = DevicePointer::from_raw(self.as_pointer().as_raw() + offset as u64);
        Ok(Self { start: DeviceSliceMut::new(pointer, self.start.len(), self.start.tracked()), place })
    }

    /// Copies `source`, which has as many elements, rows and layers and may be on another device, on the device. Returns when the copy is
    /// on the stream of the memory that this is a view of.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2`, `cuMemcpy3DAsync_v2`, or `cuMemcpy3DPeerAsync` between devices.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy2DAsync")]
    #[doc(alias = "cuMemcpy3DAsync")]
    #[doc(alias = "cuMemcpy3DPeerAsync")]
    #[inline]
    pub fn copy_from(&mut self, source: &Grid<'_, T>) -> Result<()>
    where
        T: Copy,
    {
        self.stream().expect_captured("GridMut::copy_from", "use `copy_from_on(scope, …)`")?;
        self.copy_from_on(self.stream(), source)
    }

    /// As [`GridMut::copy_from`], on any stream.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[inline]
    pub fn copy_from_on(&mut self, stream: &Stream, source: &Grid<'_, T>) -> Result<()>
    where
        T: Copy,
    {
        copies::copy("GridMut::copy_from", stream, &self.end(), &source.end())
    }

    /// As [`GridMut::copy_from_on`], with options that the driver follows if it knows them.
    ///
    /// CUDA: `cuMemcpy3DWithAttributesAsync` (since 13.2) or `cuMemcpy3DBatchAsync_v2` (since 13.0); an older driver ignores the options.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy3DWithAttributesAsync")]
    #[inline]
    pub fn copy_from_with(&mut self, stream: &Stream, source: &Grid<'_, T>, options: CopyOptions) -> Result<()>
    where
        T: Copy,
    {
        copies::copy_with("GridMut::copy_from_with", stream, (&self.end(), &source.end()), options)
    }

    /// Copies `source`, which has as many elements, rows and layers, to the device. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cuMemcpy3D")]
    #[inline]
    pub fn copy_from_host(&mut self, source: &HostGrid<'_, T>) -> Result<()>
    where
        T: NoUninit,
    {
        self.stream().expect_captured("GridMut::copy_from_host", "use `copy_from_host_on(scope, …)`")?;
        self.copy_from_host_on(self.stream(), source)
    }

    /// As [`GridMut::copy_from_host`], on any stream. In a capture the graph keeps a copy of the memory that `source` lies in, and copies
    /// that in each launch.
    ///
    /// # Errors
    ///
    /// As for [`GridMut::copy_from_host`].
    #[inline]
    pub fn copy_from_host_on(&mut self, stream: &Stream, source: &HostGrid<'_, T>) -> Result<()>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "GridMut::copy_from_host";
        copies::same_extent(OPERATION, &self.place, source.place())?;
        if self.place.is_empty() {
            return Ok(());
        }
        if stream.is_capture_active() {
            let kept = host::kept(stream, source.elements())?;
            return self.copy_from_on(stream, &Grid::new(kept.as_slice(), *source.place()));
        }
        let end = self.end();
        stream.refuse_capture(OPERATION, PASS_THE_SCOPE)?;
        let mut guard = AccessGuard::blocking(stream)?;
        end.end.tracked.before_write(OPERATION, &mut guard)?;
        // SAFETY: the host's end holds these rows and layers, and it is borrowed until the stream has been waited for below.
        unsafe { copies::from_host(stream, &end, source.as_ptr().cast(), source.place()) }?;
        end.end.tracked.after_partial_write(&mut guard);
        drop(guard);
        wait::until_done(stream)
    }

    /// Sets every element to `value`, and nothing between the rows. Returns when that is on the stream of the memory that this is a view
    /// of.
    ///
    /// One call for each layer, if elements have 1, 2 or 4 bytes; see [`DeviceSliceMut::fill`] for others.
    ///
    /// CUDA: `cuMemsetD2D8Async`, `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "cuMemsetD2D32Async")]
    #[inline]
    pub fn fill(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.stream().expect_captured("GridMut::fill", "use `fill_on(scope, …)`")?;
        self.fill_on(self.stream(), value)
    }

    /// As [`GridMut::fill`], on any stream.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let Place { width, height, depth, pitch, layer } = self.place;
        let whole = self.start.end();
        for index in 0..depth {
            let mut end = whole;
            end.address += (index * layer * pitch) as u64;
            end.bytes = width * height;
            let rows = Rows { pitch, width, height };
            fill::fill("GridMut::fill", stream, &end, rows, bytemuck::bytes_of(&value))?;
        }
        Ok(())
    }

    /// As one end of a copy, for as long as the view is borrowed.
    #[inline]
    fn end(&self) -> copies::End<'a> {
        copies::End { end: self.start.end(), place: self.place }
    }

    /// As one end of a copy.
    #[inline]
    pub(crate) fn into_end(self) -> copies::End<'a> {
        self.end()
    }
}

impl<T> fmt::Debug for GridMut<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::<T>(formatter, "GridMut", &self.place, self.as_pointer())
    }
}
