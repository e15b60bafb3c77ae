//! The connections whose peers have not proved that they have the token.
//!
//! Any program that reaches the port can connect, so nothing that a stranger does may keep a rank
//! out:
//!
//! 1. A stranger has [`HANDSHAKE_TIMEOUT`] for its whole message, however it is divided.
//! 2. At most [`MAX_STRANGERS`] are connected. For the next one, the oldest stranger of the network
//!    with the most strangers is closed: a rank answers within a round trip, and a peer that drips
//!    grows old. A rank that is closed nevertheless connects again.
//! 3. A stranger has one buffer of the length of the message, and the connection ends once the
//!    buffer holds a wrong one.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::deadline::Deadline;
use crate::rendezvous::handshake::{self, Hello, Nonce};

/// The largest number of strangers. Processes commonly have 1,024 files, and rank 0 needs some for
/// other purposes.
const MAX_STRANGERS: usize = 256;

/// The time that a stranger has to prove that it has the token.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections of all strangers.
pub(super) struct Strangers {
    /// The keys grow, so the first connection is the oldest.
    connections: BTreeMap<usize, Stranger>,
    next_key: usize,
    /// The time that each stranger has.
    timeout: Duration,
}

/// A connection whose peer has not proved that it has the token.
struct Stranger {
    stream: TcpStream,
    network: IpAddr,
    nonce: Nonce,
    deadline: Deadline,
    message: [u8; Hello::MESSAGE_LEN],
    received: usize,
}

/// The outcome of receiving from a stranger.
pub(super) enum Received {
    Incomplete,
    Hello(UnverifiedHello),
}

/// The whole message of a stranger, which may be wrong.
pub(super) struct UnverifiedHello {
    pub(super) stream: TcpStream,
    pub(super) nonce: Nonce,
    pub(super) bytes: [u8; Hello::MESSAGE_LEN],
}

impl Strangers {
    /// Creates an empty set. Keys begin with `first_key`, and each stranger has `timeout` for its
    /// message.
    pub(super) fn new(first_key: usize, timeout: Duration) -> Self {
        Self {
            connections: BTreeMap::new(),
            next_key: first_key,
            timeout,
        }
    }

    /// Sends rank 0's first message to a peer that has connected, and adds the peer. If there are
    /// too many, closes another one.
    pub(super) fn add(
        &mut self,
        mut stream: TcpStream,
        address: IpAddr,
        nonce: Nonce,
        registry: &Registry,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        // A new connection takes the few bytes without waiting.
        handshake::write_challenge(&mut stream, nonce)?;
        if self.connections.len() >= MAX_STRANGERS {
            self.close_one();
        }
        let key = self.next_key;
        self.next_key = key.wrapping_add(1);
        registry.register(&mut stream, Token(key), Interest::READABLE)?;
        let stranger = Stranger {
            stream,
            network: network(address),
            nonce,
            deadline: Deadline::after(self.timeout),
            message: [0; Hello::MESSAGE_LEN],
            received: 0,
        };
        self.connections.insert(key, stranger);
        Ok(())
    }

    /// Receives from a stranger without waiting. The stranger is removed once its message is
    /// complete, and if its connection ends.
    pub(super) fn receive(&mut self, key: usize) -> io::Result<Received> {
        let Some(stranger) = self.connections.get_mut(&key) else {
            // The connection was closed after the event occurred.
            return Ok(Received::Incomplete);
        };
        let result = stranger.receive();
        if matches!(result, Ok(false)) {
            return Ok(Received::Incomplete);
        }
        let stranger = self.connections.remove(&key);
        result?;
        Ok(stranger.map_or(Received::Incomplete, |stranger| {
            Received::Hello(UnverifiedHello {
                stream: stranger.stream,
                nonce: stranger.nonce,
                bytes: stranger.message,
            })
        }))
    }

