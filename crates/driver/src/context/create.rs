//! Creation of contexts.

use std::ffi::c_void;
use std::ptr;

use bitflags::bitflags;
use curium_sys::{
    CUcigDataType, CUcontext, CUctx_flags, CUctxCigParam, CUctxCreateParams, CUexecAffinityParam,
    CUexecAffinityType, Function,
};

use super::{Context, Owned};
use crate::call;
use crate::{Device, Error, Result};

bitflags! {
    /// Context flags. At most one of `SPIN`, `YIELD` and `BLOCKING_SYNC` can be set; without any
    /// ([`AUTO`](ContextFlags::AUTO)), the driver chooses.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct ContextFlags: u32 {
        /// A host thread that waits spins: this has the lowest latency and keeps a CPU core busy.
        const SPIN = CUctx_flags::CU_CTX_SCHED_SPIN.0;
        /// A host thread that waits spins and yields to other threads.
        const YIELD = CUctx_flags::CU_CTX_SCHED_YIELD.0;
        /// A host thread that waits blocks on a synchronization primitive.
        const BLOCKING_SYNC = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC.0;
        /// Pinned host memory can be mapped. Newer drivers always set this flag.
        const MAP_HOST = CUctx_flags::CU_CTX_MAP_HOST.0;
        /// Local memory that was resized for a kernel is not reduced afterwards. Newer drivers
        /// always set this flag.
        const LMEM_RESIZE_TO_MAX = CUctx_flags::CU_CTX_LMEM_RESIZE_TO_MAX.0;
        /// A GPU exception triggers a core dump.
        const COREDUMP = CUctx_flags::CU_CTX_COREDUMP_ENABLE.0;
        /// Writing to a pipe, whose name must be set beforehand, triggers a core dump. Implies
        /// `COREDUMP`, which some drivers report in its place.
        const USER_COREDUMP = CUctx_flags::CU_CTX_USER_COREDUMP_ENABLE.0;
        /// Synchronous memory operations always synchronize.
        const SYNC_MEMOPS = CUctx_flags::CU_CTX_SYNC_MEMOPS.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

impl ContextFlags {
    /// No scheduling flag: a waiting host thread spins if the process has no more contexts than the
    /// host has processors, and yields otherwise. This is the empty set, and the default.
    #[doc(alias = "SCHED_AUTO")]
    #[doc(alias = "CU_CTX_SCHED_AUTO")]
    pub const AUTO: Self = Self::empty();
}

/// Options for creating a context.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ContextOptions {
    /// Flags of the context.
    pub flags: ContextFlags,
    /// The number of multiprocessors that the context may use, rounded up to what the hardware
    /// supports; all by default.
    pub multiprocessors: Option<u32>,
    graphics: Option<GraphicsQueue>,
}

/// A command queue of a graphics API that shares the device with a context (CUDA in graphics, CIG),
/// so that work of both runs concurrently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum GraphicsQueue {
    /// A Direct3D 12 command queue.
    Direct3D12(*mut c_void),
    /// The queue data that NVIDIA's Vulkan extension provides.
    Vulkan(*mut c_void),
}

