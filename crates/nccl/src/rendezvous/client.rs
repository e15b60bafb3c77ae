//! Every other rank: connects to rank 0 and waits for its bytes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::handshake::{self, Hello, Reply, Session};
use super::{Rendezvous, verdict_time};
use crate::RendezvousError;
use crate::deadline::Deadline;

/// The time for one attempt to connect and to receive rank 0's first message.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The first pause between two attempts.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The longest time limit that is set for one operation of a socket. Systems do not accept all
/// longer ones.
const MAX_SOCKET_TIMEOUT: Duration = Duration::from_secs(3600);

/// The reason why an attempt failed.
enum Failure {
    /// Rank 0 does not listen yet, or the connection broke. Another attempt may succeed.
    Connection(io::Error),
    /// No other attempt can succeed.
    Final(RendezvousError),
}

/// A connection to a peer that may be hostile: all its operations together end at one deadline.
struct Connection {
    stream: TcpStream,
    deadline: Deadline,
}

/// Overwrites `bytes` with those of rank 0.
pub(super) fn join(rendezvous: &Rendezvous, bytes: &mut [u8]) -> Result<(), RendezvousError> {
    let start = Instant::now();
    let deadline = Deadline::after(rendezvous.timeout);
    let mut pause = MIN_PAUSE;
    loop {
        let source = match attempt(rendezvous, bytes, start, deadline) {
            Ok(()) => return Ok(()),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Connection(error)) => error,
        };
        if deadline.has_passed() {
            return Err(RendezvousError::Unreachable {
                address: rendezvous.address(),
                waited: start.elapsed(),
                source,
            });
        }
        thread::sleep(pause.min(deadline.remaining()));
        pause = pause.saturating_mul(2).min(MAX_PAUSE);
    }
}

/// Connects once, and waits for the bytes.
fn attempt(
    rendezvous: &Rendezvous,
    bytes: &mut [u8],
    start: Instant,
    deadline: Deadline,
) -> Result<(), Failure> {
    let attempt = Deadline::after(ATTEMPT_TIMEOUT.min(deadline.remaining()));
    let mut connection = Connection::open(rendezvous, attempt)?;
    let Some(server) = handshake::read_challenge(&mut connection)? else {
        return Err(Failure::Final(RendezvousError::OtherProtocol {
            address: rendezvous.address(),
        }));
    };
    let session = Session {
        server,
        client: handshake::nonce().map_err(Failure::Final)?,
    };
    hello(rendezvous, bytes.len()).write(&mut connection, &session, &rendezvous.token)?;
    connection.deadline = deadline.extended_by(verdict_time(rendezvous.timeout));
    // The longest answers are the bytes, and the list of missing ranks behind a number.
    let limit = bytes.len().max(4 * (rendezvous.world_size + 1));
    let reply = Reply::read(&mut connection, &session, &rendezvous.token, limit);
    match reply {
        Ok(Reply::Bytes(received)) if received.len() == bytes.len() => {
            bytes.copy_from_slice(&received);
            Ok(())
        }
        Ok(reply) => Err(Failure::Final(rejection(rendezvous, bytes.len(), reply))),
        Err(_) if connection.deadline.has_passed() => {
            Err(Failure::Final(RendezvousError::Unanswered {
                address: rendezvous.address(),
                waited: start.elapsed(),
            }))
        }
        Err(error) => Err(Failure::Connection(error)),
    }
}

impl Connection {
    /// Connects to the first address of rank 0 that accepts. The name is resolved at every attempt:
    /// it may appear later than this rank.
    fn open(rendezvous: &Rendezvous, deadline: Deadline) -> io::Result<Self> {
        let addresses = (rendezvous.host.as_str(), rendezvous.port).to_socket_addrs()?;
        let stream = connect_to_first(addresses, deadline)?;
        Ok(Self { stream, deadline })
    }

    /// Returns the time limit of the next operation.
    fn next_limit(&self) -> io::Result<Option<Duration>> {
        let remaining = self.deadline.remaining();
        if remaining.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(remaining.min(MAX_SOCKET_TIMEOUT)))
    }
}

