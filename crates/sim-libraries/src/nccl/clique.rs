//! The ranks of a communicator, and what they exchange.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use curium_nccl::sys::ncclResult_t;

use super::operation::Operation;
use super::{Result, failed, lock};

/// A device: its number, and the simulator that has it.
pub(super) type Device = (i32, usize);

/// The ranks of one communicator.
#[derive(Debug)]
pub(super) struct Clique {
    pub(super) size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// The order in which operations are numbered.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Channel {
    /// The collectives of the communicator.
    Collective,
    /// The transfers from one rank to another.
    Pair { from: usize, to: usize },
    /// Calls that create communicators.
    Creation,
}

/// One run of an operation on all of its ranks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) channel: Channel,
    /// The number of the call.
    pub(super) call: u64,
    /// The number of earlier runs: in a graph, an operation runs at each launch.
    pub(super) run: u64,
}

#[derive(Debug, Default)]
struct State {
    devices: HashMap<usize, Device>,
    /// Calls that not all ranks have made: the first of them, and the number of ranks.
    calls: HashMap<(Channel, u64), (usize, Operation, usize)>,
    meetings: HashMap<Key, Meeting>,
    /// The asynchronous error of the communicator.
    error: Option<ncclResult_t>,
}

/// The data of one run.
#[derive(Debug, Default)]
struct Meeting {
    parts: HashMap<usize, Arc<[u8]>>,
    /// The number of ranks that have taken the data.
    taken: usize,
}

impl Channel {
    /// Returns the number of ranks that take part.
    fn ranks(self, size: usize) -> usize {
        match self {
            Self::Pair { .. } => 2,
            Self::Collective | Self::Creation => size,
        }
    }
}

impl Clique {
    pub(super) fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { size, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Adds a rank on a device.
    pub(super) fn arrive(&self, rank: usize, device: Device) -> Result {
        let mut state = lock(&self.state);
        if let Some((other, _)) = state.devices.iter().find(|(_, used)| **used == device) {
            let message = format!("duplicate GPU: rank {rank} and rank {other} are both on device {}", device.0);
            state.error = Some(ncclResult_t::ncclInvalidUsage);
            self.changed.notify_all();
            return Err(failed(ncclResult_t::ncclInvalidUsage, message));
        }
        if state.devices.insert(rank, device).is_some() {
            return Err(failed(ncclResult_t::ncclInvalidUsage, format!("rank {rank} was created twice")));
        }
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        lock(&self.state).devices.len() == self.size
    }

    /// Waits until every rank has arrived.
    pub(super) fn wait_for_ranks(&self) -> Result {
        self.wait(|state| state.devices.len() == self.size || state.error.is_some()).error.map_or(Ok(()), Err)
    }

    pub(super) fn error(&self) -> Option<ncclResult_t> {
        lock(&self.state).error
    }

    pub(super) fn fail(&self, code: ncclResult_t) {
        lock(&self.state).error = Some(code);
        self.changed.notify_all();
    }

    /// Compares a call with that of the other ranks.
    pub(super) fn agree(&self, channel: Channel, call: u64, rank: usize, operation: &Operation) -> Result {
        let mut state = lock(&self.state);
        let (first, agreed, ranks) = state.calls.entry((channel, call)).or_insert_with(|| (rank, operation.clone(), 0));
        *ranks += 1;
        if !agreed.matches(operation) {
            let message = format!(
                "the ranks disagree on operation {call} of the communicator: rank {rank} calls {operation}, but rank {first} called {agreed}"
            );
            state.error = Some(ncclResult_t::ncclInvalidUsage);
            return Err(failed(ncclResult_t::ncclInvalidUsage, message));
        }
        if *ranks == channel.ranks(self.size) {
            state.calls.remove(&(channel, call));
        }
        Ok(())
    }

    /// Adds the data of a rank. In a transfer from a rank to itself, the receiving end is numbered after all ranks.
    pub(super) fn contribute(&self, key: Key, rank: usize, part: &[u8]) {
        lock(&self.state).meetings.entry(key).or_default().parts.insert(rank, part.into());
        self.changed.notify_all();
    }

    /// Returns `true` if every rank has contributed.
    pub(super) fn is_ready(&self, key: Key) -> bool {
        let state = lock(&self.state);
        state.meetings.get(&key).is_some_and(|meeting| meeting.parts.len() == key.channel.ranks(self.size))
    }

    /// Returns the data of all ranks, in their order.
    pub(super) fn take(&self, key: Key) -> Vec<Arc<[u8]>> {
        let mut state = lock(&self.state);
        let ranks = key.channel.ranks(self.size);
        let Some(meeting) = state.meetings.get_mut(&key) else { return Vec::new() };
        meeting.taken += 1;
        let mut parts: Vec<_> = meeting.parts.iter().map(|(rank, part)| (*rank, Arc::clone(part))).collect();
        if meeting.taken == ranks {
            state.meetings.remove(&key);
        }
        parts.sort_by_key(|(rank, _)| *rank);
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Contributes to a meeting of `ranks` ranks on the host, and waits for the others.
    pub(super) fn meet(&self, call: u64, rank: usize, ranks: usize, part: &[u8]) -> Result<Vec<(usize, Vec<u8>)>> {
        let key = Key { channel: Channel::Creation, call, run: ranks as u64 };
        self.contribute(key, rank, part);
        let all = |state: &State| state.meetings.get(&key).is_some_and(|meeting| meeting.parts.len() == ranks);
        let mut state = self.wait(all);
        let Some(meeting) = state.meetings.get_mut(&key) else { return Err(ncclResult_t::ncclInternalError) };
        meeting.taken += 1;
        let parts = meeting.parts.iter().map(|(rank, part)| (*rank, part.to_vec())).collect();
        if meeting.taken == ranks {
            state.meetings.remove(&key);
        }
        Ok(parts)
    }

    fn wait(&self, is_met: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        self.changed.wait_while(state, |state| !is_met(state)).unwrap_or_else(PoisonError::into_inner)
    }
}
