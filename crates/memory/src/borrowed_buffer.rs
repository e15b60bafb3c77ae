//! Device memory that other code owns, as a buffer.

use std::fmt;
use std::mem::ManuallyDrop;

use curium_driver::{DevicePointer, Error, Result, Returned, Stream};

use crate::device_slice::{Parts, slice_owner};
use crate::tracked::{Accessibility, Tracked};
use crate::{size, wait};

/// A buffer in device memory that other code owns, such as a [`Mapping`](crate::Mapping), an
/// `IpcMemory` of `curium-interop`, or memory of a graphics API or another library. It is sliced,
/// copied and passed to kernels like a [`DeviceBuffer`](crate::DeviceBuffer).
///
/// It keeps the owner of the memory alive. Dropping it waits on the host until all accesses have
/// completed, and then drops the owner.
///
/// ```
/// use curium_memory::{AddressRange, BorrowedBuffer, MemoryAccess, PhysicalMemory};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let device = driver.device(0)?;
/// # let stream = device.primary_context()?.stream()?;
/// let memory = PhysicalMemory::new(&device, 2 << 20)?;
/// let mapping = AddressRange::reserve(&driver, 2 << 20)?.map(0, &memory)?;
/// mapping.set_access(&device, MemoryAccess::ReadWrite)?;
/// // SAFETY: the mapping has this many bytes, is accessible to the device, and is not used elsewhere.
/// let mut words = unsafe { BorrowedBuffer::<u32, _>::new(&stream, mapping.as_pointer().cast(), 1024, mapping) }?;
/// words.fill(7)?;
/// assert_eq!(words.to_vec()?, [7; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BorrowedBuffer<T, O: Send + 'static> {
    parts: Parts<T>,
    owner: ManuallyDrop<O>,
}

impl<T, O: Send + 'static> BorrowedBuffer<T, O> {
    /// Creates a buffer of the `len` elements at `pointer`, which `owner` keeps alive. `stream` is
    /// the buffer's stream.
    ///
    /// # Safety
    ///
    /// - `pointer` is the address of `len` elements of `T` in memory that the device of `stream`
    ///   can read and write until `owner` is dropped, even if `owner` is moved.
    /// - Other accesses to the memory are ordered with those through the buffer.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, if the pointer is null or misaligned for `T`,
    /// or if the stream belongs to a capture. On error, the owner is dropped.
    pub unsafe fn new(
        stream: &Stream,
        pointer: DevicePointer<T>,
        len: usize,
        owner: O,
    ) -> Result<Self> {
        const OPERATION: &str = "BorrowedBuffer::new";
        size::bytes::<T>(OPERATION, len)?;
        size::aligned::<T>(OPERATION, pointer.as_raw())?;
        if pointer.as_raw() == 0 {
            return Err(Error::argument(OPERATION, "null pointer"));
        }
        let tracked = Tracked::leasable_outside(OPERATION, stream, Accessibility::Granted)?
            .at(pointer.as_raw(), len * size_of::<T>());
        Ok(Self {
            parts: Parts::new(pointer, len, tracked),
            owner: ManuallyDrop::new(owner),
        })
    }

    /// Returns the owner of the memory.
    #[must_use]
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// Returns the owner. Waits on the host until all accesses have completed.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if a graph uses it or a wait fails.
    #[expect(
        clippy::result_large_err,
        reason = "the error returns the buffer, and is rare"
    )]
    pub fn into_owner(mut self) -> Result<O, Returned<Self>> {
        if self.parts.origin.exclusive().is_leased() {
            return Err(Returned::new(
                self,
                Error::argument("BorrowedBuffer::into_owner", "a graph uses the memory"),
            ));
        }
        if let Err(error) = self.parts.origin.exclusive().synchronize() {
            return Err(Returned::new(self, error));
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the value is not dropped, so the field is not used again.
        let owner = unsafe { ManuallyDrop::take(&mut this.owner) };
        // SAFETY: the value is not dropped, so the field is not used again.
        unsafe { std::ptr::drop_in_place(&raw mut this.parts) };
        Ok(owner)
    }
}

slice_owner!([T, O: Send + 'static] BorrowedBuffer<T, O>, "BorrowedBuffer", parts);

impl<T, O: Send + 'static> fmt::Debug for BorrowedBuffer<T, O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "BorrowedBuffer({} × {name} at {:?})",
            self.len(),
            self.as_pointer()
        )
    }
}

impl<T, O: Send + 'static> Drop for BorrowedBuffer<T, O> {
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so the field is not used again.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        if self.parts.origin.exclusive().is_leased() {
            return self
                .parts
                .origin
                .leave_memory(owner, self.byte_len() as u64);
        }
        let driver = self.stream().driver().clone();
        let bytes = self.byte_len() as u64;
        let accesses = self.parts.origin.exclusive();
        wait::drop_or_leak(&driver, bytes, owner, || accesses.synchronize());
    }
}
