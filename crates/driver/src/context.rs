//! A context: a device's address space and everything that lives in it.

use std::fmt;
use std::sync::Arc;

use curium_sys::{CUcontext, CUctx_st};

use crate::call;
use crate::current::Entered;
use crate::handle::Handle;
use crate::release::release;
use crate::{Device, Driver, Error, Result, Stream, StreamOptions};

/// A context of a device. Clones are cheap and stand for the same context.
///
/// Streams, events, modules and memory keep their context alive. No operation of this crate changes the calling thread's current
/// context, except for those whose purpose that is: a context need not be current to be used.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Primary>,
}

/// One retention of a device's primary context.
struct Primary {
    raw: Handle<CUctx_st>,
    device: Device,
}

impl Context {
    pub(crate) fn retain_primary(device: &Device) -> Result<Self> {
        let driver = device.driver();
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, and the device belongs to this driver.
        unsafe { call!(driver, cuDevicePrimaryCtxRetain(&raw mut raw, device.as_raw())) }?;
        Ok(Self { shared: Arc::new(Primary { raw: Handle::new(raw), device: device.clone() }) })
    }

    /// The device that this context is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// The driver that this context belongs to.
    #[inline]
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.shared.device.driver()
    }

    /// The driver's handle of this context. It is valid for as long as this context, or anything made from it, exists.
    #[must_use]
    pub fn as_raw(&self) -> CUcontext {
        self.shared.raw.raw()
    }

    /// A stream with the default options: one that does not synchronise with the legacy default stream.
    ///
    /// CUDA: `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self, StreamOptions::new())
    }

    /// Waits until all work of this context is done.
    ///
    /// CUDA: `cuCtxSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; the wait takes place all the same.
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no argument, and this context is current.
            unsafe { call!(driver, cuCtxSynchronize()) }
        })
    }

    /// The memory of the device that is free, and all of it, in bytes.
    ///
    /// CUDA: `cuMemGetInfo_v2`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMemGetInfo")]
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.entered(|driver| {
            let (mut free, mut total) = (0, 0);
            // SAFETY: `free` and `total` are valid places for the answers.
            unsafe { call!(driver, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
            Ok(MemoryInfo { free, total })
        })
    }

    /// Runs `operation` with this context current on the calling thread, and restores what was current before, also on panic.
    #[doc(hidden)]
    pub fn entered<T>(&self, operation: impl FnOnce(&Driver) -> Result<T>) -> Result<T> {
        let _entered = Entered::new(self.driver(), self.as_raw())?;
        operation(self.driver())
    }

    /// Ends this retention of the primary context, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuDevicePrimaryCtxRelease_v2`.
    ///
    /// # Errors
    ///
    /// Gives the context back if clones of it, or things made from it, still exist, or if the driver refuses.
    pub fn close(self) -> Result<(), (Self, Error)> {
        let mut primary = Arc::try_unwrap(self.shared)
            .map_err(|shared| (Self { shared }, Error::argument("Context::close", "the context is still in use")))?;
        match primary.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err((Self { shared: Arc::new(primary) }, error)),
        }
    }
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// What can still be allocated.
    pub free: usize,
    /// All that there is.
    pub total: usize,
}

impl Primary {
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: this value stands for one retention, which ends here once.
        unsafe { call!(self.device.driver(), cuDevicePrimaryCtxRelease_v2(self.device.as_raw())) }?;
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Context {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

/// Whether two values stand for the same retention of a context.
impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Context({:?} on device {})", self.shared.raw, self.device().as_raw())
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