impl ContextOptions {
    /// Returns options without flags, for a context that may use the whole device.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            flags: ContextFlags::empty(),
            multiprocessors: None,
            graphics: None,
        }
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: ContextFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Limits the number of multiprocessors. Only a client of the Multi-Process Service (MPS) can
    /// do this; see [`Device::supports_affinity`].
    #[must_use]
    pub const fn with_multiprocessors(mut self, count: u32) -> Self {
        self.multiprocessors = Some(count);
        self
    }

    /// Shares the device with the queue of a graphics API. Requires CUDA 12.5.
    ///
    /// # Safety
    ///
    /// The queue is of the given kind, and stays valid for as long as a context created with these
    /// options exists.
    #[must_use]
    pub const unsafe fn with_graphics(mut self, queue: GraphicsQueue) -> Self {
        self.graphics = Some(queue);
        self
    }

    fn check(&self) -> Result<()> {
        if self.multiprocessors.is_some() && self.graphics.is_some() {
            let reason =
                "a graphics (CIG) context cannot be limited to a number of multiprocessors";
            return Err(Error::argument("Device::create_context", reason));
        }
        Ok(())
    }

    /// Creates the context with the newest function that the driver has, or with an older one if it
    /// is sufficient. All of them make it current.
    fn create(&self, device: &Device) -> Result<CUcontext> {
        let driver = device.driver();
        let flags = self.flags.bits();
        let number = device.as_raw();
        let mut affinity = self.multiprocessors.map(affinity);
        let (affinities, count) = affinity
            .as_mut()
            .map_or((ptr::null_mut(), 0), |affinity| (&raw mut *affinity, 1));
        let mut raw = ptr::null_mut();
        let created = if driver.has(Function::cuCtxCreate_v4) || self.graphics.is_some() {
            let mut graphics = self.graphics.map(GraphicsQueue::as_raw);
            let graphics = graphics
                .as_mut()
                .map_or(ptr::null_mut(), |graphics| &raw mut *graphics);
            let mut parameters = CUctxCreateParams {
                execAffinityParams: affinities,
                numExecAffinityParams: count,
                cigParams: graphics,
            };
            // SAFETY: `raw` is valid for writes; the parameters outlive the call, and at most one
            // of the two is set; the queue is valid, as the caller of `with_graphics` guaranteed.
            unsafe {
                call!(driver, cuCtxCreate_v4(&raw mut raw, &raw mut parameters, flags, number) creates raw)
            }
        } else if count > 0 {
            // SAFETY: `raw` is valid for writes, and `affinities` has `count` entries that outlive
            // the call.
            unsafe {
                call!(driver, cuCtxCreate_v3(&raw mut raw, affinities, count, flags, number) creates raw)
            }
        } else {
            // SAFETY: `raw` is valid for writes.
            unsafe { call!(driver, cuCtxCreate_v2(&raw mut raw, flags, number) creates raw) }
        };
        created.map_err(|error| {
            error.about(format!("context of device {number}, {:?}", self.flags))
        })?;
        Ok(raw)
    }
}

impl GraphicsQueue {
    fn as_raw(self) -> CUctxCigParam {
        let (kind, data) = match self {
            Self::Direct3D12(queue) => (CUcigDataType::CIG_DATA_TYPE_D3D12_COMMAND_QUEUE, queue),
            Self::Vulkan(data) => (CUcigDataType::CIG_DATA_TYPE_NV_BLOB, data),
        };
        CUctxCigParam {
            sharedDataType: kind,
            sharedData: data,
        }
    }
}

impl Device {
    /// Creates a context in addition to the primary one. It is not made current.
    ///
    /// Each context has its own memory, streams and modules, and work of different contexts is
    /// time-sliced. Use [`Device::primary_context`] unless isolation is required.
    ///
    /// CUDA: `cuCtxCreate_v4`, or `_v3` or `_v2` on older drivers, then `cuCtxPopCurrent_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY` if the device cannot limit the multiprocessors of a
    /// context, `CUDA_ERROR_INVALID_VALUE` for mutually exclusive flags, an argument error for
    /// mutually exclusive options.
    #[doc(alias = "cuCtxCreate")]
    pub fn create_context(&self, options: ContextOptions) -> Result<Context> {
        options.check()?;
        let raw = options.create(self)?;
        // From here on, dropping the value destroys the context, which also pops it from the stack.
        let context = Context::new(raw, self, Owned::Created);
        Context::pop(self.driver())?;
        Ok(context)
    }
}

fn affinity(multiprocessors: u32) -> CUexecAffinityParam {
    let mut parameter = CUexecAffinityParam {
        type_: CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT,
        ..Default::default()
    };
    parameter.param.smCount.val = multiprocessors;
    parameter
}
