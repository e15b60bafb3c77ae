//! A rank whose communicator is in another process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use curium_sys::nccl::ncclResult_t;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Result;
use super::clique::{Channel, Device, Key};
use super::error::raised;
use super::message::{Failure, LIMIT, Message, Parts};
use super::operation::Operation;
use super::registry::Identifier;

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
        let (stream, reader) = connect(identifier.port()).map_err(|error| {
            let text = format!(
                "the process that created the identifier cannot be reached (process {process}): {error}"
            );
            (ncclResult_t::ncclSystemError, text)
        })?;
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
        remote.request(&Message::Hello {
            secret: identifier.secret(),
            number: identifier.number(),
            size,
            rank,
            ordinal: device.ordinal,
            process: device.process,
        })?;
        Ok(remote)
    }

    /// Sends a message, and waits for the reply.
    fn request(&self, message: &Message) -> Result<(), Failure> {
        let _request = self.requests.lock();
        self.state.lock().reply = None;
        self.send(message);
        let mut state = self.state.lock();
        self.changed.wait_while_for(
            &mut state,
            |state| state.reply.is_none() && !state.is_disconnected,
            PATIENCE,
        );
        state
            .reply
            .take()
            .unwrap_or_else(|| Err(state.error.clone().unwrap_or_else(|| self.ended())))
    }

    fn send(&self, message: &Message) {
        // The reader notices the end of the connection.
        let _ = message.send(&mut *self.stream.lock());
    }

    /// Returns the error of a communicator whose process has ended.
    fn ended(&self) -> Failure {
        let text = format!(
            "the process that created the identifier has ended (process {})",
            self.process
        );
        (ncclResult_t::ncclRemoteError, text)
    }

    /// Records a message of the other process.
    fn receive(&self, message: Message) {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        state.is_disconnected = true;
        if !state.has_left {
            state.error.get_or_insert_with(|| self.ended());
        }
        self.changed.notify_all();
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state.lock().is_complete
    }

    pub(super) fn wait_for_ranks(&self) -> Result {
        let state = self.wait(|state| state.is_complete || state.error.is_some());
        state
            .error
            .clone()
            .map_or(Ok(()), |failure| Err(raised(failure)))
    }

    pub(super) fn error(&self) -> Option<Failure> {
        self.state.lock().error.clone()
    }

    pub(super) fn fail(&self, failure: Failure) {
        self.send(&Message::Failed(failure.clone()));
        self.state.lock().error.get_or_insert(failure);
        self.changed.notify_all();
    }

    pub(super) fn leave(&self, _rank: usize, _waits: bool) {
        self.send(&Message::Leave);
        self.state.lock().has_left = true;
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

    pub(super) fn contribute(&self, key: Key, contributor: usize, part: Arc<[u8]>) {
        self.send(&Message::Contribute {
            key,
            contributor,
            part,
        });
    }

    pub(super) fn is_ready(&self, key: Key) -> bool {
        self.state.lock().ready.contains_key(&key)
    }

    pub(super) fn take(&self, key: Key) -> Parts {
        let mut state = self.state.lock();
        let Entry::Occupied(mut entry) = state.ready.entry(key) else {
            return Vec::new();
        };
        let (parts, remaining) = entry.get_mut();
        *remaining -= 1;
        if *remaining == 0 {
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
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !is_met(state));
        state
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Ends the reader.
        let _ = self.stream.lock().shutdown(Shutdown::Both);
    }
}

/// Connects to a process of this machine. Returns the stream twice: for the sender and for the
/// reader.
fn connect(port: u16) -> io::Result<(TcpStream, TcpStream)> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    let reader = stream.try_clone()?;
    Ok((stream, reader))
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
    fn data_is_dropped_once_every_end_has_taken_it() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind failed");
        let stream =
            TcpStream::connect(listener.local_addr().expect("connect failed")).expect("it listens");
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
