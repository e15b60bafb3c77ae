//! Operands of copies and fills, and the accesses of a copy to them.

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Error, Result, Stream};

use crate::PointerInfo;
use crate::tracked::Tracked;

/// An operand of a copy: memory that the device accesses.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) address: CUdeviceptr,
    pub(crate) bytes: usize,
    pub(crate) tracked: &'a Tracked,
}

impl Operand<'_> {
    /// Returns the stream of the memory.
    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// Returns `true` if every device can access the memory.
    #[inline]
    pub(crate) fn is_everywhere(&self) -> bool {
        self.tracked.reach().is_everywhere()
    }

    /// Returns `true` if both operands are on the same device, or if one of them is accessible to
    /// every device.
    pub(crate) fn is_near(&self, other: &Operand<'_>) -> bool {
        let is_same_device = self.stream().device().as_raw() == other.stream().device().as_raw();
        is_same_device || self.is_everywhere() || other.is_everywhere()
    }

    /// Returns `true` if a batch on `stream` can access the memory. For memory of another device,
    /// this requires access rights of its pool, which other copies do not need.
    #[inline]
    pub(crate) fn is_at(&self, stream: &Stream) -> bool {
        self.is_everywhere() || self.stream().device().as_raw() == stream.device().as_raw()
    }

    /// Adds the size of the copy to an error, and reports memory that other code has freed.
    #[cold]
    pub(crate) fn explain(&self, error: Error) -> Error {
        let bytes = self.bytes;
        let address = self.address;
        let device = self.stream().device().as_raw();
        let error = error.about(format!("{bytes} bytes at {address:#x} of device {device}"));
        error.advised(|_| self.is_gone().then(|| gone(self.address).into()))
    }

    /// Returns `true` if the driver reports no allocation at the address any more.
    #[inline]
    fn is_gone(&self) -> bool {
        PointerInfo::at_address(self.stream().driver(), self.address)
            .is_ok_and(|info| info.is_none())
    }
}

/// Returns the text for memory that other code has freed.
#[inline]
fn gone(address: CUdeviceptr) -> String {
    format!("no allocation at {address:#x}: other code has freed memory that is still in use")
}

/// Calls `enqueue` to enqueue work that writes `to` and reads `from`.
pub(crate) fn transfer(
    mut operation: Operation<'_>,
    to: &Operand<'_>,
    from: &Operand<'_>,
    enqueue: impl FnOnce(&Operation<'_>) -> Result<()>,
) -> Result<()> {
    to.tracked.before_write(&mut operation)?;
    from.tracked.before_read(&mut operation)?;
    enqueue(&operation).map_err(|error| explain_both(error, to, from))?;
    from.tracked.after_read(&mut operation);
    to.tracked.after_partial_write(&mut operation);
    Ok(())
}

#[cold]
fn explain_both(error: Error, to: &Operand<'_>, from: &Operand<'_>) -> Error {
    if to.is_gone() {
        to.explain(error)
    } else {
        from.explain(error)
    }
}
