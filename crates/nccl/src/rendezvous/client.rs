//! Every other rank: connects to rank 0 and waits for its bytes.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{self, Hello, Reply, Session};
use super::{MAX_WORLD_SIZE, Rendezvous};
use crate::RendezvousError;

/// The time for one connection attempt, and for rank 0's first message.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The pauses between connection attempts: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The time for which a rank waits longer than rank 0, so that it receives rank 0's verdict.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why a connection attempt failed.
enum Failure {
    /// Rank 0 does not listen yet, or the connection broke. Another attempt may succeed.
    Connection(io::Error),
    /// No other attempt can succeed.
    Final(RendezvousError),
}

/// Overwrites `bytes` with those of rank 0.
pub(super) fn join(place: &Rendezvous, bytes: &mut [u8]) -> Result<(), RendezvousError> {
    let start = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        let source = match attempt(place, bytes) {
            Ok(()) => return Ok(()),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Connection(error)) => error,
        };
        let waited = start.elapsed();
        if waited >= place.timeout {
            return Err(RendezvousError::Unreachable {
                address: place.address(),
                waited,
                source,
            });
        }
        thread::sleep(pause.min(place.timeout - waited));
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Connects once, and waits for the bytes.
fn attempt(place: &Rendezvous, bytes: &mut [u8]) -> Result<(), Failure> {
    let mut stream = connect(place)?;
    let Some(server) = handshake::read_challenge(&mut stream)? else {
        return Err(Failure::Final(RendezvousError::OtherProtocol {
            address: place.address(),
        }));
    };
    let session = Session {
        server,
        client: handshake::nonce().map_err(Failure::Final)?,
    };
    hello(place, bytes.len()).write(&mut stream, &session, &place.token)?;
    // Rank 0 began to wait before this rank arrived, so it answers within its timeout.
    stream.set_read_timeout(Some(place.timeout.saturating_add(GRACE)))?;
    let limit = bytes.len().max(4 * (MAX_WORLD_SIZE + 1));
    match Reply::read(&mut stream, &session, &place.token, limit)? {
        Reply::Bytes(received) if received.len() == bytes.len() => {
            bytes.copy_from_slice(&received);
            Ok(())
        }
        reply => Err(Failure::Final(rejection(place, bytes.len(), reply))),
    }
}

/// Connects to the first address of rank 0 that accepts. The name is resolved at every attempt: it may appear later than this rank.
fn connect(place: &Rendezvous) -> io::Result<TcpStream> {
    let timeout = CONNECT_TIMEOUT
        .min(place.timeout)
        .max(Duration::from_millis(1));
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (place.host.as_str(), place.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn hello(place: &Rendezvous, length: usize) -> Hello {
    // Constructors limit the number of ranks, and a length that saturates equals none of rank 0.
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Hello {
        rank: number(place.rank),
        world_size: number(place.world_size),
        round: place.round,
        length: number(length),
    }
}

/// Returns the error for an answer of rank 0 other than the bytes.
fn rejection(place: &Rendezvous, length: usize, reply: Reply) -> RendezvousError {
    let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    match reply {
        Reply::WrongToken => RendezvousError::TokenMismatch {
            address: place.address(),
        },
        Reply::DuplicateRank => RendezvousError::DuplicateRank { rank: place.rank },
        Reply::WorldSize(rank_0) => RendezvousError::WorldSizeMismatch {
            own: place.world_size,
            rank_0: index(rank_0),
        },
        Reply::Broadcast {
            round,
            length: other,
        } => RendezvousError::BroadcastMismatch {
            own_round: place.round,
            own_length: length,
            round,
            length: index(other),
        },
        Reply::Missing {
            milliseconds,
            ranks,
        } => RendezvousError::MissingRanks {
            ranks: ranks.into_iter().map(index).collect(),
            world_size: place.world_size,
            waited: Duration::from_millis(milliseconds.into()),
        },
        Reply::Bytes(received) => RendezvousError::BroadcastMismatch {
            own_round: place.round,
            own_length: length,
            round: place.round,
            length: received.len(),
        },
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}
