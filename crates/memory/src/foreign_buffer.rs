//! Memory of the device that something else owns, as a buffer.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::RangeBounds;

use bytemuck::AnyBitPattern;
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, Stream, release};

use crate::device_slice::{WholeMut, argument_as};
use crate::tracked::{Reach, Tracked};
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut, size};

/// Elements in device memory that something else owns: a [`Mapping`](crate::Mapping), an [`IpcMemory`](crate::IpcMemory), memory of another
/// interface or of another library. It is viewed, copied and passed to kernels like a [`DeviceBuffer`](crate::DeviceBuffer).
///
/// It keeps its owner, and lets go of it when every use is done, for which it waits on the host.
///
/// ```
/// use curium_memory::{AddressRange, ForeignBuffer, MemoryAccess, PhysicalMemory};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let device = driver.device(0)?;
/// # let stream = device.primary_context()?.stream()?;
/// let memory = PhysicalMemory::new(&device, 2 << 20)?;
/// let mapping = AddressRange::reserve(&driver, 2 << 20)?.map(0, &memory)?;
/// mapping.set_access(&device, MemoryAccess::ReadWrite)?;
/// // SAFETY: the mapping has as many bytes, is for the device to use, and nobody else uses it.
/// let mut words = unsafe { ForeignBuffer::<u32, _>::new(&stream, mapping.as_pointer().cast(), 1024, mapping) }?;
/// words.as_slice_mut().fill(7)?;
/// assert_eq!(words.to_vec()?, [7; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ForeignBuffer<T, O: Send + 'static> {
    pointer: DevicePointer<T>,
    len: usize,
    tracked: Tracked,
    owner: ManuallyDrop<O>,
    _elements: PhantomData<T>,
}

impl<T, O: Send + 'static> ForeignBuffer<T, O> {
    /// The `len` elements at `pointer`, which `owner` keeps. The buffer copies on `stream`.
    ///
    /// # Safety
    ///
    /// - At `pointer` there are `len` elements of `T`, in memory that the device of `stream` may read and write, for as long as `owner` is
    ///   not dropped, and is left alone if it moves.
    /// - Uses of the memory elsewhere are ordered before or after those by the buffer.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large to be a size, if the pointer is null or not aligned for `T`, and if the stream is one
    /// of a capture. The owner is dropped then.
    #[inline]
    pub unsafe fn new(stream: &Stream, pointer: DevicePointer<T>, len: usize, owner: O) -> Result<Self> {
        const OPERATION: &str = "ForeignBuffer::new";
        size::bytes::<T>(OPERATION, len)?;
        size::aligned::<T>(OPERATION, pointer.as_raw())?;
        if pointer.as_raw() == 0 {
            return Err(Error::argument(OPERATION, "the pointer is null"));
        }
        let tracked =
            Tracked::leasable_outside(OPERATION, stream, Reach::Granted)?.at(pointer.as_raw(), len * size_of::<T>());
        Ok(Self { pointer, len, tracked, owner: ManuallyDrop::new(owner), _elements: PhantomData })
    }

    /// The number of elements, which is at least 1.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element, which is never so.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The stream that the buffer copies on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Who owns the memory.
    #[must_use]
    #[inline]
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// A view of all elements.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of all elements to be written.
    #[must_use]
    #[inline]
    pub fn as_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// A view of the elements in `range` to be written.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.as_slice_mut().slice(range)
    }

    /// A copy of the elements on the host. Waits until it is there.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// As [`ForeignBuffer::to_vec`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`ForeignBuffer::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec_on(stream)
    }

    /// Gives the owner back. Waits on the host for every use.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if a graph uses it, or if a use cannot be waited for.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn into_owner(mut self) -> Result<O, Returned<Self>> {
        if self.tracked.exclusive().is_leased() {
            return Err(Returned::new(self, Error::argument("ForeignBuffer::into_owner", "a graph uses the memory")));
        }
        if let Err(error) = self.tracked.exclusive().synchronize() {
            return Err(Returned::new(self, error));
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the value is not dropped, so that nobody uses the field again.
        let owner = unsafe { ManuallyDrop::take(&mut this.owner) };
        // SAFETY: as above.
        unsafe { std::ptr::drop_in_place(&raw mut this.tracked) };
        Ok(owner)
    }
}

argument_as!([T, O: Send + 'static] ForeignBuffer<T, O>: |buffer| buffer.as_slice(),
    WholeMut::new(buffer.as_pointer(), &mut buffer.tracked));

impl<T, O: Send + 'static> AsDeviceSlice for ForeignBuffer<T, O> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T, O: Send + 'static> AsDeviceSliceMut for ForeignBuffer<T, O> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.as_slice_mut()
    }
}

impl<T, O: Send + 'static> AsRef<Driver> for ForeignBuffer<T, O> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T, O: Send + 'static> fmt::Debug for ForeignBuffer<T, O> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(formatter, "ForeignBuffer({} × {name} at {:?})", self.len, self.pointer)
    }
}

impl<T, O: Send + 'static> Drop for ForeignBuffer<T, O> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        if self.tracked.exclusive().is_leased() {
            return self.tracked.leave_memory(owner);
        }
        let owner = ManuallyDrop::new(owner);
        release(|| {
            // Memory that may still be in use stays its owner's for ever; a context that is lost uses none.
            let waited = self.tracked.exclusive().synchronize();
            if waited.is_ok() || waited.as_ref().is_err_and(Error::is_sticky) {
                drop(ManuallyDrop::into_inner(owner));
            }
            waited
        });
    }
}
