//! Mutable pitched views of device memory.

use std::fmt;

use crate::NoUninit;
use curium_driver::{DevicePointer, Result, Stream};

use super::{Extent, HostPitchedSlice, Pitch, PitchedSlice, describe, extent, part};
use crate::capture_advice::ON_MUT;
use crate::copy::CopyOptions;
use crate::fill::{self, Rows};
use crate::transfer::host;
use crate::transfer::pitched::{self as copies, PitchedLayout};
use crate::{DeviceViewMut, size, wait};

/// A mutable two- or three-dimensional view of device-accessible memory. See [`PitchedSlice`].
pub struct PitchedSliceMut<'a, T> {
    start: DeviceViewMut<'a, T>,
    layout: PitchedLayout,
}

impl<'a, T> PitchedSliceMut<'a, T> {
    /// Creates a view that starts at `start`. The layout must be in bounds.
    pub(crate) fn new(start: DeviceViewMut<'a, T>, layout: PitchedLayout) -> Self {
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

    /// Returns the stream of the operations: that of [`PitchedSliceMut::on_mut`], or else that of
    /// the slice.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.start.stream()
    }

    /// Returns a view of the same memory whose operations use `stream`. See
    /// [`DeviceSlice::on_mut`](crate::DeviceSlice::on_mut).
    pub fn on_mut<'s>(&'s mut self, stream: &'s Stream) -> PitchedSliceMut<'s, T> {
        PitchedSliceMut::new(self.start.on_mut(stream), self.layout)
    }

    /// Returns a shared view of the same elements.
    #[must_use]
    pub fn as_pitched(&self) -> PitchedSlice<'_, T> {
        PitchedSlice::new(self.start.view(), self.layout)
    }

    /// Returns the subregion of `extent` that starts at column, row and layer `origin`.
    ///
    /// # Errors
    ///
    /// An argument error if the subregion is out of bounds.
    pub fn region(self, origin: [usize; 3], extent: Extent) -> Result<Self> {
        let (offset, layout) = part::<T>("PitchedSliceMut::region", &self.layout, origin, extent)?;
        let pointer = DevicePointer::from_raw(self.as_pointer().as_raw() + offset as u64);
        let len = self.start.len();
        Ok(Self {
            start: self.start.with_pointer(pointer, len),
            layout,
        })
    }

    /// Copies `source`, which must have the same extent and may be on another device. Returns once
    /// the copy is enqueued on the stream of the view.
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
        copies::copy(
            self.stream()
                .enqueue_or("PitchedSliceMut::copy_from", ON_MUT)?,
            &self.end(),
            &source.end(),
        )
    }

    /// Copies like [`PitchedSliceMut::copy_from`], with hints for drivers that support them.
    ///
    /// CUDA: `cuMemcpy3DWithAttributesAsync` (since 13.2) or `cuMemcpy3DBatchAsync_v2` (since
    /// 13.0); an older driver ignores the options.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    #[doc(alias = "cuMemcpy3DWithAttributesAsync")]
    pub fn copy_from_with(
        &mut self,
        source: &PitchedSlice<'_, T>,
        options: CopyOptions,
    ) -> Result<()>
    where
        T: Copy,
    {
        copies::copy_with(
            self.stream()
                .enqueue_or("PitchedSliceMut::copy_from_with", ON_MUT)?,
            &self.end(),
            &source.end(),
            options,
        )
    }

    /// Copies `source`, which must have the same extent, to the device. Waits until the copy has
    /// completed.
    ///
    /// In a capture, the graph keeps a copy of the slice of `source` and uploads it at each launch.
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
        self.upload_from("PitchedSliceMut::copy_from_host", source)
    }

    /// Copies `source`, which contains the elements without padding, to the device. Waits until the
    /// copy has completed.
    ///
    /// In a capture, the graph keeps a copy of `source` and uploads it at each launch.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `source` does not have as many elements as the view.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        self.upload("PitchedSliceMut::copy_from_slice", source)
    }

    /// Copies a slice of the same number of elements to the device, as the operation `name`.
    pub(crate) fn upload(&mut self, name: &'static str, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let extent = self.extent();
        size::same_len(name, extent.len(), source.len())?;
        let pitch = Pitch::tight::<T>(extent);
        self.upload_from(name, &HostPitchedSlice::new(source, extent, pitch)?)
    }

    fn upload_from(&mut self, name: &'static str, source: &HostPitchedSlice<'_, T>) -> Result<()>
    where
        T: NoUninit,
    {
        copies::same_extent(name, &self.layout, source.layout())?;
        let stream = self.stream();
        let end = self.end();
        if stream.is_capture_active() {
            stream.check_enqueue(name, ON_MUT)?;
            if self.layout.is_empty() {
                return Ok(());
            }
            let copy = host::kept(stream, source.elements())?;
            let copy = PitchedSlice::new(copy.view(), *source.layout());
            return copies::copy(stream.enqueue(name)?, &end, &copy.end());
        }
        let mut operation = stream.enqueue_now(name, ON_MUT)?.blocking();
        if self.layout.is_empty() {
            return Ok(());
        }
        end.end.tracked.before_write(&mut operation)?;
        // SAFETY: the host operand has this layout, and it is borrowed until the stream has been
        // synchronized below.
        unsafe { copies::from_host(&operation, &end, source.as_ptr().cast(), source.layout()) }?;
        end.end.tracked.after_partial_write(&mut operation);
        drop(operation);
        wait::until_done(stream)
    }

    /// Sets every element to `value` and leaves padding unchanged. Returns once the fill is
    /// enqueued on the stream of the viewed memory.
    ///
    /// A value of 1, 2 or 4 bytes takes one driver call per layer; see
    /// [`DeviceSlice::fill`](crate::DeviceSlice::fill) for others.
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
        let PitchedLayout {
            width,
            height,
            depth,
            pitch,
            layer,
        } = self.layout;
        let whole = self.start.operand();
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
                self.stream().enqueue_or("PitchedSliceMut::fill", ON_MUT)?,
                &end,
                rows,
                bytemuck::bytes_of(&value),
            )?;
        }
        Ok(())
    }

    /// Returns the view as a copy operand; the view stays borrowed.
    pub(crate) fn end(&self) -> copies::PitchedOperand<'_> {
        copies::PitchedOperand {
            end: self.start.operand(),
            layout: self.layout,
        }
    }

    /// Consumes the view as a copy operand.
    pub(crate) fn into_end(self) -> copies::PitchedOperand<'a> {
        copies::PitchedOperand {
            end: self.start.into_operand(),
            layout: self.layout,
        }
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
