//! Work queues of a device.

use std::fmt;

use curium_sys::{CUdevResourceType, CUdevWorkqueueConfigResource, CUdevWorkqueueConfigScope};

use super::Description;
use crate::{Context, Device, Result};

/// A work queue configuration: the expected number of concurrent streams, and the sharing of queues.
#[derive(Clone)]
pub struct WorkQueueConfig {
    description: Description,
    device: Device,
}

/// The queues of a context, which another context can be made to use as well. It keeps their context alive.
#[derive(Clone)]
pub struct WorkQueue {
    description: Description,
    context: Context,
}

/// The contexts that share queues.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WorkQueueScope {
    /// All contexts of the device.
    Device,
    /// None, as far as that can be had, among the green contexts of this scope.
    Balanced,
    /// A scope of a newer driver.
    Unknown(u32),
}

impl Device {
    /// Returns the configuration of the queues that contexts of this device have by default.
    ///
    /// Needs CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA: `cuDeviceGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn work_queue_config(&self) -> Result<WorkQueueConfig> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;
        Ok(WorkQueueConfig { description: Description::of_device(self, kind)?, device: self.clone() })
    }
}

impl Context {
    /// Returns the configuration of this context's queues.
    ///
    /// Needs CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA: `cuCtxGetDevResource`,
    /// `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn work_queue_config(&self) -> Result<WorkQueueConfig> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;
        Ok(WorkQueueConfig { description: Description::of_context(self, kind)?, device: self.device().clone() })
    }

    /// This context's queues, for another context to use as well.
    ///
    /// Needs CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA: `cuCtxGetDevResource`,
    /// `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn work_queue(&self) -> Result<WorkQueue> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE;
        Ok(WorkQueue { description: Description::of_context(self, kind)?, context: self.clone() })
    }
}

impl WorkQueueConfig {
    /// Returns the number of streams are expected to have work at once.
    #[must_use]
    #[inline]
    pub fn concurrency(&self) -> u32 {
        self.config().wqConcurrencyLimit
    }

    /// The contexts that share queues.
    #[must_use]
    #[inline]
    pub fn scope(&self) -> WorkQueueScope {
        match self.config().sharingScope {
            CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX => WorkQueueScope::Device,
            CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED => WorkQueueScope::Balanced,
            CUdevWorkqueueConfigScope(other) => WorkQueueScope::Unknown(other),
        }
    }

    /// Sets the expected number of concurrent streams.
    #[must_use]
    #[inline]
    pub fn with_concurrency(self, streams: u32) -> Self {
        self.with(|config| config.wqConcurrencyLimit = streams)
    }

    /// Sets the scope.
    #[must_use]
    #[inline]
    pub fn with_scope(self, scope: WorkQueueScope) -> Self {
        self.with(|config| {
            config.sharingScope = match scope {
                WorkQueueScope::Device => CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX,
                WorkQueueScope::Balanced => CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED,
                WorkQueueScope::Unknown(other) => CUdevWorkqueueConfigScope(other),
            };
        })
    }

    #[inline]
    pub(crate) fn parts(&self) -> (Description, Device) {
        (self.description, self.device.clone())
    }

    #[inline]
    fn config(&self) -> CUdevWorkqueueConfigResource {
        // SAFETY: the description came from the driver as one of this type, whose fields are plain numbers.
        unsafe { self.description.0.__bindgen_anon_1.wqConfig }
    }

    #[inline]
    fn with(mut self, change: impl FnOnce(&mut CUdevWorkqueueConfigResource)) -> Self {
        let mut config = self.config();
        change(&mut config);
        self.description.0.__bindgen_anon_1.wqConfig = config;
        self
    }
}

impl WorkQueue {
    #[inline]
    pub(crate) fn parts(&self) -> (Description, Device) {
        (self.description, self.context.device().clone())
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for WorkQueueConfig {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WorkQueueConfig({} streams, {:?})", self.concurrency(), self.scope())
    }
}

impl fmt::Debug for WorkQueue {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WorkQueue")
    }
}
