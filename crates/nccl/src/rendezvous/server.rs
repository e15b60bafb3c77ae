//! Rank 0: listens until every rank has arrived, then sends the bytes.
//!
//! One thread serves all connections. A peer is a stranger until it has proved that it has the
//! token. The number of strangers, their memory and their time are bounded; [`Strangers`] has the
//! rules.

mod strangers;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use curium_driver::emit_event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll};

use self::strangers::{HANDSHAKE_TIMEOUT, Received, Strangers, UnverifiedHello};
use super::handshake::{self, BYTES_CODE, Frame, Hello, Reply, Session};
use super::token::Token;
use super::{MAX_WORLD_SIZE, Rendezvous, verdict_time};
use crate::RendezvousError;
use crate::deadline::Deadline;

/// The number of connections that may wait for being accepted.
const BACKLOG: i32 = 4096;

/// The number of connections that are accepted before messages are received again.
const ACCEPT_BATCH: usize = 64;

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The time for which a lack of resources explains that ranks are missing. A rank that was not
/// accepted connects again after at most a second.
const EXHAUSTION_TIME: Duration = Duration::from_secs(2);

/// The longest wait for an event.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The key of the listener's events. Those of a rank have its number, and those of a stranger its
/// key.
const LISTENER: mio::Token = mio::Token(usize::MAX);

/// Sends `bytes` to every other rank once all have arrived.
pub(super) fn serve(rendezvous: &Rendezvous, bytes: &[u8]) -> Result<(), RendezvousError> {
    let deadline = Deadline::after(rendezvous.timeout);
    let broadcast = Broadcast::new(rendezvous, bytes.len())?;
    let mut server = Server::listen(rendezvous, broadcast)?;
    let complete = server.gather(deadline)?;
    let exhaustion = server.exhaustion.take();
    let exhaustion = exhaustion.filter(|(_, end)| !end.has_passed());
    let end = deadline.extended_by(verdict_time(rendezvous.timeout));
    if complete {
        return server.deliver(BYTES_CODE, bytes, end);
    }
    let missing = server.missing_ranks();
    let reply = Reply::Missing {
        milliseconds: u32::try_from(rendezvous.timeout.as_millis()).unwrap_or(u32::MAX),
        ranks: missing.clone(),
    };
    let (code, body) = reply.to_body();
    // Rank 0 reports the missing ranks in any case.
    let _ = server.deliver(code, &body, end);
    if let Some((source, _)) = exhaustion {
        return Err(RendezvousError::System {
            call: "accepting the connections of all ranks",
            source,
        });
    }
    Err(RendezvousError::MissingRanks {
        ranks: missing.into_iter().map(index).collect(),
        world_size: rendezvous.world_size,
        waited: rendezvous.timeout,
    })
}

/// The broadcast that the ranks must agree on.
struct Broadcast {
    token: Token,
    world_size: u32,
    round: u32,
    length: u32,
}

/// A rank that waits for the bytes.
struct Member {
    stream: TcpStream,
    session: Session,
}

struct Server {
    broadcast: Broadcast,
    poll: Poll,
    listener: TcpListener,
    strangers: Strangers,
    members: BTreeMap<u32, Member>,
    /// The last error for lack of resources of the system, and the end of the time in which it
    /// explains that ranks are missing.
    exhaustion: Option<(io::Error, Deadline)>,
}

/// The outcome of accepting connections.
enum Accepted {
    /// No connection is pending.
    All,
    /// More connections may be pending.
    Some,
    /// The system has no resources for another connection at the moment.
    Failed,
}

impl Server {
    fn listen(rendezvous: &Rendezvous, broadcast: Broadcast) -> Result<Self, RendezvousError> {
        let poll = Poll::new().map_err(polling_error)?;
        let mut listener = listen(rendezvous)?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(polling_error)?;
        Ok(Self {
            broadcast,
            poll,
            listener,
            strangers: Strangers::new(MAX_WORLD_SIZE, HANDSHAKE_TIMEOUT),
            members: BTreeMap::new(),
            exhaustion: None,
        })
    }