/// Connects to the first address that accepts. One that does not answer leaves time for the next
/// ones, and for the first message.
fn connect_to_first(
    addresses: impl ExactSizeIterator<Item = SocketAddr>,
    deadline: Deadline,
) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut shares = u32::try_from(addresses.len())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    for address in addresses {
        let limit = deadline.remaining() / shares;
        shares = shares.saturating_sub(1).max(1);
        match connect(address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to an address of rank 0.
fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    // A time limit of zero is not allowed.
    let limit = limit.max(Duration::from_millis(1));
    let stream = reject_self(TcpStream::connect_timeout(&address, limit)?, address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Closes a connection to `address` of a socket to itself. While rank 0 does not listen, the system
/// may choose its port for this side.
fn reject_self(stream: TcpStream, address: SocketAddr) -> io::Result<TcpStream> {
    if stream.local_addr()? != address {
        return Ok(stream);
    }
    // Otherwise the port stays in use after the close, and rank 0 cannot listen on it.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    Err(io::ErrorKind::ConnectionRefused.into())
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(self.next_limit()?)?;
            match self.stream.read(buffer) {
                Err(error) if is_time_limit(&error) => {}
                result => return result,
            }
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.set_write_timeout(self.next_limit()?)?;
            match self.stream.write(bytes) {
                Err(error) if is_time_limit(&error) => {}
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns `true` if the time limit of a socket's operation has passed; systems report it in two
/// ways.
fn is_time_limit(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn hello(rendezvous: &Rendezvous, length: usize) -> Hello {
    // Constructors limit the number of ranks, and a length that saturates equals none of rank 0.
    Hello {
        rank: u32::try_from(rendezvous.rank).unwrap_or(u32::MAX),
        world_size: u32::try_from(rendezvous.world_size).unwrap_or(u32::MAX),
        round: rendezvous.round,
        length: u32::try_from(length).unwrap_or(u32::MAX),
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the error for an answer of rank 0 other than the bytes.
fn rejection(rendezvous: &Rendezvous, length: usize, reply: Reply) -> RendezvousError {
    match reply {
        Reply::WrongToken => RendezvousError::TokenMismatch {
            address: rendezvous.address(),
        },
        Reply::DuplicateRank => RendezvousError::DuplicateRank {
            rank: rendezvous.rank,
        },
        Reply::WorldSize(rank_0) => RendezvousError::WorldSizeMismatch {
            own: rendezvous.world_size,
            rank_0: to_usize(rank_0),
        },
        Reply::Broadcast {
            round,
            length: other,
        } => RendezvousError::BroadcastMismatch {
            own_round: rendezvous.round,
            own_length: length,
            round,
            length: to_usize(other),
        },
        Reply::Missing {
            milliseconds,
            ranks,
        } => RendezvousError::MissingRanks {
            ranks: ranks.into_iter().map(to_usize).collect(),
            world_size: rendezvous.world_size,
            waited: Duration::from_millis(milliseconds.into()),
        },
        Reply::Bytes(received) => RendezvousError::BroadcastMismatch {
            own_round: rendezvous.round,
            own_length: length,
            round: rendezvous.round,
            length: received.len(),
        },
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    /// Returns the address of a new listener that holds one connection in its queue, which is full.
    /// It answers no further one.
    #[cfg(target_os = "linux")]
    fn unresponsive_listener() -> io::Result<(SocketAddr, Vec<socket2::Socket>)> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        SockRef::from(&listener).listen(0)?;
        let mut sockets = vec![listener.into()];
        for _ in 0..4 {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            // The connection may be pending.
            let _ = socket.connect(&address.into());
            sockets.push(socket);
        }
        Ok((address, sockets))
    }

    /// An address of rank 0 that does not answer leaves time for the others, and for the first
    /// message.
    #[cfg(target_os = "linux")]
    #[test]
    fn next_address_is_tried_in_time() -> TestResult {
        let (unresponsive, _sockets) = unresponsive_listener()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let deadline = Deadline::after(Duration::from_secs(3));
        let stream = connect_to_first([unresponsive, unresponsive, address].into_iter(), deadline)?;
        assert_eq!(stream.peer_addr()?, address);
        assert!(deadline.remaining() > Duration::from_millis(300));
        Ok(())
    }

    /// A socket that is connected to itself is no rank 0, and rank 0 can listen on its port at
    /// once.
    #[cfg(target_os = "linux")]
    #[test]
    fn own_port_is_not_rank_0() -> TestResult {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
        let address = socket.local_addr()?;
        socket.connect(&address)?;
        let stream = TcpStream::from(socket);
        assert!(reject_self(stream, stream_address(&address)?).is_err());
        std::net::TcpListener::bind(stream_address(&address)?)?;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn stream_address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
        address
            .as_socket()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
