//! A rank whose communicator is in another process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use curium_nccl::sys::ncclResult_t;

use super::clique::{Channel, Device, Key};
use super::error::raised;
use super::message::{Failure, LIMIT, Message, Parts};
use super::operation::Operation;
use super::registry::Identifier;
use super::{Result, lock};

/// The time for which the answer to a call is awaited: the other process answers at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection of a rank to the process that has its communicator.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) size: usize,
    process: u32,
    stream: Mutex<TcpStream>,
    /// Held from a request to its reply.
    requests: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reply: Option<Result<(), Failure>>,
    is_complete: bool,
    /// The data of runs, each with the number of times that it will be taken.
    ready: HashMap<Key, (Parts, usize)>,
    error: Option<Failure>,
    /// `true` once the other process has ended its ranks, and once the connection has ended.
    has_left: bool,
    is_disconnected: bool,
}

impl Remote {
    /// Connects a rank to the process that created the identifier.
    pub(super) fn connect(
        identifier: &Identifier,
        size: usize,
        rank: usize,
        device: Device,
    ) -> Result<Arc<Self>, Failure> {
        let process = identifier.process();
        let failure = |error: &dyn std::fmt::Display| {
            let text = format!(
                "the process that created the identifier cannot be reached (process {process}): {error}"
            );
            (ncclResult_t::ncclSystemError, text)
        };
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, identifier.port()))
            .map_err(|error| failure(&error))?;
        stream.set_nodelay(true).map_err(|error| failure(&error))?;
        let reader = stream.try_clone().map_err(|error| failure(&error))?;
        let remote = Arc::new(Self {
            size,
            process,
            stream: Mutex::new(stream),
            requests: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let weak = Arc::downgrade(&remote);
        thread::spawn(move || read(&weak, reader));
        let (secret, number) = (identifier.secret(), identifier.number());
        let (ordinal, process) = (device.ordinal, device.process);
        remote.request(&Message::Hello {
            secret,
            number,
            size,
            rank,
            ordinal,
            process,
        })?;
        Ok(remote)
    }

    /// Sends a message, and waits for the reply.
    fn request(&self, message: &Message) -> Result<(), Failure> {
        let _request = lock(&self.requests);
        lock(&self.state).reply = None;
        self.send(message);
        let state = lock(&self.state);
        let is_open = |state: &mut State| state.reply.is_none() && !state.is_disconnected;
        let waited = self.changed.wait_timeout_while(state, PATIENCE, is_open);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state
            .reply
            .take()
            .unwrap_or_else(|| Err(state.error.clone().unwrap_or_else(|| self.ended())))
    }

    fn send(&self, message: &Message) {
        // The reader notices the end of the connection.
        let _ = message.send(&mut *lock(&self.stream));
    }

    /// Returns the error of a communicator whose process has ended.
    fn ended(&self) -> Failure {
        let text = format!(
            "the process that created the identifier has ended (process {})",
            self.process
        );
        (ncclResult_t::ncclRemoteError, text)
    }

    /// Notes what the other process sends.
    fn receive(&self, message: Message) {
        let mut state = lock(&self.state);
        match message {
            Message::Reply(failure) => state.reply = Some(failure.map_or(Ok(()), Err)),
            Message::Complete => state.is_complete = true,
            Message::Ready { key, parts } => {
                // Both ends of a transfer from the rank to itself take the data.
                let is_own = matches!(key.channel, Channel::Pair { from, to } if from == to);
                state.ready.insert(key, (parts, if is_own { 2 } else { 1 }));
            }
            Message::Failed(failure) => drop(state.error.get_or_insert(failure)),
            Message::Leave => state.has_left = true,
            Message::Hello { .. } | Message::Agree { .. } | Message::Contribute { .. } => {}
        }
        self.changed.notify_all();
    }

    fn disconnect(&self) {
        let mut state = lock(&self.state);
        state.is_disconnected = true;
        if !state.has_left {
            state.error.get_or_insert_with(|| self.ended());
        }
        self.changed.notify_all();
    }

    pub(super) fn is_complete(&self) -> bool {
        lock(&self.state).is_complete
    }

    pub(super) fn wait_for_ranks(&self) -> Result {
        let state = self.wait(|state| state.is_complete || state.error.is_some());
        state
            .error
            .clone()
            .map_or(Ok(()), |failure| Err(raised(failure)))
    }

    pub(super) fn error(&self) -> Option<Failure> {
        lock(&self.state).error.clone()
    }

    pub(super) fn fail(&self, failure: Failure) {
        self.send(&Message::Failed(failure.clone()));
        lock(&self.state).error.get_or_insert(failure);
        self.changed.notify_all();
    }

    pub(super) fn leave(&self, _rank: usize, _waits: bool) {
        self.send(&Message::Leave);
        lock(&self.state).has_left = true;
    }

    pub(super) fn agree(
        &self,
        channel: Channel,
        call: u64,
        _rank: usize,
        operation: &Operation,
    ) -> Result<(), Failure> {
        self.request(&Message::Agree {
            channel,
            call,
            operation: operation.clone(),
        })
    }

    pub(super) fn contribute(&self, key: Key, place: usize, part: Arc<[u8]>) {
        self.send(&Message::Contribute { key, place, part });
    }

    pub(super) fn is_ready(&self, key: Key) -> bool {
        lock(&self.state).ready.contains_key(&key)
    }

    pub(super) fn take(&self, key: Key) -> Parts {
        let mut state = lock(&self.state);
        let Entry::Occupied(mut entry) = state.ready.entry(key) else {
            return Vec::new();
        };
        let (parts, rest) = entry.get_mut();
        *rest -= 1;
        if *rest == 0 {
            entry.remove().0
        } else {
            parts.clone()
        }
    }

    pub(super) fn wait_for(&self, key: Key) -> Result<Parts> {
        let state = self.wait(|state| {
            state.ready.contains_key(&key) || state.error.is_some() || state.is_disconnected
        });
        if !state.ready.contains_key(&key) {
            return Err(raised(state.error.clone().unwrap_or_else(|| self.ended())));
        }
        drop(state);
        Ok(self.take(key))
    }

    fn wait(&self, is_met: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        self.changed
            .wait_while(state, |state| !is_met(state))
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Ends the reader.
        let _ = lock(&self.stream).shutdown(Shutdown::Both);
    }
}

/// Reads messages until the connection ends.
fn read(remote: &Weak<Remote>, mut stream: TcpStream) {
    while let Ok(message) = Message::receive(&mut stream, LIMIT) {
        let Some(remote) = remote.upgrade() else {
            return;
        };
        remote.receive(message);
    }
    if let Some(remote) = remote.upgrade() {
        remote.disconnect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_dropped_once_every_end_on_the_rank_has_taken_it() {
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let stream =
            TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let remote = Remote {
            size: 3,
            process: 1,
            stream: Mutex::new(stream),
            requests: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        for (from, to, ends) in [(0, 2, 1), (2, 2, 2)] {
            let key = Key {
                channel: Channel::Pair { from, to },
                call: 1,
                run: 0,
            };
            let parts: Parts = vec![(from, [1, 2][..].into())];
            remote.receive(Message::Ready {
                key,
                parts: parts.clone(),
            });
            for _ in 0..ends {
                assert!(remote.is_ready(key));
                assert_eq!(remote.take(key), parts);
            }
            assert!(!remote.is_ready(key), "from {from} to {to}");
            assert_eq!(remote.take(key), []);
        }
    }
}