    /// Waits until every other rank has arrived and is still connected. Returns `false` if the
    /// deadline passes before.
    fn gather(&mut self, deadline: Deadline) -> Result<bool, RendezvousError> {
        let mut events = Events::with_capacity(256);
        let mut accepted = Accepted::Some;
        while !self.is_complete() {
            if deadline.has_passed() {
                return Ok(false);
            }
            let wait = match accepted {
                Accepted::All => deadline.remaining().min(self.strangers.remaining_time()),
                Accepted::Some => Duration::ZERO,
                Accepted::Failed => ACCEPT_PAUSE,
            };
            wait_for_events(&mut self.poll, &mut events, wait)?;
            for event in &events {
                match event.token() {
                    LISTENER => accepted = Accepted::Some,
                    mio::Token(key) => self.receive(key),
                }
            }
            self.strangers.close_expired();
            if !matches!(accepted, Accepted::All) {
                accepted = self.accept()?;
            }
        }
        Ok(true)
    }

    fn is_complete(&mut self) -> bool {
        let others = index(self.broadcast.world_size) - 1;
        if self.members.len() == others {
            self.members.retain(|_, member| member.is_connected());
        }
        self.members.len() == others
    }

    /// Accepts pending connections and greets each.
    fn accept(&mut self) -> Result<Accepted, RendezvousError> {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    let nonce = handshake::nonce()?;
                    let registry = self.poll.registry();
                    let added = self.strangers.add(stream, address.ip(), nonce, registry);
                    if let Err(error) = added {
                        emit_event!(DEBUG, %error, "rendezvous: a connection ended early");
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(Accepted::All),
                    // The peer gave up.
                    io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::Interrupted => {}
                    // Usually the process has too many open files. Strangers must not keep ranks
                    // out.
                    _ => {
                        emit_event!(DEBUG, %error, "rendezvous: a connection could not be accepted");
                        self.exhaustion = Some((error, Deadline::after(EXHAUSTION_TIME)));
                        if !self.strangers.close_one() {
                            return Ok(Accepted::Failed);
                        }
                    }
                },
            }
        }
        Ok(Accepted::Some)
    }

    /// Receives from a stranger, and answers once its message is complete.
    fn receive(&mut self, key: usize) {
        let result = match self.strangers.receive(key) {
            Ok(Received::Incomplete) => Ok(()),
            Ok(Received::Hello(hello)) => self.handle_hello(hello),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            emit_event!(DEBUG, %error, "rendezvous: a connection ended early");
        }
    }

    /// Admits or rejects the sender of a message.
    fn handle_hello(&mut self, message: UnverifiedHello) -> io::Result<()> {
        let mut stream = message.stream;
        // The connection of a rank that waits has no events.
        self.poll.registry().deregister(&mut stream)?;
        let hello = Hello::parse(&message.bytes, message.nonce, &self.broadcast.token);
        if let Some((hello, session)) = hello {
            return self.admit(hello, Member { stream, session });
        }
        let nobody = Session {
            server: message.nonce,
            client: message.nonce,
        };
        Reply::WrongToken.write(&mut stream, &nobody, &self.broadcast.token)
    }

    /// Adds a rank, or sends it the reason for its rejection. A rank that is there already is
    /// rejected, unless its connection has ended.
    fn admit(&mut self, hello: Hello, mut member: Member) -> io::Result<()> {
        let is_duplicate = self
            .members
            .get(&hello.rank)
            .is_some_and(Member::is_connected);
        let rejection = match self.broadcast.rejection(hello) {
            None if is_duplicate => Some(Reply::DuplicateRank),
            rejection => rejection,
        };
        if let Some(reply) = rejection {
            let token = &self.broadcast.token;
            return reply.write(&mut member.stream, &member.session, token);
        }
        self.members.insert(hello.rank, member);
        Ok(())
    }

    fn missing_ranks(&self) -> Vec<u32> {
        let ranks = 1..self.broadcast.world_size;
        ranks
            .filter(|rank| !self.members.contains_key(rank))
            .collect()
    }

    /// Sends a reply to all ranks at once, and closes their connections.
    ///
    /// # Errors
    ///
    /// [`RendezvousError::LostRank`] for the first rank that could not receive it before the
    /// deadline.
    fn deliver(mut self, code: u8, body: &[u8], deadline: Deadline) -> Result<(), RendezvousError> {
        // The keys of strangers have no more events.
        drop(self.strangers);
        drop(self.listener);
        let mut deliveries = BTreeMap::new();
        let mut lost = None;
        for (rank, member) in self.members {
            let frame = Frame::new(code, body, &member.session, &self.broadcast.token);
            let mut delivery = Delivery {
                stream: member.stream,
                frame,
            };
            match delivery.start(rank, self.poll.registry()) {
                Ok(true) => {}
                Ok(false) => drop(deliveries.insert(index(rank), delivery)),
                Err(source) => lost = lost.or(Some((index(rank), source))),
            }
        }
        let mut events = Events::with_capacity(256);
        while !deliveries.is_empty() && !deadline.has_passed() {
            wait_for_events(&mut self.poll, &mut events, deadline.remaining())?;
            for event in &events {
                let rank = event.token().0;
                let Some(delivery) = deliveries.get_mut(&rank) else {
                    continue;
                };
                match delivery.frame.send(&mut delivery.stream) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(source) => lost = lost.or(Some((rank, source))),
                }
                deliveries.remove(&rank);
            }
        }
        let stalled = deliveries
            .first_key_value()
            .map(|(rank, _)| (*rank, io::ErrorKind::TimedOut.into()));
        match lost.or(stalled) {
            None => Ok(()),
            Some((rank, source)) => Err(RendezvousError::LostRank { rank, source }),
        }
    }
}

