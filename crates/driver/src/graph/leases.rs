//! The memory that an executable uses without borrowing it.

use super::tree::{Kept, Resource};
use crate::hazard::{Claim, Claims, Launching, Lease};
use crate::{Result, Stream};

/// The leases of an executable, each memory once.
#[derive(Default)]
pub(super) struct Leases(Vec<Lease>);

impl Leases {
    #[inline]
    pub(super) fn of(kept: &Kept) -> Self {
        let lease =
            |resource: &Resource| if let Resource::Lease(lease) = resource { Some(lease.clone()) } else { None };
        Self(kept.resources().filter_map(lease).collect())
    }

    /// Has `launch` put the work on `stream`, as a use of all the memory.
    #[inline]
    pub(super) fn launch(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.0.is_empty() { launch() } else { self.launch_in_turn(stream, launch) }
    }

    #[inline]
    fn launch_in_turn(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        let _launching = Launching::wait("GraphExec::launch", self)?;
        self.0.iter().try_for_each(|lease| lease.before(stream))?;
        launch()?;
        self.0.iter().for_each(|lease| lease.after(stream));
        Ok(())
    }
}

impl Claims for &Leases {
    #[inline]
    fn claims(&self) -> impl Iterator<Item = (&Claim, bool)> {
        self.0.iter().map(|lease| (lease.claim(), lease.is_write()))
    }
}
