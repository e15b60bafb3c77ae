//! The ranks of a communicator, and what they exchange.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use curium_sys::nccl::ncclResult_t;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Result;
use super::error::raised;
use super::message::{Failure, Message, Parts};
use super::operation::Operation;

/// The time for which the process that has the communicator waits for the end of the ranks in other
/// processes.
const PATIENCE: Duration = Duration::from_secs(1);

/// A device: its number, the process that uses it, and the simulator that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) ordinal: i32,
    pub(super) process: u32,
    pub(super) simulator: usize,
}

/// The ranks of one communicator, in the process that created its identifier.
#[derive(Debug)]
pub(super) struct Clique {
    /// The number of the communicator in this process, in the order of creation.
    pub(super) number: u64,
    pub(super) size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// The communicators of this process.
static CLIQUES: Mutex<Vec<Weak<Clique>>> = Mutex::new(Vec::new());

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
    /// The number of earlier runs: in a graph, an operation runs at each launch. For a creation,
    /// the number of ranks that take part.
    pub(super) run: u64,
}

#[derive(Debug, Default)]
struct State {
    devices: HashMap<usize, Device>,
    /// The connections of the ranks in other processes.
    remotes: HashMap<usize, Arc<Mutex<TcpStream>>>,
    /// The ranks that have ended.
    left: HashSet<usize>,
    /// Calls that not all ranks have made: the ranks with their operations, in the order of the
    /// calls.
    calls: HashMap<(Channel, u64), Vec<(usize, Operation)>>,
    meetings: HashMap<Key, Meeting>,
    /// The asynchronous error of the communicator.
    error: Option<Failure>,
}

/// The data of one run.
#[derive(Debug, Default)]
struct Meeting {
    parts: HashMap<usize, Arc<[u8]>>,
    /// The number of ranks that have taken the data.
    taken: usize,
}

impl Device {
    fn is(&self, other: &Self) -> bool {
        let is_other_simulator = self.process == other.process && self.simulator != other.simulator;
        self.ordinal == other.ordinal && !is_other_simulator
    }
}

impl Key {
    /// Returns the number of ranks that take part, of a communicator of `size`.
    fn ranks(self, size: usize) -> usize {
        match self.channel {
            Channel::Pair { .. } => 2,
            Channel::Collective => size,
            Channel::Creation => usize::try_from(self.run).unwrap_or(usize::MAX),
        }
    }
}

impl State {
    /// Returns `true` if every rank, of a communicator of `size`, has contributed.
    fn is_ready(&self, key: Key, size: usize) -> bool {
        self.meetings
            .get(&key)
            .is_some_and(|meeting| meeting.parts.len() == key.ranks(size))
    }

    /// Sends a message to a rank in another process. The state stays locked, which keeps the order
    /// of the messages; a rank reads them without waiting for this process.
    fn send(&self, rank: usize, message: &Message) {
        let Some(stream) = self.remotes.get(&rank) else {
            return;
        };
        let mut stream = stream.lock();
        if message.send(&mut *stream).is_err() {
            // A part of the message may have been sent: none can follow. The thread that reads
            // notices the end.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn send_all(&self, message: &Message) {
        for rank in self.remotes.keys() {
            self.send(*rank, message);
        }
    }

    fn fail(&mut self, failure: Failure) -> ncclResult_t {
        let code = failure.0;
        self.send_all(&Message::Failed(failure.clone()));
        self.error.get_or_insert(failure);
        code
    }
}

impl Clique {
    pub(super) fn new(size: usize) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let clique = Arc::new(Self {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            size,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        CLIQUES.lock().push(Arc::downgrade(&clique));
        clique
    }

    /// Fails the communicators with these numbers.
    pub(super) fn fail_all(numbers: &[u64], failure: &Failure) {
        let mut cliques = CLIQUES.lock();
        cliques.retain(|clique| clique.strong_count() > 0);
        let failing: Vec<_> = cliques
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|clique| numbers.contains(&clique.number))
            .collect();
        drop(cliques);
        for clique in failing {
            clique.fail(failure.clone());
        }
    }

