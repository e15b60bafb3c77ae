//! The memory and the semaphores that an executable graph uses without borrowing them.

use std::sync::Arc;

use super::resource::{Resource, ResourceSet};
use super::semaphore::SemaphoreOwner;
use crate::hazard::LaunchLeases;
use crate::{Result, Stream};

/// The leases and the semaphores of an executable graph.
#[derive(Default)]
pub(super) struct Leases {
    memory: LaunchLeases,
    semaphores: Vec<Arc<dyn SemaphoreOwner>>,
}

impl Leases {
    #[inline]
    pub(super) fn new(resources: &ResourceSet) -> Self {
        Self {
            memory: LaunchLeases::new(resources.leases().cloned()),
            semaphores: resources
                .iter()
                .flat_map(|resource| owners(resource).iter().cloned())
                .collect(),
        }
    }

    /// Enqueues `launch` on `stream` as an access to all leased memory.
    #[inline]
    pub(super) fn launch(
        &self,
        stream: &Stream,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        // Before the launch: if the launch fails, an owner waits once more than necessary.
        self.semaphores
            .iter()
            .for_each(|owner| owner.launched(stream));
        // Without memory, nothing has to be ordered, and nothing waits for the launch.
        if self.memory.is_empty() {
            launch()
        } else {
            self.memory.launch(stream, launch)
        }
    }
}

/// Returns the semaphore owners that the resource keeps, if any.
#[inline]
fn owners(resource: &Resource) -> &[Arc<dyn SemaphoreOwner>] {
    if let Resource::Semaphores(owners) = resource {
        owners
    } else {
        &[]
    }
}
