//! Mutable pitched views of device memory.

use std::fmt;

use crate::NoUninit;
use crate::capture_advice::without_stream;
use curium_driver::extend::ON_THE_SCOPE;
use curium_driver::{DevicePointer, Result, Stream};

use super::{Extent, HostPitchedSlice, Pitch, PitchedSlice, describe, extent, part};
use crate::copy::CopyOptions;
use crate::copy::host;
use crate::copy::pitched::{self as copies, PitchedLayout};
use crate::fill::{self, Rows};
use crate::{DeviceSliceMut, wait};

/// A mutable two- or three-dimensional view of device-accessible memory. See [`PitchedSlice`].
pub struct PitchedSliceMut<'a, T> {
    start: DeviceSliceMut<'a, T>,
    layout: PitchedLayout,
}

impl<'a, T> DeviceSliceMut<'a, T> {
    /// Returns the elements as a mutable pitched view. To keep the slice, call [`DeviceSliceMut::reborrow`] first.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn pitched(self, extent: Extent, pitch: Pitch) -> Result<PitchedSliceMut<'a, T>> {
        let layout = pitch.layout::<T>("DeviceSliceMut::pitched", extent, self.byte_len())?;
        Ok(PitchedSliceMut {
            start: self,
            layout,
        })
    }
}

impl<'a, T> PitchedSliceMut<'a, T> {
    /// Creates a view that starts at `start`. The layout must be in bounds.
    pub(crate) fn new(start: DeviceSliceMut<'a, T>, layout: PitchedLayout) -> Self {
        Self { start, layout }
    }

    /// Returns the extent.
    #[must_use]
    pub fn extent(&self) -> Extent {
        extent::<T>(&self.layout)
    }

    /// Returns the distances between rows and between layers.
    #[must_use]
    pub fn pitch(&self) -> Pitch {
        Pitch {
            row_bytes: self.layout.pitch,
            layer_rows: self.layout.layer,
        }
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.start.as_pointer()
    }

