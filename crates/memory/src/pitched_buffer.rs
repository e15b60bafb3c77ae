//! Two-dimensional buffers in device memory.

use std::fmt;

use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, Stream, call};

use crate::capture_advice::ALLOCATE_BEFORE;
use crate::device_slice::{Parts, buffer_argument};
use crate::tracked::{Accessibility, Tracked};
use crate::transfer::pitched::{self, PitchedLayout};
use crate::{DeviceView, DeviceViewMut, Extent, PitchedSlice, PitchedSliceMut, fill, size, wait};

/// A two-dimensional buffer in pitched device memory: each row starts at an aligned address, and
/// rows may be separated by padding.
///
/// Kernels accept it for `&[T]` and `&mut [T]`, starting with the first row. Row `n` starts at byte
/// `n * pitch_bytes()`.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::PitchedBuffer;
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let rows = PitchedBuffer::from_slice(&stream, &[1_u32, 2, 3, 4, 5, 6], 3, 2)?;
/// assert_eq!(rows.row(1)?.to_vec()?, [4, 5, 6]);
/// assert_eq!(rows.to_vec()?, [1, 2, 3, 4, 5, 6]); // without padding
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PitchedBuffer<T> {
    /// From the first element to the end of the last row, including padding. The pointer is null
    /// once the memory was freed.
    parts: Parts<T>,
    width: usize,
    height: usize,
    pitch: usize,
}

impl<T> PitchedBuffer<T> {
    /// Allocates `height` rows of `width` elements and sets every byte to zero on `stream`, which
    /// is the buffer's stream.
    ///
    /// CUDA: `cuMemAllocPitch_v2`, `cuMemsetD2D8Async`.
    ///
    /// # Errors
    ///
    /// An argument error if `width` or `height` is 0 or too large; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemAllocPitch")]
    #[doc(alias = "cudaMallocPitch")]
    pub fn zeroed(stream: &Stream, width: usize, height: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let operation = stream.enqueue_or("PitchedBuffer::zeroed", ALLOCATE_BEFORE)?;
        let buffer = Self::allocate("PitchedBuffer::zeroed", stream, width, height)?;
        let end = buffer.whole().into_operand();
        let rows = fill::Rows {
            pitch: buffer.pitch,
            width: buffer.layout().width,
            height,
        };
        fill::fill(operation, &end, rows, &[0])?;
        Ok(buffer)
    }

    /// Allocates `height` rows of `width` elements with unspecified values. `stream` is the
    /// buffer's stream.
    ///
    /// CUDA: `cuMemAllocPitch_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PitchedBuffer::zeroed`].
    pub fn uninit(stream: &Stream, width: usize, height: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("PitchedBuffer::uninit", stream, width, height)
    }

    /// Allocates `height` rows of `width` elements and sets each element to `value` on `stream`,
    /// which is the buffer's stream.
    ///
    /// CUDA: `cuMemAllocPitch_v2`, `cuMemsetD2D8Async` and its variants.
    ///
    /// # Errors
    ///
    /// As for [`PitchedBuffer::zeroed`].
    pub fn filled(stream: &Stream, width: usize, height: usize, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        let operation = stream.enqueue_or("PitchedBuffer::filled", ALLOCATE_BEFORE)?;
        drop(operation);
        let mut buffer = Self::allocate("PitchedBuffer::filled", stream, width, height)?;
        buffer.as_pitched_mut().fill(value)?;
        Ok(buffer)
    }

