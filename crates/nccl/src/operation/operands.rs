//! The memory of an operation, and its accesses.

use curium_driver::Argument;
use curium_driver::hazard::AccessGuard;
use curium_memory::{DeviceSlice, DeviceSliceMut};

use crate::error::Result;

/// The memory that an operation accesses. In place, one of the two is `None`.
pub(crate) struct Operands<'a> {
    pub(super) source: Option<DeviceSlice<'a, u8>>,
    pub(super) target: Option<DeviceSliceMut<'a, u8>>,
}

impl Operands<'_> {
    /// Returns the addresses and the numbers of bytes of the memory.
    pub(crate) fn ranges(&self) -> [Option<(u64, usize)>; 2] {
        let source = self
            .source
            .as_ref()
            .map(|source| (source.as_pointer().as_raw(), source.len()));
        let target = self
            .target
            .as_ref()
            .map(|target| (target.as_pointer().as_raw(), target.len()));
        [source, target]
    }

    /// Orders the guard's stream after the accesses that the operation must wait for.
    ///
    /// # Safety
    ///
    /// If the operation is enqueued, `launched` is called before the memory is used for anything else.
    #[inline]
    pub(crate) unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> Result<()> {
        if let Some(source) = &mut self.source {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&[u8]>::bind(source, guard) }?;
        }
        if let Some(target) = &mut self.target {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&mut [u8]>::bind(target, guard) }?;
        }
        Ok(())
    }

    /// Records that the operation was enqueued on the guard's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same guard.
    #[inline]
    pub(crate) unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        if let Some(source) = &mut self.source {
            // SAFETY: `bind` succeeded with this guard.
            unsafe { Argument::<&[u8]>::launched(source, guard) };
        }
        if let Some(target) = &mut self.target {
            // SAFETY: `bind` succeeded with this guard.
            unsafe { Argument::<&mut [u8]>::launched(target, guard) };
        }
    }
}
