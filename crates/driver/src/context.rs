//! Contexts: the state of a device in a process.

mod attachment;
mod config;
mod create;
pub(crate) mod handle_pool;
mod limit;
mod peer;
mod primary;
mod raw;
mod stack;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use curium_sys::{CUcontext, CUctx_st, CUgreenCtx, CUgreenCtx_st, Function};

pub use self::config::{CacheConfig, PriorityRange, RdmaScope, SharedMemoryConfig};
pub use self::create::{ContextFlags, ContextOptions, GraphicsQueue};
pub use self::limit::Limit;
pub use self::primary::PrimaryState;
pub use self::raw::RawContext;
use crate::base::attachments::Attachments;
use crate::base::capture_guard;
use crate::base::current::Entered;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::{Device, Driver, Error, Result, Returned};

/// A CUDA context. Clones are cheap and refer to the same context.
///
/// One type represents every kind of context: the [primary](Device::primary_context) context, which
/// is the default choice, [created](Device::create_context) and [green](Device::green_context)
/// contexts, and those that [other code](Context::from_raw) created. Every object can be created in
/// any of them.
///
/// Streams, events, modules and memory keep their context alive. A context need not be current to
/// be used, and no operation changes the calling thread's current context, except those whose
/// purpose it is.
///
/// # Threads
///
/// One context serves any number of threads, each with its own stream:
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new().with_devices(2))?;
/// # let driver = simulator.driver::<curium_driver::Driver>()?;
/// let context = driver.device(0)?.primary_context()?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| context.stream()?.synchronize());
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// One thread can use any number of devices, each with its own context. None of them need be
/// current:
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new().with_devices(2))?;
/// # let driver = simulator.driver::<curium_driver::Driver>()?;
/// for device in driver.devices()? {
///     device.primary_context()?.stream()?.synchronize()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A context that is shared with threads ends when the last owner drops it:
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// let context = driver.device(0)?.create_context(curium_driver::ContextOptions::new())?;
/// let worker = {
///     let context = context.clone();
///     std::thread::spawn(move || context.stream()?.synchronize())
/// };
/// drop(context);
/// worker.join().expect("the thread does not panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

/// The kind of a [`Context`]. It determines what happens when the context ends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ContextKind {
    /// The primary context of the device, shared by all code in the process. Its retention is
    /// released.
    Primary,
    /// A context created in addition to the primary one. It is destroyed.
    Created,
    /// A green context: a subset of the device's resources, used through the primary context. It is
    /// destroyed.
    Green,
    /// A context owned by other code. Nothing is done.
    Borrowed,
}

/// The free and the total memory of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// The free memory in bytes.
    pub free: usize,
    /// The total memory in bytes.
    pub total: usize,
}

struct Shared {
    raw: Handle<CUctx_st>,
    device: Device,
    owned: Owned,
    attachments: Attachments,
}

/// The part of a context that this crate owns.
pub(crate) enum Owned {
    /// One retention.
    Primary,
    Created,
    Green(Handle<CUgreenCtx_st>),
    /// Nothing, except that the owner, if any, keeps the context alive.
    Borrowed {
        _owner: Option<Box<dyn Any + Send + Sync>>,
    },
}

impl Context {
    #[inline]
    pub(crate) fn new(raw: CUcontext, device: &Device, owned: Owned) -> Self {
        let raw = Handle::new(raw);
        let device = device.clone();
        Self {
            shared: Arc::new(Shared {
                raw,
                device,
                owned,
                attachments: Attachments::default(),
            }),
        }
    }

