//! Device memory that a handle of a CUDA library uses on its own account.

use std::fmt;

use curium_driver::hazard::{Accesses, Operation};
use curium_driver::{Argument, DevicePointer, Result, Stream};

use crate::DeviceBuffer;

/// Device memory that a handle of a CUDA library uses on its own account: a workspace that was
/// passed to the library, or memory that the library allocates itself and does not expose, such as
/// the state of a random number generator.
///
/// Every operation of the handle may write all of it. The operation binds it like an operand, so
/// operations of the handle on other streams wait, and a graph that captures one leases the memory:
/// its launches are ordered with the other operations of the handle.
#[derive(Debug)]
pub struct LibraryMemory(Memory);

enum Memory {
    Buffer(DeviceBuffer<u8>),
    /// The accesses to memory with an unknown address, which the handle frees.
    Opaque(Accesses),
}

impl LibraryMemory {
    /// Allocates a buffer of `bytes` bytes on `stream`.
    ///
    /// CUDA: as for [`DeviceBuffer::uninit`].
    ///
    /// # Errors
    ///
    /// An error of the allocation.
    pub fn allocate(stream: &Stream, bytes: usize) -> Result<Self> {
        Ok(Self(Memory::Buffer(DeviceBuffer::uninit(stream, bytes)?)))
    }

    /// Creates the tracking of memory that the library allocates itself. The handle first uses it
    /// on `stream`.
    ///
    /// The library frees the memory when the handle is destroyed: a graph must keep the handle
    /// ([`Operation::keep`](curium_driver::hazard::Operation::keep)).
    #[must_use]
    pub fn opaque(stream: &Stream) -> Self {
        Self(Memory::Opaque(Accesses::leasable(stream)))
    }

    /// Returns the address of the buffer; `None` if the library allocates the memory itself.
    #[must_use]
    pub fn as_pointer(&self) -> Option<DevicePointer<u8>> {
        match &self.0 {
            Memory::Buffer(buffer) => Some(buffer.as_pointer()),
            Memory::Opaque(_) => None,
        }
    }

    /// Returns the size of the buffer in bytes; 0 if the library allocates the memory itself.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        match &self.0 {
            Memory::Buffer(buffer) => buffer.len(),
            Memory::Opaque(_) => 0,
        }
    }

    /// Makes the operation's stream wait for the earlier operations of the handle.
    ///
    /// # Safety
    ///
    /// If an operation is enqueued, [`LibraryMemory::launched`] is called before the handle is used
    /// for anything else.
    ///
    /// # Errors
    ///
    /// The error of a wait: an argument error if the memory belongs to a capture that the
    /// operation's stream is not part of. The operation must not be enqueued then.
    #[inline]
    pub unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<()> {
        match &mut self.0 {
            Memory::Buffer(buffer) => {
                let mut view = buffer.as_slice_mut();
                // SAFETY: the caller calls `launched` after the operation was enqueued.
                unsafe { Argument::<&mut [u8]>::bind(&mut view, operation) }.map(|_| ())
            }
            Memory::Opaque(accesses) => accesses.before_write(operation),
        }
    }

    /// Records that an operation was enqueued on the operation's stream.
    ///
    /// # Safety
    ///
    /// [`LibraryMemory::bind`] succeeded with the same operation.
    #[inline]
    pub unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        match &mut self.0 {
            Memory::Buffer(buffer) => {
                let mut view = buffer.as_slice_mut();
                // SAFETY: `bind` succeeded with this operation, and the buffer was not used since.
                unsafe { Argument::<&mut [u8]>::launched(&mut view, operation) };
            }
            Memory::Opaque(accesses) => accesses.after_write(operation),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(buffer) => buffer.fmt(formatter),
            Self::Opaque(_) => formatter.write_str("allocated by the library"),
        }
    }
}