    /// Adds a rank on a device, with its connection if it is one of another process.
    pub(super) fn arrive(
        &self,
        rank: usize,
        device: Device,
        remote: Option<Arc<Mutex<TcpStream>>>,
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if let Some((other, _)) = state.devices.iter().find(|(_, used)| used.is(&device)) {
            let message = format!(
                "duplicate GPU: rank {rank} and rank {other} are both on device {}",
                device.ordinal
            );
            let failure = (ncclResult_t::ncclInvalidUsage, message);
            if let Some(remote) = &remote {
                // The failure may end this process before it replies.
                let _ = Message::Failed(failure.clone()).send(&mut *remote.lock());
            }
            state.fail(failure.clone());
            self.changed.notify_all();
            return Err(failure);
        }
        if rank >= self.size || state.devices.insert(rank, device).is_some() {
            return Err((
                ncclResult_t::ncclInvalidUsage,
                format!("rank {rank} was created twice"),
            ));
        }
        if let Some(remote) = remote {
            state.remotes.insert(rank, remote);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Notifies the ranks in other processes if every rank has arrived.
    pub(super) fn announce(&self) {
        let state = self.state.lock();
        if state.devices.len() == self.size {
            state.send_all(&Message::Complete);
        } else if let Some(failure) = &state.error {
            state.send_all(&Message::Failed(failure.clone()));
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state.lock().devices.len() == self.size
    }

    /// Waits until every rank has arrived.
    pub(super) fn wait_for_ranks(&self) -> Result {
        let state = self.wait(|state| state.devices.len() == self.size || state.error.is_some());
        state
            .error
            .clone()
            .map_or(Ok(()), |failure| Err(raised(failure)))
    }

    pub(super) fn error(&self) -> Option<Failure> {
        self.state.lock().error.clone()
    }

    pub(super) fn fail(&self, failure: Failure) {
        self.state.lock().fail(failure);
        self.changed.notify_all();
    }

    /// Records the end of a rank. The last one of this process waits for the others, which need it.
    pub(super) fn leave(&self, rank: usize, waits: bool) {
        let mut state = self.state.lock();
        state.left.insert(rank);
        self.changed.notify_all();
        let has_other_local_rank = state
            .devices
            .keys()
            .any(|rank| !state.remotes.contains_key(rank) && !state.left.contains(rank));
        if state.remotes.contains_key(&rank) || has_other_local_rank {
            return;
        }
        let deadline = Instant::now() + if waits { PATIENCE } else { Duration::ZERO };
        while state.error.is_none() && state.remotes.keys().any(|rank| !state.left.contains(rank)) {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.send_all(&Message::Leave);
    }

    /// Records that the connection to a rank in another process has ended: with an error unless the
    /// rank has.
    pub(super) fn disconnect(&self, rank: usize, process: u32) {
        let mut state = self.state.lock();
        state.remotes.remove(&rank);
        if state.left.insert(rank) {
            let message = format!(
                "rank {rank} has ended without the end of its communicator (process {process})"
            );
            state.fail((ncclResult_t::ncclRemoteError, message));
        }
        self.changed.notify_all();
    }

    /// Compares a call with that of the other ranks.
    pub(super) fn agree(
        &self,
        channel: Channel,
        call: u64,
        rank: usize,
        operation: &Operation,
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        let key = (channel, call);
        let calls = state.calls.entry(key).or_default();
        calls.push((rank, operation.clone()));
        let (_, first) = &calls[0];
        if !calls.iter().all(|(_, other)| first.matches(other)) {
            let missing = self.size.saturating_sub(calls.len());
            let mut message = format!(
                "the ranks disagree on operation {call} of the communicator: {}",
                disagreement(calls, rank)
            );
            if channel == Channel::Collective && missing > 0 && self.size > 2 {
                // Writing to a `String` cannot fail.
                let _ = write!(message, "; {missing} ranks have not called it");
            }
            let failure = (ncclResult_t::ncclInvalidUsage, message);
            state.fail(failure.clone());
            // Later calls show which ranks are the minority.
            state.error = Some(failure.clone());
            self.changed.notify_all();
            return Err(failure);
        }
        let ranks = Key {
            channel,
            call,
            run: 0,
        }
        .ranks(self.size);
        if calls.len() == ranks {
            state.calls.remove(&key);
        }
        Ok(())
    }

    /// Adds the data of a rank, and sends all data to the ranks in other processes if it is the
    /// last. In a transfer from a rank to itself, the receiving end is numbered after all ranks.
    pub(super) fn contribute(&self, key: Key, rank: usize, part: Arc<[u8]>) {
        let mut state = self.state.lock();
        let meeting = state.meetings.entry(key).or_default();
        meeting.parts.insert(rank, part);
        if meeting.parts.len() == key.ranks(self.size) {
            let parts = meeting.all();
            let ranks = meeting.parts.len();
            let remote: Vec<usize> = parts
                .iter()
                .map(|(contributor, _)| contributor % self.size)
                .filter(|rank| state.remotes.contains_key(rank))
                .collect();
            let mut sent = HashSet::new();
            for rank in remote.iter().filter(|rank| sent.insert(**rank)) {
                state.send(
                    *rank,
                    &Message::Ready {
                        key,
                        parts: parts.clone(),
                    },
                );
            }
            self.take_for(&mut state, key, remote.len(), ranks);
        }
        self.changed.notify_all();
    }

    /// Returns `true` if every rank has contributed.
    pub(super) fn is_ready(&self, key: Key) -> bool {
        self.state.lock().is_ready(key, self.size)
    }

    /// Returns the data of all ranks, in their order; none if they have not contributed.
    pub(super) fn take(&self, key: Key) -> Parts {
        let mut state = self.state.lock();
        let Some(meeting) = state.meetings.get(&key) else {
            return Vec::new();
        };
        let parts = meeting.all();
        let ranks = key.ranks(self.size);
        self.take_for(&mut state, key, 1, ranks);
        parts
    }

    /// Records that ranks have taken the data, which the last of them drops.
    fn take_for(&self, state: &mut State, key: Key, count: usize, ranks: usize) {
        let Some(meeting) = state.meetings.get_mut(&key) else {
            return;
        };
        meeting.taken += count;
        if meeting.taken >= ranks {
            state.meetings.remove(&key);
        }
    }

    /// Waits until every rank has contributed, and returns the data. Returns an error if the
    /// communicator fails before.
    pub(super) fn wait_for(&self, key: Key) -> Result<Parts> {
        let state = self.wait(|state| state.is_ready(key, self.size) || state.error.is_some());
        if !state.is_ready(key, self.size) {
            return Err(state
                .error
                .clone()
                .map_or(ncclResult_t::ncclInternalError, raised));
        }
        drop(state);
        Ok(self.take(key))
    }

    fn wait(&self, is_met: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !is_met(state));
        state
    }
}

/// Describes who called what, the fewest ranks first. `current` is the rank that calls now.
fn disagreement(calls: &[(usize, Operation)], current: usize) -> String {
    let mut groups: Vec<(&Operation, Vec<usize>)> = Vec::new();
    // With two ranks, the one that calls now comes first.
    for (rank, operation) in calls.iter().rev() {
        match groups
            .iter_mut()
            .find(|(known, _)| known.matches(operation))
        {
            Some((_, ranks)) => ranks.push(*rank),
            None => groups.push((operation, vec![*rank])),
        }
    }
    groups.sort_by_key(|(_, ranks)| ranks.len());
    let texts: Vec<_> = groups
        .iter_mut()
        .map(|(operation, ranks)| {
            ranks.sort_unstable();
            ranks.dedup();
            let verb = if *ranks == [current] {
                "calls"
            } else {
                "called"
            };
            format!("{} {verb} {operation}", rank_list(ranks))
        })
        .collect();
    texts.join(", but ")
}

/// Formats sorted ranks, such as `ranks 0 to 4 and 6`.
fn rank_list(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let texts: Vec<_> = runs
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first} and {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", texts.join(", "))
}

impl Meeting {
    /// Returns the data of all ranks, in their order.
    fn all(&self) -> Parts {
        let mut parts: Parts = self
            .parts
            .iter()
            .map(|(rank, part)| (*rank, Arc::clone(part)))
            .collect();
        parts.sort_by_key(|(rank, _)| *rank);
        parts
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use curium_sys::nccl::ncclDataType_t;

    use super::super::operation::Kind;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn all_gather(count: usize) -> Operation {
        Operation {
            kind: Kind::AllGather,
            count,
            element: ncclDataType_t::ncclFloat32,
            width: 4,
        }
    }

    #[test]
    fn ranks_are_listed_as_runs() {
        assert_eq!(rank_list(&[3]), "rank 3");
        assert_eq!(rank_list(&[0, 1, 2, 4, 6, 7]), "ranks 0 to 2, 4, 6 and 7");
    }

    /// One of many ranks is wrong: the last call names it, and the others as the majority.
    #[test]
    fn rank_in_the_minority_is_named_first() {
        for wrong in [0, 1, 100, 255] {
            let clique = Clique::new(256);
            let mut last = None;
            for rank in 0..256 {
                let operation = all_gather(if rank == wrong { 9 } else { 8 });
                let result = clique.agree(Channel::Collective, 1, rank, &operation);
                if let Err((_, message)) = result {
                    last = Some(message);
                }
            }
            let last = last.expect("the ranks disagree");
            let expected = format!("rank {wrong} call");
            let (_, ranks) = last.split_once("communicator: ").expect("it says where");
            assert!(ranks.starts_with(&expected), "{last}");
            assert!(last.contains("ncclAllGather(9 elements"), "{last}");
            let (_, latest) = clique.error().expect("the communicator has failed");
            assert_eq!(latest, last);
        }
    }

    #[test]
    fn connection_to_a_rank_that_does_not_read_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind failed");
        let mut rank =
            TcpStream::connect(listener.local_addr().expect("connect failed")).expect("it listens");
        rank.set_read_timeout(Some(Duration::from_secs(20)))
            .expect("the time is not 0");
        let (stream, _) = listener.accept().expect("a rank connects");
        stream
            .set_write_timeout(Some(Duration::from_millis(50)))
            .expect("the time is not 0");
        let clique = Clique::new(2);
        let remote = Some(Arc::new(Mutex::new(stream)));
        clique
            .arrive(
                0,
                Device {
                    ordinal: 0,
                    process: 1,
                    simulator: 0,
                },
                None,
            )
            .expect("conflict with no other call");
        clique
            .arrive(
                1,
                Device {
                    ordinal: 1,
                    process: 2,
                    simulator: 0,
                },
                remote,
            )
            .expect("its device is another");
        let key = Key {
            channel: Channel::Collective,
            call: 1,
            run: 0,
        };
        clique.contribute(key, 1, Arc::from([]));
        clique.contribute(key, 0, vec![7; 64 << 20].into());
        let received = rank
            .read_to_end(&mut Vec::new())
            .expect("the connection ends");
        assert!((1..64 << 20).contains(&received), "{received} bytes");
    }
}
