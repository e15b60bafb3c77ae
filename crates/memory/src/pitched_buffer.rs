//! Rows in the memory of a device, each at an address that suits it.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, Zeroable};
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Driver, Error, LeakedMemory, Result, Returned, Stream, call, dropping, leak};

use crate::capture_advice::ALLOCATE_BEFORE;
use crate::copy::grid::Place;
use crate::device_slice::{WholeMut, argument_as};
use crate::tracked::{Reach, Tracked};
use crate::{DeviceSlice, DeviceSliceMut, Grid, GridMut, fill, size};

/// Rows of elements in the memory of a device, each of which begins at a multiple of what the device reads at once. Between the rows lie
/// bytes that belong to none.
///
/// A kernel takes it for a `&[T]` or a `&mut [T]` that begins with the first row, and finds row `n` at `n * pitch_bytes()`.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{Extent, HostGrid, Pitch, PitchedBuffer};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let image = [1_u32, 2, 3, 4, 5, 6];
/// let mut rows = PitchedBuffer::<u32>::zeroed(&stream, 3, 2)?;
/// let extent = Extent::plane(3, 2);
/// rows.grid_mut().copy_from_host(&HostGrid::new(&image, extent, Pitch::tight::<u32>(extent))?)?;
/// assert_eq!(rows.row(1)?.to_vec()?, [4, 5, 6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PitchedBuffer<T> {
    /// 0 once the memory was freed.
    pointer: DevicePointer<T>,
    width: usize,
    height: usize,
    pitch: usize,
    tracked: Tracked,
    _elements: PhantomData<T>,
}

impl<T> PitchedBuffer<T> {
    /// Allocates `height` rows of `width` elements and sets every byte to zero on `stream`, on which the buffer copies.
    ///
    /// CUDA: `cuMemAllocPitch_v2`, `cuMemsetD2D8Async`.
    ///
    /// # Errors
    ///
    /// An argument error if there is no element, or more than there are addresses; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemAllocPitch")]
    #[inline]
    pub fn zeroed(stream: &Stream, width: usize, height: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        stream.expect_captured("PitchedBuffer::zeroed", ALLOCATE_BEFORE)?;
        let buffer = Self::allocate("PitchedBuffer::zeroed", stream, width, height)?;
        let end = buffer.whole().end();
        let rows = fill::Rows { pitch: buffer.pitch, width: buffer.place().width, height };
        fill::fill("PitchedBuffer::zeroed", stream, &end, rows, &[0])?;
        Ok(buffer)
    }

    /// Allocates `height` rows of `width` elements and leaves their bytes as they are: any values.
    ///
    /// CUDA: `cuMemAllocPitch_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PitchedBuffer::zeroed`].
    #[inline]
    pub fn uninit(stream: &Stream, width: usize, height: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("PitchedBuffer::uninit", stream, width, height)
    }

    /// The elements in a row.
    #[must_use]
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    #[must_use]
    #[inline]
    pub fn height(&self) -> usize {
        self.height
    }

    /// The bytes from the beginning of one row to that of the next.
    #[must_use]
    #[inline]
    pub fn pitch_bytes(&self) -> usize {
        self.pitch
    }