    /// Allocates `height` rows of `width` elements and copies `source`, which contains the rows
    /// without padding. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemAllocPitch_v2`, `cuMemcpy2DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`PitchedBuffer::zeroed`]; an argument error if `source` does not have
    /// `width * height` elements.
    pub fn from_slice(stream: &Stream, source: &[T], width: usize, height: usize) -> Result<Self>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "PitchedBuffer::from_slice";
        stream.check_enqueue(OPERATION, ALLOCATE_BEFORE)?;
        size::same_len(OPERATION, width.saturating_mul(height), source.len())?;
        let mut buffer = Self::allocate(OPERATION, stream, width, height)?;
        buffer.as_pitched_mut().upload(OPERATION, source)?;
        Ok(buffer)
    }

    /// Copies `source`, which contains the rows without padding, to the buffer. Waits until the
    /// copy has completed.
    ///
    /// [`PitchedSliceMut::copy_from_slice`] copies on another stream, and in a capture.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `source` does not have `width * height` elements.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cudaMemcpy2D")]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_pitched_mut()
            .upload("PitchedBuffer::copy_from_slice", source)
    }

    /// Copies the rows without padding to `target`. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `target` does not have `width * height` elements, or if the stream is
    /// being captured; an error of earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cudaMemcpy2D")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_pitched()
            .download("PitchedBuffer::copy_to_slice", target)
    }

    /// Copies the rows without padding to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is being captured; an error of earlier asynchronous work in
    /// the context.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_pitched().download_to_vec("PitchedBuffer::to_vec")
    }

    /// Allocates a buffer with the same contents on the same stream. Returns once the copy is
    /// enqueued.
    ///
    /// CUDA: `cuMemAllocPitch_v2`, `cuMemcpy2DAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PitchedBuffer::zeroed`].
    pub fn try_clone(&self) -> Result<Self>
    where
        T: Copy,
    {
        let operation = self
            .stream()
            .enqueue_or("PitchedBuffer::try_clone", ALLOCATE_BEFORE)?;
        let mut clone = Self::allocate(
            "PitchedBuffer::try_clone",
            self.stream(),
            self.width,
            self.height,
        )?;
        pitched::copy(
            operation,
            &clone.as_pitched_mut().end(),
            &self.as_pitched().end(),
        )?;
        Ok(clone)
    }

    /// Returns the number of elements per row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of elements per row and the number of rows.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent::new_2d(self.width, self.height)
    }

    /// Returns the pitch in bytes: the distance between the starts of consecutive rows.
    #[must_use]
    pub fn pitch_bytes(&self) -> usize {
        self.pitch
    }

    /// Returns the buffer's stream, which operations without a stream argument use.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.parts.origin.stream()
    }

    /// Returns the address of the first row. Accesses through the pointer are not tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.parts.pointer
    }

    /// Returns a view of a row.
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of bounds.
    pub fn row(&self, index: usize) -> Result<DeviceView<'_, T>> {
        Ok(DeviceView::new(
            self.row_pointer("PitchedBuffer::row", index)?,
            self.width,
            &self.parts.origin,
        ))
    }

    /// Returns a mutable view of a row.
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of bounds.
    pub fn row_mut(&mut self, index: usize) -> Result<DeviceViewMut<'_, T>> {
        Ok(DeviceViewMut::new(
            self.row_pointer("PitchedBuffer::row_mut", index)?,
            self.width,
            &self.parts.origin,
        ))
    }

    /// Returns an iterator over views of all rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = DeviceView<'_, T>> {
        (0..self.height)
            .map(|index| DeviceView::new(self.row_at(index), self.width, &self.parts.origin))
    }

    /// Returns an iterator over mutable views of all rows.
    pub fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = DeviceViewMut<'_, T>> {
        let this = &*self;
        (0..this.height)
            .map(|index| DeviceViewMut::new(this.row_at(index), this.width, &this.parts.origin))
    }

    /// Returns all rows as a pitched view.
    #[must_use]
    pub fn as_pitched(&self) -> PitchedSlice<'_, T> {
        PitchedSlice::new(self.whole(), self.layout())
    }

    /// Returns all rows as a mutable pitched view.
    #[must_use]
    pub fn as_pitched_mut(&mut self) -> PitchedSliceMut<'_, T> {
        PitchedSliceMut::new(
            DeviceViewMut::new(self.parts.pointer, self.parts.len, &self.parts.origin),
            self.layout(),
        )
    }

    /// Frees the buffer, as [`Drop`] does, and returns any error. Waits for the work that accesses
    /// it.
    ///
    /// CUDA: `cuMemFree_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if the driver fails.
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    fn allocate(
        operation: &'static str,
        stream: &Stream,
        width: usize,
        height: usize,
    ) -> Result<Self> {
        let row = size::bytes::<T>(operation, width)?;
        if height == 0
            || row
                .checked_next_multiple_of(4096)
                .and_then(|row| row.checked_mul(height))
                .is_none()
        {
            let reason = format!("invalid size ({height} rows of {row} bytes)");
            return Err(Error::argument(operation, reason));
        }
        let tracked = Tracked::leasable_outside(operation, stream, Accessibility::Device)?;
        let (pointer, pitch) = stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            let mut pitch: usize = 0;
            let address = &raw mut raw;
            let pitch_output = &raw mut pitch;
            let element = access_size::<T>();
            // SAFETY: both are valid pointers, and the context is current.
            let result =
                unsafe { call!(driver, cuMemAllocPitch_v2(address, pitch_output, row, height, element) creates raw) };
            result.map_err(|error| error.about(format!("{height} rows of {row} bytes")))?;
            Ok((DevicePointer::from_raw(raw), pitch))
        })?;
        let tracked = tracked.at(pointer.as_raw(), pitch * height);
        let span = (height - 1) * pitch + row;
        let buffer = Self {
            parts: Parts::new(pointer, span / size_of::<T>(), tracked),
            width,
            height,
            pitch,
        };
        size::aligned::<T>(operation, pointer.as_raw() | pitch as u64).map(|()| buffer)
    }

    /// Returns a view from the first element to the end of the last row, including padding.
    fn whole(&self) -> DeviceView<'_, T> {
        DeviceView::new(self.parts.pointer, self.parts.len, &self.parts.origin)
    }

    fn layout(&self) -> PitchedLayout {
        let width = self.width * size_of::<T>();
        PitchedLayout {
            width,
            height: self.height,
            depth: 1,
            pitch: self.pitch,
            layer: self.height,
        }
    }

    fn row_at(&self, index: usize) -> DevicePointer<T> {
        DevicePointer::from_raw(self.parts.pointer.as_raw() + (index * self.pitch) as u64)
    }

    fn row_pointer(&self, operation: &'static str, index: usize) -> Result<DevicePointer<T>> {
        if index < self.height {
            return Ok(self.row_at(index));
        }
        Err(Error::argument(
            operation,
            format!("row index out of bounds ({index} of {} rows)", self.height),
        ))
    }

    fn free(&mut self) -> Result<()> {
        if self.parts.origin.exclusive().is_leased() {
            self.parts.origin.leave_sync_allocation(
                self.parts.pointer.as_raw(),
                (self.pitch * self.height) as u64,
            );
            self.parts.pointer = DevicePointer::from_raw(0);
            return Ok(());
        }
        self.parts.origin.wait_for_uses()?;
        // SAFETY: the memory is live, all work that accesses it has been waited for, and it is not
        // used after this call.
        unsafe {
            call!(
                self.parts.origin.stream().driver(),
                cuMemFree_v2(self.parts.pointer.as_raw())
            )
        }
        .map_err(|error| self.whole().into_operand().explain(error))?;
        self.parts.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

buffer_argument!([T] PitchedBuffer<T>, parts);

impl<T> AsRef<Driver> for PitchedBuffer<T> {
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for PitchedBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            width,
            height,
            pitch,
            ..
        } = self;
        let pointer = self.as_pointer();
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "PitchedBuffer({width} × {height} × {name} at {pointer:?}, pitch {pitch} bytes)"
        )
    }
}

impl<T> Drop for PitchedBuffer<T> {
    fn drop(&mut self) {
        if self.parts.pointer.as_raw() != 0 {
            let driver = self.stream().driver().clone();
            let bytes = (self.pitch * self.height) as u64;
            wait::free_or_leak(&driver, bytes, || self.free());
        }
    }
}

/// Returns the access size of a thread in bytes, one of the three that the driver supports.
const fn access_size<T>() -> u32 {
    match size_of::<T>() {
        size if size.is_multiple_of(16) => 16,
        size if size.is_multiple_of(8) => 8,
        _ => 4,
    }
}
