//! The memory of an operation, and its accesses.

use curium_driver::Argument;
use curium_driver::hazard::Operation as StreamOperation;
use curium_memory::{DeviceView, DeviceViewMut};

use crate::error::Result;

/// The memory that an operation accesses. In place, one of the two is `None`.
pub(crate) struct Operands<'a> {
    pub(super) source: Option<DeviceView<'a, u8>>,
    pub(super) target: Option<DeviceViewMut<'a, u8>>,
}

/// A range of bytes in device memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRange {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl MemoryRange {
    pub(crate) fn end(self) -> u64 {
        self.address + self.bytes as u64
    }
}

impl Operands<'_> {
    /// Returns the ranges of the source and of the target.
    pub(crate) fn ranges(&self) -> [Option<MemoryRange>; 2] {
        let source = self.source.as_ref().map(|source| MemoryRange {
            address: source.as_pointer().as_raw(),
            bytes: source.len(),
        });
        let target = self.target.as_ref().map(|target| MemoryRange {
            address: target.as_pointer().as_raw(),
            bytes: target.len(),
        });
        [source, target]
    }

    /// Orders the operation's stream after the accesses that the operation must wait for.
    ///
    /// # Safety
    ///
    /// If the operation is enqueued, `launched` is called before the memory is used for anything
    /// else.
    #[inline]
    pub(crate) unsafe fn bind(&mut self, operation: &mut StreamOperation<'_>) -> Result<()> {
        if let Some(source) = &mut self.source {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&[u8]>::bind(source, operation) }?;
        }
        if let Some(target) = &mut self.target {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&mut [u8]>::bind(target, operation) }?;
        }
        Ok(())
    }

    /// Records that the operation was enqueued on the operation's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same operation.
    #[inline]
    pub(crate) unsafe fn launched(&mut self, operation: &mut StreamOperation<'_>) {
        if let Some(source) = &mut self.source {
            // SAFETY: `bind` succeeded with this operation.
            unsafe { Argument::<&[u8]>::launched(source, operation) };
        }
        if let Some(target) = &mut self.target {
            // SAFETY: `bind` succeeded with this operation.
            unsafe { Argument::<&mut [u8]>::launched(target, operation) };
        }
    }
}