    /// The stream on which the buffer copies.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// The address of the first row. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// A view of a row.
    ///
    /// # Errors
    ///
    /// An argument error if there is no such row.
    #[inline]
    pub fn row(&self, index: usize) -> Result<DeviceSlice<'_, T>> {
        Ok(DeviceSlice::new(self.row_pointer("PitchedBuffer::row", index)?, self.width, &self.tracked))
    }

    /// A view of a row to be written.
    ///
    /// # Errors
    ///
    /// An argument error if there is no such row.
    #[inline]
    pub fn row_mut(&mut self, index: usize) -> Result<DeviceSliceMut<'_, T>> {
        Ok(DeviceSliceMut::new(self.row_pointer("PitchedBuffer::row_mut", index)?, self.width, &self.tracked))
    }

    /// Views of all rows.
    #[inline]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = DeviceSlice<'_, T>> {
        (0..self.height).map(|index| DeviceSlice::new(self.row_at(index), self.width, &self.tracked))
    }

    /// Views of all rows to be written.
    #[inline]
    pub fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = DeviceSliceMut<'_, T>> {
        let this = &*self;
        (0..this.height).map(|index| DeviceSliceMut::new(this.row_at(index), this.width, &this.tracked))
    }

    /// All rows, to be copied.
    #[must_use]
    #[inline]
    pub fn grid(&self) -> Grid<'_, T> {
        Grid::new(self.whole(), self.place())
    }

    /// All rows, to be copied to.
    #[must_use]
    #[inline]
    pub fn grid_mut(&mut self) -> GridMut<'_, T> {
        GridMut::new(DeviceSliceMut::new(self.pointer, self.span() / size_of::<T>(), &self.tracked), self.place())
    }

    /// Frees the buffer, which [`Drop`] does as well, and says whether it succeeded. Waits for the work that uses it.
    ///
    /// CUDA: `cuMemFree_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the driver refuses.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn allocate(operation: &'static str, stream: &Stream, width: usize, height: usize) -> Result<Self> {
        let row = size::bytes::<T>(operation, width)?;
        if height == 0 || row.checked_next_multiple_of(4096).and_then(|row| row.checked_mul(height)).is_none() {
            let reason = format!("there cannot be {height} rows of {row} bytes");
            return Err(Error::argument(operation, reason));
        }
        let tracked = Tracked::leasable_outside(operation, stream, Reach::Device)?;
        let (pointer, pitch) = stream.context().entered(|driver| {
            let (mut raw, mut pitch): (CUdeviceptr, usize) = (0, 0);
            let (place, pitch_place, element) = (&raw mut raw, &raw mut pitch, access_size::<T>());
            // SAFETY: both are valid places for the answers, and the context is current.
            let result = unsafe { call!(driver, cuMemAllocPitch_v2(place, pitch_place, row, height, element)) };
            result.map_err(|error| error.about(format!("{height} rows of {row} bytes")))?;
            Ok((DevicePointer::from_raw(raw), pitch))
        })?;
        let tracked = tracked.at(pointer.as_raw(), pitch * height);
        let buffer = Self { pointer, width, height, pitch, tracked, _elements: PhantomData };
        size::aligned::<T>(operation, pointer.as_raw() | pitch as u64).map(|()| buffer)
    }

    /// The elements that fit between the first one and the end of the last row, gaps included.
    #[inline]
    fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.span() / size_of::<T>(), &self.tracked)
    }

    #[inline]
    fn span(&self) -> usize {
        (self.height - 1) * self.pitch + self.width * size_of::<T>()
    }

    #[inline]
    fn place(&self) -> Place {
        let width = self.width * size_of::<T>();
        Place { width, height: self.height, depth: 1, pitch: self.pitch, layer: self.height }
    }

    #[inline]
    fn row_at(&self, index: usize) -> DevicePointer<T> {
        DevicePointer::from_raw(self.pointer.as_raw() + (index * self.pitch) as u64)
    }

    #[inline]
    fn row_pointer(&self, operation: &'static str, index: usize) -> Result<DevicePointer<T>> {
        if index < self.height {
            return Ok(self.row_at(index));
        }
        Err(Error::argument(operation, format!("row index out of bounds ({index} of {} rows)", self.height)))
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        if self.tracked.exclusive().is_leased() {
            self.tracked.leave_plain_memory(self.pointer.as_raw());
            self.pointer = DevicePointer::from_raw(0);
            return Ok(());
        }
        self.tracked.wait_for_uses()?;
        // SAFETY: the memory is live, all work that uses it has been waited for, and it is forgotten once it is freed.
        unsafe { call!(self.tracked.stream().driver(), cuMemFree_v2(self.pointer.as_raw())) }
            .map_err(|error| self.whole().end().explain(error))?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

argument_as!([T] PitchedBuffer<T>: |buffer| buffer.whole(), WholeMut::new(buffer.pointer, &mut buffer.tracked));

impl<T> AsRef<Driver> for PitchedBuffer<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for PitchedBuffer<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { width, height, pitch, pointer, .. }, name) = (self, std::any::type_name::<T>());
        write!(formatter, "PitchedBuffer({width} × {height} × {name} at {pointer:?}, pitch {pitch} bytes)")
    }
}

impl<T> Drop for PitchedBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        // Nobody is there to try again.
        if self.pointer.as_raw() != 0
            && let Some(Err(error)) = dropping(|| self.free().or_else(|_| self.free()))
        {
            leak(self.stream().driver(), LeakedMemory::new(1, (self.pitch * self.height) as u64), &error);
        }
    }
}

/// The bytes that a thread reads at once, of which the driver takes three sizes.
#[inline]
const fn access_size<T>() -> u32 {
    match size_of::<T>() {
        size if size.is_multiple_of(16) => 16,
        size if size.is_multiple_of(8) => 8,
        _ => 4,
    }
}
