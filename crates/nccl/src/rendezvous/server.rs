//! Rank 0: listens until every rank has arrived, then sends the bytes.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::Rendezvous;
use super::handshake::{self, Hello, Reply, Session};
use super::token::Token;
use crate::RendezvousError;

/// The time for one message. A program that connects and sends nothing holds up no rank.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two looks at the listener.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The broadcast that the ranks must agree on.
struct Broadcast {
    token: Token,
    world_size: u32,
    round: u32,
    length: u32,
}

/// A rank that waits for the bytes.
struct Member {
    rank: u32,
    stream: TcpStream,
    session: Session,
}

/// Sends `bytes` to every other rank once all have arrived.
pub(super) fn serve(place: &Rendezvous, bytes: &[u8]) -> Result<(), RendezvousError> {
    let listener = listen(place)?;
    let broadcast = Arc::new(Broadcast::new(place, bytes.len())?);
    let members = gather(place, &listener, &broadcast)?;
    let mut result = Ok(());
    for mut member in members.into_values() {
        let sent = member.send(&Reply::Bytes(bytes.to_vec()), &broadcast.token);
        result = result.and(sent.map_err(|source| RendezvousError::LostRank {
            rank: index(member.rank),
            source,
        }));
    }
    result
}

/// Waits until every other rank has arrived and is still connected.
fn gather(
    place: &Rendezvous,
    listener: &TcpListener,
    broadcast: &Arc<Broadcast>,
) -> Result<BTreeMap<u32, Member>, RendezvousError> {
    let deadline = Instant::now() + place.timeout;
    let (sender, receiver) = mpsc::channel();
    let mut members = BTreeMap::new();
    loop {
        let accepted = accept(listener, broadcast, &sender)?;
        while let Ok(member) = receiver.try_recv() {
            admit(&mut members, member, broadcast);
        }
        if members.len() + 1 == place.world_size {
            members.retain(|_, member| member.is_connected());
            if members.len() + 1 == place.world_size {
                return Ok(members);
            }
        }
        if Instant::now() >= deadline {
            return Err(report_missing(place, members, broadcast));
        }
        if !accepted {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Accepts one connection, if one is pending, and greets it on a thread of its own.
fn accept(
    listener: &TcpListener,
    broadcast: &Arc<Broadcast>,
    members: &Sender<Member>,
) -> Result<bool, RendezvousError> {
    let stream = match listener.accept() {
        Ok((stream, _)) => stream,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        // The other side gave up, or the process has too many open files at the moment; the rank connects again.
        Err(error) => {
            tracing::warn!(%error, "rendezvous: a connection could not be accepted");
            return Ok(false);
        }
    };
    let (broadcast, members) = (Arc::clone(broadcast), members.clone());
    let greet = move || match broadcast.greet(stream) {
        // The receiver is gone if the broadcast has ended; the rank then loses the connection, and connects again.
        Ok(Some(member)) => drop(members.send(member)),
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "rendezvous: a connection ended early"),
    };
    let started = thread::Builder::new()
        .name("curium-rendezvous".to_owned())
        .spawn(greet);
    started
        .map(|_| true)
        .map_err(|source| RendezvousError::System {
            call: "thread creation",
            source,
        })
}

/// Adds a rank. A rank that is there already is rejected, unless its connection has ended.
fn admit(members: &mut BTreeMap<u32, Member>, mut member: Member, broadcast: &Broadcast) {
    if members.get(&member.rank).is_some_and(Member::is_connected) {
        // The rejected process reports the error; if it has ended, nothing is sent.
        let _ = member.send(&Reply::DuplicateRank, &broadcast.token);
        return;
    }
    members.insert(member.rank, member);
}

/// Sends the list of missing ranks to every waiting rank, and returns it as an error.
fn report_missing(
    place: &Rendezvous,
    members: BTreeMap<u32, Member>,
    broadcast: &Broadcast,
) -> RendezvousError {
    let ranks: Vec<u32> = (1..broadcast.world_size)
        .filter(|rank| !members.contains_key(rank))
        .collect();
    let milliseconds = u32::try_from(place.timeout.as_millis()).unwrap_or(u32::MAX);
    let reply = Reply::Missing {
        milliseconds,
        ranks,
    };
    for mut member in members.into_values() {
        // Rank 0 returns the error in any case.
        let _ = member.send(&reply, &broadcast.token);
    }
    let Reply::Missing { ranks, .. } = reply else {
        unreachable!("made above")
    };
    RendezvousError::MissingRanks {
        ranks: ranks.into_iter().map(index).collect(),
        world_size: place.world_size,
        waited: place.timeout,
    }
}

impl Broadcast {
    fn new(place: &Rendezvous, length: usize) -> Result<Self, RendezvousError> {
        let too_long = |_| RendezvousError::BroadcastMismatch {
            own_round: place.round,
            own_length: length,
            round: place.round,
            length: index(u32::MAX),
        };
        Ok(Self {
            token: place.token.clone(),
            world_size: u32::try_from(place.world_size).unwrap_or(u32::MAX),
            round: place.round,
            length: u32::try_from(length).map_err(too_long)?,
        })
    }

    /// Receives the message of a rank. Returns `None` if the rank was rejected.
    fn greet(&self, mut stream: TcpStream) -> Result<Option<Member>, RendezvousError> {
        let system = |source| RendezvousError::System {
            call: "handshake",
            source,
        };
        prepare(&stream).map_err(system)?;
        let nonce = handshake::nonce()?;
        handshake::write_challenge(&mut stream, nonce).map_err(system)?;
        let Some((hello, session)) =
            Hello::read(&mut stream, nonce, &self.token).map_err(system)?
        else {
            let nobody = Session {
                server: nonce,
                client: nonce,
            };
            Reply::WrongToken
                .write(&mut stream, &nobody, &self.token)
                .map_err(system)?;
            return Ok(None);
        };
        let mut member = Member {
            rank: hello.rank,
            stream,
            session,
        };
        match self.objection(hello) {
            None => Ok(Some(member)),
            Some(reply) => member
                .send(&reply, &self.token)
                .map(|()| None)
                .map_err(system),
        }
    }

    /// Returns the reason for which a rank is rejected.
    fn objection(&self, hello: Hello) -> Option<Reply> {
        if hello.world_size != self.world_size {
            return Some(Reply::WorldSize(self.world_size));
        }
        if (hello.round, hello.length) != (self.round, self.length) {
            return Some(Reply::Broadcast {
                round: self.round,
                length: self.length,
            });
        }
        (hello.rank == 0 || hello.rank >= self.world_size).then_some(Reply::DuplicateRank)
    }
}

impl Member {
    fn send(&mut self, reply: &Reply, token: &Token) -> io::Result<()> {
        reply.write(&mut self.stream, &self.session, token)
    }

    /// Returns `false` if the rank has closed its connection. A rank sends nothing while it waits.
    fn is_connected(&self) -> bool {
        let pending = self
            .stream
            .set_nonblocking(true)
            .and_then(|()| self.stream.peek(&mut [0]));
        let blocking = self.stream.set_nonblocking(false);
        blocking.is_ok() && pending.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Sets the options of an accepted connection, which inherits those of the listener on some systems.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
    stream.set_write_timeout(Some(MESSAGE_TIMEOUT))
}

/// Listens at the address of rank 0. An address that no interface of this host has, such as that of a Kubernetes service, stands for all
/// interfaces.
fn listen(place: &Rendezvous) -> Result<TcpListener, RendezvousError> {
    let address = (place.host.as_str(), place.port);
    let listener = TcpListener::bind(address).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => TcpListener::bind(all_interfaces(place)),
    });
    let prepared = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    prepared.map_err(|source| RendezvousError::Listen {
        address: place.address(),
        source,
    })
}

/// Returns the unspecified address of the family that the name of rank 0 resolves to.
fn all_interfaces(place: &Rendezvous) -> SocketAddr {
    let mut addresses = (place.host.as_str(), place.port)
        .to_socket_addrs()
        .into_iter()
        .flatten();
    let only_v6 = addresses.next().is_some_and(|first| first.is_ipv6())
        && addresses.all(|address| address.is_ipv6());
    if only_v6 {
        (Ipv6Addr::UNSPECIFIED, place.port).into()
    } else {
        (Ipv4Addr::UNSPECIFIED, place.port).into()
    }
}

fn index(rank: u32) -> usize {
    usize::try_from(rank).unwrap_or(usize::MAX)
}