/// A reply on its way to a rank.
struct Delivery<'a> {
    stream: TcpStream,
    frame: Frame<'a>,
}

impl Delivery<'_> {
    /// Sends what the connection takes at once. Returns `true` if that is everything; otherwise,
    /// registers for the rest.
    fn start(&mut self, rank: u32, registry: &mio::Registry) -> io::Result<bool> {
        let complete = self.frame.send(&mut self.stream)?;
        if !complete {
            let key = mio::Token(index(rank));
            registry.register(&mut self.stream, key, Interest::WRITABLE)?;
        }
        Ok(complete)
    }
}

impl Broadcast {
    fn new(rendezvous: &Rendezvous, length: usize) -> Result<Self, RendezvousError> {
        Ok(Self {
            token: rendezvous.token.clone(),
            world_size: u32::try_from(rendezvous.world_size).unwrap_or(u32::MAX),
            round: rendezvous.round,
            length: u32::try_from(length).map_err(|_| RendezvousError::BroadcastMismatch {
                own_round: rendezvous.round,
                own_length: length,
                round: rendezvous.round,
                length: index(u32::MAX),
            })?,
        })
    }

    /// Returns the reason for which a rank is rejected.
    fn rejection(&self, hello: Hello) -> Option<Reply> {
        if hello.world_size != self.world_size {
            return Some(Reply::WorldSize(self.world_size));
        }
        if hello.round != self.round || hello.length != self.length {
            return Some(Reply::Broadcast {
                round: self.round,
                length: self.length,
            });
        }
        (hello.rank == 0 || hello.rank >= self.world_size).then_some(Reply::DuplicateRank)
    }
}

impl Member {
    /// Returns `false` if the rank has closed its connection. A rank sends nothing while it waits.
    fn is_connected(&self) -> bool {
        let pending = self.stream.peek(&mut [0]);
        pending.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Waits for events, at most for `limit`. There may be none.
fn wait_for_events(
    poll: &mut Poll,
    events: &mut Events,
    limit: Duration,
) -> Result<(), RendezvousError> {
    match poll.poll(events, Some(limit.min(MAX_WAIT))) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(polling_error(error)),
        _ => Ok(()),
    }
}

fn polling_error(source: io::Error) -> RendezvousError {
    RendezvousError::System {
        call: "polling",
        source,
    }
}

/// Listens at the address of rank 0. An address that no interface of this host has, such as that of
/// a Kubernetes service, stands for all interfaces.
fn listen(rendezvous: &Rendezvous) -> Result<TcpListener, RendezvousError> {
    let address = (rendezvous.host.as_str(), rendezvous.port);
    let listener = std::net::TcpListener::bind(address).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => std::net::TcpListener::bind(all_interfaces(rendezvous)),
    });
    let prepared = listener.and_then(|listener| {
        // The standard library lets 128 connections wait. Strangers would fill these sooner than
        // rank 0 accepts them.
        socket2::SockRef::from(&listener).listen(BACKLOG)?;
        listener.set_nonblocking(true)?;
        Ok(TcpListener::from_std(listener))
    });
    prepared.map_err(|source| RendezvousError::Listen {
        address: rendezvous.address(),
        source,
    })
}

/// Returns the unspecified address of the family that the name of rank 0 resolves to.
fn all_interfaces(rendezvous: &Rendezvous) -> SocketAddr {
    let mut addresses = (rendezvous.host.as_str(), rendezvous.port)
        .to_socket_addrs()
        .into_iter()
        .flatten();
    let only_v6 = addresses.next().is_some_and(|first| first.is_ipv6())
        && addresses.all(|address| address.is_ipv6());
    if only_v6 {
        (Ipv6Addr::UNSPECIFIED, rendezvous.port).into()
    } else {
        (Ipv4Addr::UNSPECIFIED, rendezvous.port).into()
    }
}

