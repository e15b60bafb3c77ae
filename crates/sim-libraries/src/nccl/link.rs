//! The way from a rank to the other ranks of its communicator, which may be in other processes.

use std::sync::Arc;

use super::Result;
use super::clique::{Channel, Clique, Device, Key};
use super::error::raised;
use super::message::{Failure, Parts};
use super::operation::Operation;
use super::registry::{self, Identifier};
use super::remote::Remote;

/// The ranks of a communicator, as one of them sees them.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// In the process that created the identifier.
    Local(Arc<Clique>),
    /// In another process.
    Remote(Arc<Remote>),
}

/// Calls the method with the same name of either kind.
macro_rules! either {
    ($link:expr, $method:ident($($argument:expr),*)) => {
        match $link {
            Link::Local(clique) => clique.$method($($argument),*),
            Link::Remote(remote) => remote.$method($($argument),*),
        }
    };
}

impl Link {
    /// Adds a rank on a device to the communicator of an identifier, which the first rank creates.
    pub(super) fn open(
        identifier: &Identifier,
        size: usize,
        rank: usize,
        device: Device,
    ) -> Result<Self> {
        if !identifier.is_own() {
            let remote = Remote::connect(identifier, size, rank, device);
            return remote.map(Self::Remote).map_err(raised);
        }
        let clique = registry::clique(identifier.number(), size).map_err(raised)?;
        let link = Self::Local(clique);
        link.arrive(rank, device)?;
        Ok(link)
    }

    /// Creates a communicator whose ranks are all in this process.
    pub(super) fn local(size: usize) -> Self {
        Self::Local(Clique::new(size))
    }

    /// Adds a rank of this process.
    pub(super) fn arrive(&self, rank: usize, device: Device) -> Result {
        let Self::Local(clique) = self else {
            return Ok(());
        };
        clique.arrive(rank, device, None).map_err(raised)?;
        clique.announce();
        registry::forget_complete(clique);
        Ok(())
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Local(clique) => clique.size,
            Self::Remote(remote) => remote.size,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        either!(self, is_complete())
    }

    pub(super) fn wait_for_ranks(&self) -> Result {
        either!(self, wait_for_ranks())
    }

    pub(super) fn error(&self) -> Option<Failure> {
        either!(self, error())
    }

    pub(super) fn fail(&self, failure: Failure) {
        either!(self, fail(failure));
    }

    /// Ends the rank. One that was aborted does not wait for the others.
    pub(super) fn leave(&self, rank: usize, waits: bool) {
        either!(self, leave(rank, waits));
    }

    /// Returns the number of the communicator, if its ranks are in this process.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Local(clique) => Some(clique.number),
            Self::Remote(_) => None,
        }
    }

    /// Compares a call with that of the other ranks.
    pub(super) fn agree(
        &self,
        channel: Channel,
        call: u64,
        rank: usize,
        operation: &Operation,
    ) -> Result {
        either!(self, agree(channel, call, rank, operation)).map_err(raised)
    }

    pub(super) fn contribute(&self, key: Key, rank: usize, part: Arc<[u8]>) {
        either!(self, contribute(key, rank, part));
    }

    pub(super) fn is_ready(&self, key: Key) -> bool {
        either!(self, is_ready(key))
    }

    pub(super) fn take(&self, key: Key) -> Parts {
        either!(self, take(key))
    }

    /// Contributes to a meeting of `ranks` ranks on the host.
    pub(super) fn join_meeting(&self, call: u64, rank: usize, ranks: usize, part: &[u8]) -> Key {
        let key = Key {
            channel: Channel::Creation,
            call,
            run: ranks as u64,
        };
        self.contribute(key, rank, part.into());
        key
    }

    /// Waits until every rank has contributed, and returns the data.
    pub(super) fn wait_for(&self, key: Key) -> Result<Parts> {
        either!(self, wait_for(key))
    }
}