    /// Returns the stream of the viewed memory, which operations without a stream argument use.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.start.stream()
    }

    /// Returns a shared view of the same elements.
    #[must_use]
    pub fn as_pitched(&self) -> PitchedSlice<'_, T> {
        PitchedSlice::new(self.start.as_slice(), self.layout)
    }

    /// Returns the subregion of `extent` that starts at column, row and layer `origin`.
    ///
    /// # Errors
    ///
    /// An argument error if the subregion is out of bounds.
    pub fn region(self, origin: [usize; 3], extent: Extent) -> Result<Self> {
        let (offset, layout) = part::<T>("PitchedSliceMut::region", &self.layout, origin, extent)?;
        let pointer = DevicePointer::from_raw(self.as_pointer().as_raw() + offset as u64);
        Ok(Self {
            start: DeviceSliceMut::new(pointer, self.start.len(), self.start.tracked()),
            layout,
        })
    }

    /// Copies `source`, which must have the same extent and may be on another device. Returns once the copy is enqueued
    /// on the stream of the viewed memory.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2`, `cuMemcpy3DAsync_v2`, or `cuMemcpy3DPeerAsync` between devices.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy2DAsync")]
    #[doc(alias = "cudaMemcpy2DAsync")]
    #[doc(alias = "cuMemcpy3DAsync")]
    #[doc(alias = "cudaMemcpy3DAsync")]
    #[doc(alias = "cuMemcpy3DPeerAsync")]
    #[doc(alias = "cudaMemcpy3DPeerAsync")]
    pub fn copy_from(&mut self, source: &PitchedSlice<'_, T>) -> Result<()>
    where
        T: Copy,
    {
        self.copy_from_on(self.stream(), source)
            .map_err(without_stream("PitchedSliceMut::copy_from"))
    }

    /// Copies like [`PitchedSliceMut::copy_from`], on `stream`.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    pub fn copy_from_on(&mut self, stream: &Stream, source: &PitchedSlice<'_, T>) -> Result<()>
    where
        T: Copy,
    {
        copies::copy(
            stream.enqueue("PitchedSliceMut::copy_from_on")?,
            &self.end(),
            &source.end(),
        )
    }

    /// Copies like [`PitchedSliceMut::copy_from_on`], with hints for drivers that support them.
    ///
    /// CUDA: `cuMemcpy3DWithAttributesAsync` (since 13.2) or `cuMemcpy3DBatchAsync_v2` (since 13.0); an older driver ignores the options.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy3DWithAttributesAsync")]
    pub fn copy_from_with(
        &mut self,
        stream: &Stream,
        source: &PitchedSlice<'_, T>,
        options: CopyOptions,
    ) -> Result<()>
    where
        T: Copy,
    {
        copies::copy_with(
            stream.enqueue("PitchedSliceMut::copy_from_with")?,
            &self.end(),
            &source.end(),
            options,
        )
    }

    /// Copies `source`, which must have the same extent, to the device. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cudaMemcpy2D")]
    #[doc(alias = "cuMemcpy3D")]
    #[doc(alias = "cudaMemcpy3D")]
    pub fn copy_from_host(&mut self, source: &HostPitchedSlice<'_, T>) -> Result<()>
    where
        T: NoUninit,
    {
        self.copy_from_host_on(self.stream(), source)
            .map_err(without_stream("PitchedSliceMut::copy_from_host"))
    }

    /// Copies like [`PitchedSliceMut::copy_from_host`], on `stream`. In a capture, the graph keeps a copy of the slice of `source` and
    /// uploads it at each launch.
    ///
    /// # Errors
    ///
    /// As for [`PitchedSliceMut::copy_from_host`].
    pub fn copy_from_host_on(
        &mut self,
        stream: &Stream,
        source: &HostPitchedSlice<'_, T>,
    ) -> Result<()>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "PitchedSliceMut::copy_from_host_on";
        copies::same_extent(OPERATION, &self.layout, source.layout())?;
        if stream.is_capture_active() {
            drop(stream.enqueue(OPERATION)?);
            if self.layout.is_empty() {
                return Ok(());
            }
            let copy = host::kept(stream, source.elements())?;
            return self.copy_from_on(
                stream,
                &PitchedSlice::new(copy.as_slice(), *source.layout()),
            );
        }
        let end = self.end();
        let mut operation = stream.enqueue_now(OPERATION, ON_THE_SCOPE)?;
        if self.layout.is_empty() {
            return Ok(());
        }
        end.end.tracked.before_write(&mut operation)?;
        // SAFETY: the host operand has this layout, and it is borrowed until the stream has been synchronized below.
        unsafe { copies::from_host(&operation, &end, source.as_ptr().cast(), source.layout()) }?;
        end.end.tracked.after_partial_write(&mut operation);
        drop(operation);
        wait::until_done(stream)
    }

    /// Sets every element to `value` and leaves padding unchanged. Returns once the fill is enqueued on the stream of
    /// the viewed memory.
    ///
    /// A value of 1, 2 or 4 bytes takes one driver call per layer; see [`DeviceSliceMut::fill`] for others.
    ///
    /// CUDA: `cuMemsetD2D8Async`, `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "cudaMemset2DAsync")]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "cuMemsetD2D32Async")]
    pub fn fill(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.fill_on(self.stream(), value)
            .map_err(without_stream("PitchedSliceMut::fill"))
    }

    /// Fills like [`PitchedSliceMut::fill`], on `stream`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let PitchedLayout {
            width,
            height,
            depth,
            pitch,
            layer,
        } = self.layout;
        let whole = self.start.end();
        for index in 0..depth {
            let mut end = whole;
            end.address += (index * layer * pitch) as u64;
            end.bytes = width * height;
            let rows = Rows {
                pitch,
                width,
                height,
            };
            fill::fill(
                stream.enqueue("PitchedSliceMut::fill_on")?,
                &end,
                rows,
                bytemuck::bytes_of(&value),
            )?;
        }
        Ok(())
    }

    /// Returns the view as a copy operand; the view stays borrowed.
    pub(crate) fn end(&self) -> copies::PitchedOperand<'a> {
        copies::PitchedOperand {
            end: self.start.end(),
            layout: self.layout,
        }
    }

    /// Consumes the view as a copy operand.
    pub(crate) fn into_end(self) -> copies::PitchedOperand<'a> {
        self.end()
    }
}

impl<T> fmt::Debug for PitchedSliceMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::<T>(
            formatter,
            "PitchedSliceMut",
            &self.layout,
            self.as_pointer(),
        )
    }
}