    /// Returns the device of this context.
    #[must_use]
    #[inline]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Returns the driver of this context.
    #[inline]
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.shared.device.driver()
    }

    #[inline]
    pub(crate) fn owned(&self) -> &Owned {
        &self.shared.owned
    }

    /// Returns the kind of this context.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> ContextKind {
        match self.shared.owned {
            Owned::Primary => ContextKind::Primary,
            Owned::Created => ContextKind::Created,
            Owned::Green(_) => ContextKind::Green,
            Owned::Borrowed { .. } => ContextKind::Borrowed,
        }
    }

    /// Returns the green-context handle if this is a green context. It is valid for as long as
    /// [`Context::as_raw`] is.
    #[must_use]
    #[inline]
    pub fn green_raw(&self) -> Option<CUgreenCtx> {
        match &self.shared.owned {
            Owned::Green(green) => Some(green.raw()),
            _ => None,
        }
    }

    /// Returns `true` if objects of `other` can be used in this context: both are the same context,
    /// or belong to the primary context of the same device, as green contexts do. Makes no driver
    /// call.
    #[must_use]
    #[inline]
    pub fn shares_objects_with(&self, other: &Self) -> bool {
        if !self.driver().is_same(other.driver()) {
            return false;
        }
        self.as_raw() == other.as_raw()
            || self.device().as_raw() == other.device().as_raw()
                && self.is_in_primary()
                && other.is_in_primary()
    }

    /// Returns `true` if the objects of this context belong to the device's primary context.
    fn is_in_primary(&self) -> bool {
        matches!(self.kind(), ContextKind::Primary | ContextKind::Green)
    }

    /// Returns the raw handle. It is valid for as long as this context, or any object created from
    /// it, exists.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUcontext {
        self.shared.raw.raw()
    }

    /// Returns an identifier that is unique in this process, even after the context is destroyed.
    ///
    /// Requires CUDA 12.0. CUDA: `cuCtxGetId`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetId")]
    #[inline]
    pub fn id(&self) -> Result<u64> {
        let mut id = 0;
        // SAFETY: `id` is valid for writes, and the context is live.
        unsafe { call!(self.driver(), cuCtxGetId(self.as_raw(), &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the API version that the context was created with, such as 3020. It is not the
    /// driver version: it changes only when contexts become incompatible.
    ///
    /// CUDA: `cuCtxGetApiVersion`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetApiVersion")]
    #[inline]
    pub fn api_version(&self) -> Result<u32> {
        let mut version = 0;
        // SAFETY: `version` is valid for writes, and the context is live.
        unsafe {
            call!(
                self.driver(),
                cuCtxGetApiVersion(self.as_raw(), &raw mut version)
            )
        }?;
        Ok(version)
    }

    /// Waits until all work in this context has completed. For a primary context, this includes the
    /// work of its green contexts.
    ///
    /// CUDA: `cuCtxSynchronize_v2`, and `cuCtxSynchronize` before CUDA 13.0.
    ///
    /// # Errors
    ///
    /// The error of earlier work in the context, after the wait. An argument error, without a wait,
    /// while a [capture scope](crate::Graph::capture) of the context is open.
    #[doc(alias = "cuCtxSynchronize")]
    #[doc(alias = "cudaDeviceSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        capture_guard::refuse_wait("Context::synchronize")?;
        refuse_captures(self, "Context::synchronize")?;
        let driver = self.driver();
        if driver.has(Function::cuCtxSynchronize_v2) {
            // SAFETY: the context is live and belongs to this driver.
            return unsafe { call!(driver, cuCtxSynchronize_v2(self.as_raw())) };
        }
        self.entered(|driver| {
            // SAFETY: the call takes no argument, and this context is current.
            unsafe { call!(driver, cuCtxSynchronize()) }
        })
    }

    /// Returns the free and the total memory of the device, in bytes.
    ///
    /// CUDA: `cuMemGetInfo_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemGetInfo")]
    #[doc(alias = "cudaMemGetInfo")]
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.entered(|driver| {
            let mut free = 0;
            let mut total = 0;
            // SAFETY: `free` and `total` are valid for writes.
            unsafe { call!(driver, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
            Ok(MemoryInfo { free, total })
        })
    }

    /// Runs `operation` with this context current on the calling thread.
    ///
    /// The previously current context is restored when `operation` returns or panics. Nothing is
    /// pushed if this context is already current.
    ///
    /// CUDA: `cuCtxGetCurrent`, `cuCtxPushCurrent_v2`, `cuCtxPopCurrent_v2`.
    ///
    /// # Errors
    ///
    /// The error of `operation`, or an error returned by the driver if the context cannot be made
    /// current.
    #[inline]
    pub fn entered<T>(&self, operation: impl FnOnce(&Driver) -> Result<T>) -> Result<T> {
        let _entered = Entered::new(self.driver(), self.as_raw())?;
        operation(self.driver())
    }

    /// Makes this context current on the calling thread until the result is dropped, which restores
    /// the previously current context. Unlike [`Context::entered`], it serves operations with an
    /// error type of their own.
    ///
    /// Drop the results in the reverse order of their creation: each pops the top of the thread's
    /// stack, if it pushed a context.
    ///
    /// CUDA: `cuCtxGetCurrent`, `cuCtxPushCurrent_v2`, `cuCtxPopCurrent_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    // Inlined: docs/performance.md, "Functions around a call".
    #[inline(always)]
    pub fn enter(&self) -> Result<Entered<'_>> {
        Entered::inlined(self.driver(), self.as_raw())
    }

    /// Ends this context and returns any error, instead of only reporting it as [`Drop`] does. A
    /// primary context is released, a created or green context is destroyed, and a borrowed context
    /// is left alone. Destroying a context waits for all of its work, and pops a created context
    /// that is current on the calling thread.
    ///
    /// CUDA: `cuDevicePrimaryCtxRelease_v2`, `cuCtxDestroy_v2` or `cuGreenCtxDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the context to the caller if clones of it or objects created from it still exist, or
    /// if the driver call fails.
    #[doc(alias = "cuCtxDestroy")]
    #[doc(alias = "cuDevicePrimaryCtxRelease")]
    #[doc(alias = "cuGreenCtxDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument("Context::close", "the context is still in use"),
            )
        })?;
        match shared.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(
                Self {
                    shared: Arc::new(shared),
                },
                error,
            )),
        }
    }
}

impl Shared {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        self.attachments.clear();
        let driver = self.device.driver();
        match &self.owned {
            // SAFETY: this value owns one retention, which is released here once.
            Owned::Primary => unsafe {
                call!(driver, cuDevicePrimaryCtxRelease_v2(self.device.as_raw()))
            },
            // SAFETY: the context is live and owned by this value, which does not use it again once
            // it is destroyed.
            Owned::Created => unsafe { call!(driver, cuCtxDestroy_v2(self.raw.raw())) },
            // SAFETY: the context is live and owned by this value, which does not use it again once
            // it is destroyed.
            Owned::Green(green) => unsafe { call!(driver, cuGreenCtxDestroy(green.raw())) },
            Owned::Borrowed { .. } => Ok(()),
        }
        .map_err(|error| error.about_handle("context", self.raw.raw(), self.device.as_raw()))?;
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Context {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

/// Returns an argument error of `operation`, which would invalidate captures, if one is in progress
/// in `context`.
fn refuse_captures(context: &Context, operation: &'static str) -> Result<()> {
    if !context
        .driver()
        .open_captures()
        .lock()
        .contains(&context.as_raw().addr())
    {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!(
            "a stream of {context:?} is being captured, and this call would invalidate the capture"
        ),
    ))
}

/// Compares identity: clones are equal.
impl PartialEq for Context {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        let device = self.device().as_raw();
        write!(
            formatter,
            "Context({kind:?} {:?} on device {device})",
            self.shared.raw
        )
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
