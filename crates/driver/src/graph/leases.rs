//! What an executable uses without borrowing it: memory, and semaphores whose owners are told of each launch.

use std::sync::Arc;

use super::SemaphoreOwner;
use super::kept::{Kept, Resource};
use crate::hazard::{Claim, Claims, Launching, Lease};
use crate::{Result, Stream};

/// The leases of an executable, each memory once, and its semaphores.
#[derive(Default)]
pub(super) struct Leases {
    memory: Vec<Lease>,
    semaphores: Vec<Arc<dyn SemaphoreOwner>>,
}

impl Leases {
    #[inline]
    pub(super) fn of(kept: &Kept) -> Self {
        Self {
            memory: kept.leases().cloned().collect(),
            semaphores: kept.resources().flat_map(|resource| owners(resource).iter().cloned()).collect(),
        }
    }

    /// Has `launch` put the work on `stream`, as a use of all the memory.
    #[inline]
    pub(super) fn launch(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        // Before: an owner that knows of a launch that failed waits for a stream in vain, and for nothing that is missing.
        self.semaphores.iter().for_each(|owner| owner.launched(stream));
        if self.memory.is_empty() { launch() } else { self.launch_in_turn(stream, launch) }
    }

    #[inline]
    fn launch_in_turn(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        let _launching = Launching::wait("GraphExec::launch", self)?;
        self.memory.iter().try_for_each(|lease| lease.before(stream))?;
        launch()?;
        self.memory.iter().for_each(|lease| lease.after(stream));
        Ok(())
    }
}

impl Claims for &Leases {
    #[inline]
    fn claims(&self) -> impl Iterator<Item = (&Claim, bool)> {
        self.memory.iter().map(|lease| (lease.claim(), lease.is_write()))
    }
}

/// What keeps the semaphores of nodes, if that is what the resource is.
#[inline]
fn owners(resource: &Resource) -> &[Arc<dyn SemaphoreOwner>] {
    if let Resource::Semaphores(owners) = resource { owners } else { &[] }
}
