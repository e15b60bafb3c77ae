//! Green contexts, which use a subset of a device's multiprocessors.

use std::ptr;

use bitflags::bitflags;
use curium_sys::{CUdevResource, CUdevResourceDesc, CUgreenCtx, CUgreenCtxCreate_flags};

use crate::AsRawStream as _;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::context::Owned;
use crate::device_resource::Description;
use crate::{
    Context, Device, Driver, Error, Multiprocessors, Result, Stream, WorkQueue, WorkQueueConfig,
};

/// Options of a green context.
#[derive(Debug)]
#[non_exhaustive]
pub struct GreenContextOptions {
    /// Flags of the context; the default is [`GreenContextFlags::DEFAULT_STREAM`].
    pub flags: GreenContextFlags,
    /// The resources, each with its device.
    resources: Vec<(Description, Device)>,
    /// The contexts whose work queues are used. They must live until the green context is created.
    lenders: Vec<Context>,
}

bitflags! {
    /// Flags of a green context.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct GreenContextFlags: u32 {
        /// The context has its own default stream. Required by drivers before CUDA 13.1.
        const DEFAULT_STREAM = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

impl GreenContextOptions {
    /// Returns options for a context that uses these multiprocessors.
    #[must_use]
    pub fn new(multiprocessors: Multiprocessors) -> Self {
        let resources = vec![multiprocessors.into_parts()];
        Self {
            flags: GreenContextFlags::DEFAULT_STREAM,
            resources,
            lenders: Vec::new(),
        }
    }

    /// Adds multiprocessors of the same split.
    #[must_use]
    pub fn with_multiprocessors(mut self, multiprocessors: Multiprocessors) -> Self {
        self.resources.push(multiprocessors.into_parts());
        self
    }

    /// Adds work queues with this configuration. Requires CUDA 13.1.
    #[must_use]
    pub fn with_work_queue_config(mut self, config: &WorkQueueConfig) -> Self {
        self.resources.push(config.parts());
        self
    }

    /// Adds the work queues of another context. Requires CUDA 13.1.
    #[must_use]
    pub fn with_work_queue(mut self, queue: &WorkQueue) -> Self {
        self.resources.push(queue.parts());
        self.lenders.push(queue.context().clone());
        self
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: GreenContextFlags) -> Self {
        self.flags = flags;
        self
    }
}

impl Device {
    /// Creates a green context, which uses a subset of this device's multiprocessors. It is not
    /// made current.
    ///
    /// It is part of the primary context, which it retains, and shares the primary context's memory
    /// and modules. Work on its streams uses its multiprocessors only. Green contexts with disjoint
    /// multiprocessors do not compete for multiprocessors, but CUDA does not guarantee that their
    /// kernels run concurrently.
    ///
    /// ```no_run
    /// use curium_driver::{Device, GreenContextOptions, SplitFlags};
    ///
    /// let device = Device::first()?;
    /// let split = device.multiprocessors()?.split(2, 16, SplitFlags::empty())?;
    /// for part in split.parts {
    ///     let context = device.green_context(GreenContextOptions::new(part))?;
    ///     let stream = context.stream()?;
    ///     // … work …
    ///     stream.synchronize()?;
    /// }
    /// # Ok::<(), curium_driver::Error>(())
    /// ```
    ///
    /// Requires CUDA 12.4. CUDA: `cuDevResourceGenerateDesc`, `cuGreenCtxCreate`,
    /// `cuCtxFromGreenCtx`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for resources that cannot be combined, an
    /// argument error for those of another device or driver.
    #[doc(alias = "cuGreenCtxCreate")]
    #[doc(alias = "cuDevResourceGenerateDesc")]
    pub fn green_context(&self, options: GreenContextOptions) -> Result<Context> {
        let driver = self.driver();
        let GreenContextOptions {
            flags,
            resources,
            lenders,
        } = options;
        check_same_device(self, &resources)?;
        let description = describe(driver, &resources)?;
        let mut green = ptr::null_mut();
        // SAFETY: `green` is valid for writes, and the driver created the descriptor.
        unsafe {
            call!(driver, cuGreenCtxCreate(&raw mut green, description, self.as_raw(), flags.bits()) creates green)
        }
        .map_err(|error| error.about(format!("green context of device {}, {flags:?}", self.as_raw())))?;
        drop(lenders);
        let context = Context::from_green(driver, green)
            .inspect_err(|_| release(|| destroy(driver, green)))?;
        Ok(Context::new(
            context,
            self,
            Owned::Green(Handle::new(green)),
        ))
    }
}

impl Context {
    /// Returns an identifier that is unique in this process, even after the context is destroyed.
    /// `None` if this is not a green context.
    ///
    /// Requires CUDA 12.9. CUDA: `cuGreenCtxGetId`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGreenCtxGetId")]
    pub fn green_id(&self) -> Result<Option<u64>> {
        let Some(green) = self.green_raw() else {
            return Ok(None);
        };
        let mut id = 0;
        // SAFETY: `id` is valid for writes, and the context is live.
        unsafe { call!(self.driver(), cuGreenCtxGetId(green, &raw mut id)) }?;
        Ok(Some(id))
    }
}

impl Stream {
    /// Returns the raw green context of this stream; null if it has none.
    ///
    /// Requires CUDA 12.4. CUDA: `cuStreamGetGreenCtx`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetGreenCtx")]
    pub fn green_context_raw(&self) -> Result<CUgreenCtx> {
        let mut green = ptr::null_mut();
        // SAFETY: `green` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetGreenCtx(self.as_raw(), &raw mut green)
            )
        }?;
        Ok(green)
    }
}

fn destroy(driver: &Driver, green: CUgreenCtx) -> Result<()> {
    // SAFETY: the context is live and owned, and no object was created from it.
    unsafe { call!(driver, cuGreenCtxDestroy(green)) }
}

/// Returns an error unless all resources belong to `device`.
fn check_same_device(device: &Device, resources: &[(Description, Device)]) -> Result<()> {
    const OPERATION: &str = "Device::green_context";
    for (_, other) in resources {
        device.driver().check_same(other.driver(), OPERATION)?;
        if other.as_raw() != device.as_raw() {
            let this = device.as_raw();
            let other = other.as_raw();
            let reason =
                format!("device mismatch (a resource of device {other}, expected device {this})");
            return Err(Error::argument(OPERATION, reason));
        }
    }
    Ok(())
}

/// Returns the driver's descriptor of the resources, which is valid until the process ends.
fn describe(driver: &Driver, resources: &[(Description, Device)]) -> Result<CUdevResourceDesc> {
    let mut resources: Vec<CUdevResource> = resources
        .iter()
        .map(|(resource, _)| resource.raw())
        .collect();
    let count = u32::try_from(resources.len()).unwrap_or(u32::MAX);
    let mut description = ptr::null_mut();
    let first = resources.as_mut_ptr();
    // SAFETY: `description` is valid for writes, and there are `count` resources, at least one,
    // which outlive the call.
    unsafe {
        call!(driver, cuDevResourceGenerateDesc(&raw mut description, first, count) creates description)
    }?;
    Ok(description)
}