    /// Closes the oldest stranger of the network with the most strangers. Returns `false` if there
    /// is none.
    pub(super) fn close_one(&mut self) -> bool {
        let mut counts = HashMap::new();
        for stranger in self.connections.values() {
            *counts.entry(stranger.network).or_insert(0_usize) += 1;
        }
        let largest = counts.values().max();
        let oldest = self
            .connections
            .iter()
            .find(|(_, stranger)| counts.get(&stranger.network) == largest)
            .map(|(key, _)| *key);
        oldest.is_some_and(|key| self.connections.remove(&key).is_some())
    }

    /// Closes the strangers whose time is over.
    pub(super) fn close_expired(&mut self) {
        while let Some(oldest) = self.connections.first_entry()
            && oldest.get().deadline.has_passed()
        {
            oldest.remove();
        }
    }

    /// Returns the time until the next stranger must be closed.
    pub(super) fn remaining_time(&self) -> Duration {
        let oldest = self.connections.values().next();
        oldest.map_or(Duration::MAX, |stranger| stranger.deadline.remaining())
    }
}

impl Stranger {
    /// Receives without waiting. Returns `true` once the message is complete.
    fn receive(&mut self) -> io::Result<bool> {
        while self.received < self.message.len() {
            match self.stream.read(&mut self.message[self.received..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Returns the addresses that one peer can usually have: an IPv4 address, or a network of IPv6 with
/// a prefix of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::Ipv4Addr;
    use std::thread;

    use mio::Poll;
    use mio::net::TcpListener;

    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    const NONCE: Nonce = [1; 32];

    /// Connects to a listener of this process, and adds the connection as that of `address`.
    fn add(
        strangers: &mut Strangers,
        listener: &TcpListener,
        poll: &Poll,
        address: IpAddr,
    ) -> io::Result<std::net::TcpStream> {
        let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    strangers.add(stream, address, NONCE, poll.registry())?;
                    return Ok(peer);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
    }

    fn listener() -> io::Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// A stranger has one deadline for all bytes of its message.
    #[test]
    fn dripping_does_not_extend_the_deadline() -> TestResult {
        let mut strangers = Strangers::new(5, Duration::from_millis(300));
        let listener = listener()?;
        let poll = Poll::new()?;
        let mut peer = add(&mut strangers, &listener, &poll, Ipv4Addr::LOCALHOST.into())?;
        let deadline = Deadline::after(Duration::from_millis(300));
        while !deadline.has_passed() {
            peer.write_all(&[0])?;
            strangers.receive(5)?;
            assert!(strangers.remaining_time() <= deadline.remaining());
            thread::sleep(Duration::from_millis(20));
        }
        strangers.close_expired();
        assert!(strangers.connections.is_empty());
        assert_eq!(strangers.remaining_time(), Duration::MAX);
        Ok(())
    }

    /// However many strangers one network sends, that of another keeps its connection.
    #[test]
    fn largest_network_loses_its_oldest() -> TestResult {
        let mut strangers = Strangers::new(0, HANDSHAKE_TIMEOUT);
        let listener = listener()?;
        let poll = Poll::new()?;
        let rank = Ipv4Addr::new(10, 0, 0, 1).into();
        let mut peers = vec![add(&mut strangers, &listener, &poll, rank)?];
        for host in 0..MAX_STRANGERS + 50 {
            let host = u128::try_from(host)?;
            let attacker = Ipv6Addr::from_bits((0xfd00 << 112) + host).into();
            peers.push(add(&mut strangers, &listener, &poll, attacker)?);
        }
        assert_eq!(strangers.connections.len(), MAX_STRANGERS);
        let mut keys = strangers.connections.keys();
        assert_eq!(keys.next(), Some(&0), "the only one of its network");
        assert_eq!(keys.next(), Some(&52), "the oldest that is left");
        Ok(())
    }

    #[test]
    fn mapped_address_is_ipv4() {
        let address = Ipv4Addr::new(10, 1, 2, 3);
        assert_eq!(network(address.to_ipv6_mapped().into()), address);
        assert_eq!(network(address.into()), address);
    }
}