fn index(rank: u32) -> usize {
    usize::try_from(rank).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::thread::{self, JoinHandle};
    use std::time::Instant;

    use super::*;

    type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;
    type Rank0 = JoinHandle<Result<(), RendezvousError>>;

    fn token() -> Token {
        Token::new(*b"token")
    }

    /// Starts rank 0 on a thread, which broadcasts `length` bytes.
    fn rank_0(
        world_size: usize,
        timeout: Duration,
        length: usize,
    ) -> TestResult<(SocketAddr, Rank0)> {
        let address = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let rendezvous = Rendezvous::new(0, world_size, "127.0.0.1", address.port())?
            .with_token(token())
            .with_timeout(timeout);
        let thread = thread::spawn(move || serve(&rendezvous, &vec![7; length]));
        Ok((address, thread))
    }

    fn end(thread: Rank0) -> Result<(), RendezvousError> {
        thread.join().expect("rank 0 does not panic")
    }

    fn connect(address: SocketAddr) -> io::Result<std::net::TcpStream> {
        loop {
            match std::net::TcpStream::connect(address) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    /// Connects with the token, as the rank that `hello` names.
    fn arrive(address: SocketAddr, hello: Hello) -> io::Result<(std::net::TcpStream, Session)> {
        let mut stream = connect(address)?;
        let session = Session {
            server: handshake::read_challenge(&mut stream)?.ok_or(io::ErrorKind::InvalidData)?,
            client: [3; 32],
        };
        hello.write(&mut stream, &session, &token())?;
        Ok((stream, session))
    }

    fn hello(rank: u32, world_size: u32, length: u32) -> Hello {
        Hello {
            rank,
            world_size,
            round: 0,
            length,
        }
    }

    fn reply(stream: &mut std::net::TcpStream, session: &Session) -> io::Result<Reply> {
        Reply::read(stream, session, &token(), 1 << 20)
    }

    /// A rank that does not read its bytes holds rank 0 only until the deadline, and does not keep
    /// them from the others.
    #[test]
    fn stalled_rank_is_lost_at_the_deadline() -> TestResult {
        const LENGTH: u32 = 8 << 20;
        let start = Instant::now();
        let (address, rank_0) = rank_0(3, Duration::from_secs(4), LENGTH.try_into()?)?;
        let _stalled = arrive(address, hello(1, 3, LENGTH))?;
        let (mut stream, _) = arrive(address, hello(2, 3, LENGTH))?;
        // The answer has a header of 5 bytes and ends with an authentication code of 32.
        let received = io::copy(&mut stream, &mut io::sink())?;
        assert_eq!(received, u64::from(LENGTH) + 37);
        let result = end(rank_0);
        assert!(
            matches!(result, Err(RendezvousError::LostRank { rank: 1, .. })),
            "{result:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{:?}",
            start.elapsed()
        );
        Ok(())
    }

    /// Numbers that no other rank has are rejected, with the token too.
    #[test]
    fn impossible_ranks_are_rejected() -> TestResult {
        let (address, rank_0) = rank_0(3, Duration::from_millis(1500), 4)?;
        for rank in [0, 3, u32::MAX] {
            let (mut stream, session) = arrive(address, hello(rank, 3, 4))?;
            assert_eq!(reply(&mut stream, &session)?, Reply::DuplicateRank);
        }
        let (mut stream, session) = arrive(address, hello(1, u32::MAX, 4))?;
        assert_eq!(reply(&mut stream, &session)?, Reply::WorldSize(3));
        let result = end(rank_0);
        let Err(RendezvousError::MissingRanks { ranks, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!(ranks, [1, 2]);
        Ok(())
    }

    /// A rank that has arrived and then hangs up is missing, and its number is free again.
    #[test]
    fn rank_that_hangs_up_may_return() -> TestResult {
        let (address, rank_0) = rank_0(3, Duration::from_secs(20), 4)?;
        for _ in 0..50 {
            let (stream, _) = arrive(address, hello(1, 3, 4))?;
            stream.shutdown(Shutdown::Both)?;
        }
        let mut ranks = Vec::new();
        for rank in [1, 2] {
            ranks.push(arrive(address, hello(rank, 3, 4))?);
        }
        for (mut stream, session) in ranks {
            assert_eq!(reply(&mut stream, &session)?, Reply::Bytes(vec![7; 4]));
        }
        end(rank_0)?;
        Ok(())
    }
}
