//! Copies.
//!
//! | from and to | what to call | the host waits |
//! |---|---|---|
//! | ordinary slices | [`DeviceSliceMut::copy_from_slice`](crate::DeviceSliceMut::copy_from_slice), [`DeviceSlice::copy_to_slice`](crate::DeviceSlice::copy_to_slice) | until it is done |
//! | pinned buffers | [`upload`], [`download`]: the buffer moves in and comes back | when it wants to: [`Pending`] |
//! | borrowed slices | [`CopyScope`] | at the end of the scope |
//! | device memory, also of two devices | [`DeviceSliceMut::copy_from_device`](crate::DeviceSliceMut::copy_from_device) | no |
//! | rows and layers | [`GridMut`](crate::GridMut) | as its methods say |
//! | many at once | [`CopyBatch`] | no |
//!
//! # When a wait fails
//!
//! A copy from or to a borrowed slice returns after its stream has been waited for: the slice is the caller's again, and the device must
//! not
//! use it any more. If the driver refuses the wait, for instance because other code captures the stream, it is repeated for ten seconds. If
//! no wait succeeds, there is no sound way on, and nothing could be leaked instead: the reason is written to the standard error and to
//! `tracing`, and the process aborts. The environment variable `CURIUM_ABORT_AFTER` replaces the ten seconds by another number of seconds,
//! or by `never`. A context that is lost does no more work, so that its error is returned at once. Memory that a value owns is never a
//! reason
//! to abort: it is leaked, see [`Driver::leaked_memory`](curium_driver::Driver::leaked_memory).

mod batch;
pub(crate) mod device;
pub(crate) mod grid;
pub(crate) mod host;
mod options;
pub(crate) mod peer;
mod pending;
mod scope;
pub(crate) mod spanning;

#[cfg(feature = "textures")]
pub(crate) use self::batch::BoxCopy;
pub use self::batch::CopyBatch;
pub use self::options::CopyOptions;
pub use self::pending::{Pending, download, upload};
pub use self::scope::{CopyScope, copy_scope};
use curium_driver::hazard::AccessGuard;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Error, Result, Stream};

use crate::PointerInfo;
use crate::tracked::Tracked;

/// One end of a copy: memory that the device uses.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) address: CUdeviceptr,
    pub(crate) bytes: usize,
    pub(crate) tracked: &'a Tracked,
}

impl End<'_> {
    /// The stream that the memory belongs to.
    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// Whether every device reaches the memory.
    #[inline]
    pub(crate) fn is_everywhere(&self) -> bool {
        self.tracked.reach().is_everywhere()
    }

    /// Whether both ends are on one device, or one is where every device reaches it.
    #[inline]
    pub(crate) fn is_near(&self, other: &End<'_>) -> bool {
        let is_same_device = self.stream().device().as_raw() == other.stream().device().as_raw();
        is_same_device || self.is_everywhere() || other.is_everywhere()
    }

    /// Whether a batch on `stream` reaches the memory. To that of another device it goes only if the memory's pool lets it, which other
    /// copies need not ask for.
    #[inline]
    pub(crate) fn is_at(&self, stream: &Stream) -> bool {
        self.is_everywhere() || self.stream().device().as_raw() == stream.device().as_raw()
    }

    /// Adds to the error of a use of the memory how many bytes it was, and that the memory is gone if it is.
    #[cold]
    #[inline]
    pub(crate) fn explain(&self, error: Error) -> Error {
        let (bytes, address, device) = (self.bytes, self.address, self.stream().device().as_raw());
        let error = error.about(format!("{bytes} bytes at {address:#x} of device {device}"));
        error.advised(|_| self.is_gone().then(|| gone(self.address).into()))
    }

    /// Whether nothing is allocated here any more, as far as the driver can be asked.
    #[inline]
    fn is_gone(&self) -> bool {
        PointerInfo::of_address(self.stream().driver(), self.address).is_ok_and(|info| info.is_none())
    }
}

/// What is said of memory that foreign code has freed.
#[inline]
pub(crate) fn gone(address: CUdeviceptr) -> String {
    format!("nothing is allocated at {address:#x}: other code has freed memory that this program still uses")
}

/// Has `enqueue` put work on `stream` that writes `to` and reads `from`.
#[inline]
pub(crate) fn transfer(
    operation: &'static str,
    stream: &Stream,
    to: &End<'_>,
    from: &End<'_>,
    enqueue: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut guard = AccessGuard::new(stream)?;
    to.tracked.before_write(operation, &mut guard)?;
    from.tracked.before_read(operation, &mut guard)?;
    enqueue().map_err(|error| explain_both(error, to, from))?;
    from.tracked.after_read(&mut guard);
    to.tracked.after_partial_write(&mut guard);
    Ok(())
}

#[cold]
#[inline]
fn explain_both(error: Error, to: &End<'_>, from: &End<'_>) -> Error {
    if to.is_gone() { to.explain(error) } else { from.explain(error) }
}
