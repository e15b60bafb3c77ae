//! Work queues of a device.

use std::fmt;

use curium_sys::{CUdevResourceType, CUdevWorkqueueConfigResource, CUdevWorkqueueConfigScope};

use super::Description;
use crate::{Context, Device, Result};

/// A work queue configuration: the expected number of concurrent streams, and how queues are
/// shared.
#[derive(Clone)]
pub struct WorkQueueConfig {
    description: Description,
    device: Device,
}

/// The work queues of a context, which another context can be made to use too. Keeps their context
/// alive.
#[derive(Clone)]
pub struct WorkQueue {
    description: Description,
    context: Context,
}

/// The set of contexts that share work queues.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WorkQueueScope {
    /// All contexts of the device.
    Device,
    /// Preferably no other green context of this scope.
    Balanced,
    /// A scope defined by a newer driver.
    Unknown(u32),
}

impl Device {
    /// Returns the default work queue configuration of contexts on this device.
    ///
    /// Requires CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA:
    /// `cuDeviceGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn work_queue_config(&self) -> Result<WorkQueueConfig> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;
        Ok(WorkQueueConfig {
            description: Description::for_device(self, kind)?,
            device: self.clone(),
        })
    }
}

impl Context {
    /// Returns the work queue configuration of this context.
    ///
    /// Requires CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA:
    /// `cuCtxGetDevResource`, `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn work_queue_config(&self) -> Result<WorkQueueConfig> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;
        Ok(WorkQueueConfig {
            description: Description::for_context(self, kind)?,
            device: self.device().clone(),
        })
    }

    /// Returns the work queues of this context, for use by another context too.
    ///
    /// Requires CUDA 13.1; drivers before return `CUDA_ERROR_INVALID_RESOURCE_TYPE`. CUDA:
    /// `cuCtxGetDevResource`, `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn work_queue(&self) -> Result<WorkQueue> {
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE;
        Ok(WorkQueue {
            description: Description::for_context(self, kind)?,
            context: self.clone(),
        })
    }
}

impl WorkQueueConfig {
    /// Returns the expected number of streams with concurrent work.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.config().wqConcurrencyLimit
    }

    /// Returns the set of contexts that share work queues.
    #[must_use]
    pub fn scope(&self) -> WorkQueueScope {
        match self.config().sharingScope {
            CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX => WorkQueueScope::Device,
            CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED => {
                WorkQueueScope::Balanced
            }
            CUdevWorkqueueConfigScope(other) => WorkQueueScope::Unknown(other),
        }
    }

    /// Sets the expected number of concurrent streams.
    #[must_use]
    pub fn with_concurrency(self, streams: u32) -> Self {
        self.with(|config| config.wqConcurrencyLimit = streams)
    }

    /// Sets the scope.
    #[must_use]
    pub fn with_scope(self, scope: WorkQueueScope) -> Self {
        self.with(|config| {
            config.sharingScope = match scope {
                WorkQueueScope::Device => CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX,
                WorkQueueScope::Balanced => {
                    CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED
                }
                WorkQueueScope::Unknown(other) => CUdevWorkqueueConfigScope(other),
            };
        })
    }

    pub(crate) fn parts(&self) -> (Description, Device) {
        (self.description, self.device.clone())
    }

    fn config(&self) -> CUdevWorkqueueConfigResource {
        // SAFETY: the driver returned the description for a resource of this type, whose fields are
        // plain integers.
        unsafe { self.description.0.__bindgen_anon_1.wqConfig }
    }

    fn with(mut self, change: impl FnOnce(&mut CUdevWorkqueueConfigResource)) -> Self {
        let mut config = self.config();
        change(&mut config);
        self.description.0.__bindgen_anon_1.wqConfig = config;
        self
    }
}

impl WorkQueue {
    pub(crate) fn parts(&self) -> (Description, Device) {
        (self.description, self.context.device().clone())
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for WorkQueueConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "WorkQueueConfig({} streams, {:?})",
            self.concurrency(),
            self.scope()
        )
    }
}

impl fmt::Debug for WorkQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WorkQueue")
    }
}
