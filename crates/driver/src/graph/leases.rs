//! The memory and the semaphores that an executable uses without borrowing them.

use std::sync::Arc;

use super::SemaphoreOwner;
use super::kept::{Kept, Resource};
use crate::hazard::LaunchLeases;
use crate::{Result, Stream};

/// The leases of an executable, and its semaphores.
#[derive(Default)]
pub(super) struct Leases {
    memory: LaunchLeases,
    semaphores: Vec<Arc<dyn SemaphoreOwner>>,
}

impl Leases {
    #[inline]
    pub(super) fn of(kept: &Kept) -> Self {
        Self {
            memory: LaunchLeases::new(kept.leases().cloned()),
            semaphores: kept.resources().flat_map(|resource| owners(resource).iter().cloned()).collect(),
        }
    }

    /// Enqueues `launch` on `stream` as an access to all the memory.
    #[inline]
    pub(super) fn launch(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        // Before the launch: if that fails, an owner waits once more for the stream than it has to.
        self.semaphores.iter().for_each(|owner| owner.launched(stream));
        if self.memory.is_empty() { launch() } else { self.memory.launch(stream, launch) }
    }
}

/// Returns the owners of the semaphores that the resource keeps, if it keeps any.
#[inline]
fn owners(resource: &Resource) -> &[Arc<dyn SemaphoreOwner>] {
    if let Resource::Semaphores(owners) = resource { owners } else { &[] }
}
