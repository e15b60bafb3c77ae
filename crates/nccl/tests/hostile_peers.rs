//! Peers without the token that connect to rank 0, or that listen in its place: they drip bytes,
//! send nothing, or come in large numbers.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use curium_nccl::{Exchange as _, Rendezvous, RendezvousError, Token};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const HOST: &str = "127.0.0.1";

/// The first bytes of rank 0: the name of the protocol, and a random number.
const CHALLENGE: &[u8; 40] = b"CURIUM/1random number of rank 0, 32 byte";

/// The time between two bytes of a peer that drips.
const DRIP: Duration = Duration::from_millis(200);

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((HOST, 0))?.local_addr()
}

fn rendezvous(rank: usize, world_size: usize, address: SocketAddr) -> Result<Rendezvous> {
    let rendezvous = Rendezvous::new(rank, world_size, HOST, address.port())?;
    Ok(rendezvous
        .with_token(Token::new(*b"token"))
        .with_timeout(Duration::from_secs(60)))
}

/// Broadcasts once on a thread, and returns the bytes.
fn broadcast(
    mut rendezvous: Rendezvous,
) -> JoinHandle<std::result::Result<[u8; 4], RendezvousError>> {
    thread::spawn(move || {
        let mut bytes = match rendezvous.rank() {
            0 => *b"root",
            _ => *b"none",
        };
        rendezvous.broadcast(&mut bytes).map(|()| bytes)
    })
}

fn join<T>(thread: JoinHandle<T>) -> Result<T> {
    thread.join().map_err(|_| "a thread panicked".into())
}

/// Connects to rank 0, which may not listen yet.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_secs(10)) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.elapsed() > Duration::from_secs(20) => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Accepts one connection, sends `at_once`, and drips `bytes` until the peer closes the connection.
fn listen_and_drip(
    at_once: &'static [u8],
    bytes: &'static [u8],
) -> Result<(SocketAddr, JoinHandle<io::Result<()>>)> {
    let listener = TcpListener::bind((HOST, 0))?;
    let address = listener.local_addr()?;
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(at_once)?;
        for byte in bytes {
            stream.write_all(&[*byte])?;
            thread::sleep(DRIP);
        }
        Ok(())
    });
    Ok((address, thread))
}

/// Returns the time that rank 1 of 2 takes to give up, with a timeout of one second.
fn time_to_give_up(address: SocketAddr) -> Result<(Duration, RendezvousError)> {
    let start = Instant::now();
    let rank_1 = rendezvous(1, 2, address)?.with_timeout(Duration::from_secs(1));
    match join(broadcast(rank_1))? {
        Ok(_) => Err("a stranger was believed".into()),
        Err(error) => Ok((start.elapsed(), error)),
    }
}

/// A listener that drips its first message holds a rank for no longer than the timeout.
#[test]
fn dripped_challenge_times_out() -> Result {
    let (address, listener) = listen_and_drip(b"", CHALLENGE)?;
    let (waited, error) = time_to_give_up(address)?;
    assert!(waited < Duration::from_secs(4), "{waited:?}: {error}");
    assert!(
        matches!(error, RendezvousError::Unreachable { .. }),
        "{error}"
    );
    // The rank has closed the connection, so the listener cannot send the rest.
    let _ = join(listener)?;
    Ok(())
}

/// A listener that drips its answer holds a rank for at most twice the timeout.
#[test]
fn dripped_answer_times_out() -> Result {
    let answer: &[u8; 40] = &[
        0, 0, 0, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
    ];
    let (address, listener) = listen_and_drip(CHALLENGE, answer)?;
    let (waited, error) = time_to_give_up(address)?;
    assert!(waited < Duration::from_secs(5), "{waited:?}: {error}");
    assert!(
        matches!(error, RendezvousError::Unanswered { .. }),
        "{error}"
    );
    let _ = join(listener)?;
    Ok(())
}

/// A listener that ends each connection after its first message is tried again until the timeout.
#[test]
fn closed_listener_times_out() -> Result {
    let listener = TcpListener::bind((HOST, 0))?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            if let Ok((mut stream, _)) = listener.accept() {
                // The rank may have given up meanwhile.
                let _ = stream.write_all(CHALLENGE);
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (waited, error) = time_to_give_up(address)?;
    stop.store(true, Ordering::Relaxed);
    join(thread)?;
    assert!(waited < Duration::from_secs(4), "{waited:?}: {error}");
    assert!(
        matches!(error, RendezvousError::Unreachable { .. }),
        "{error}"
    );
    Ok(())
}

/// A timeout beyond the range of the clock is no timeout.
#[test]
fn longest_timeout_is_no_timeout() -> Result {
    let address = free_address()?;
    let rank_0 = broadcast(rendezvous(0, 2, address)?.with_timeout(Duration::MAX));
    let rank_1 = broadcast(rendezvous(1, 2, address)?.with_timeout(Duration::MAX));
    assert_eq!(&join(rank_0)??, b"root");
    assert_eq!(&join(rank_1)??, b"root");
    Ok(())
}

/// Rank 0 closes the oldest connections of strangers when new ones arrive.
#[test]
fn open_connections_are_bounded() -> Result {
    let address = free_address()?;
    let rank_0 = broadcast(rendezvous(0, 2, address)?);
    let mut strangers = Vec::new();
    for _ in 0..400 {
        let stranger = connect(address)?;
        stranger.set_nonblocking(true)?;
        strangers.push(stranger);
    }
    // The last connection is greeted, so all before it were accepted.
    let last = strangers.last_mut().ok_or("no unknown peer")?;
    last.set_nonblocking(false)?;
    last.read_exact(&mut [0; 40])?;
    last.set_nonblocking(true)?;
    let start = Instant::now();
    let open = loop {
        strangers.retain_mut(is_open);
        if strangers.len() <= 256 || start.elapsed() > Duration::from_secs(3) {
            break strangers.len();
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(open <= 256, "{open} of 400 connections are open");
    assert_eq!(&join(broadcast(rendezvous(1, 2, address)?))??, b"root");
    join(rank_0)??;
    Ok(())
}

/// Returns `true` if the peer has not closed the connection. The stream is non-blocking.
fn is_open(stream: &mut TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

/// Strangers that keep `count` connections to rank 0 open, drip bytes, and connect again when they
/// are thrown out.
struct Siege {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Siege {
    fn start(address: SocketAddr, count: usize) -> Result<Self> {
        const THREADS: usize = 4;
        let stop = Arc::new(AtomicBool::new(false));
        let mut connections = Vec::new();
        for _ in 0..count {
            let connection = connect(address)?;
            connection.set_nonblocking(true)?;
            connections.push(connection);
        }
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let mut connections =
                connections.split_off(connections.len().saturating_sub(count / THREADS));
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    drip(address, &mut connections, &stop);
                    thread::sleep(Duration::from_millis(20));
                }
            }));
        }
        Ok(Self { stop, threads })
    }

    fn end(self) -> Result {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            join(thread)?;
        }
        Ok(())
    }
}

/// Sends a byte on each connection, and replaces those that are closed.
fn drip(address: SocketAddr, connections: &mut [TcpStream], stop: &AtomicBool) {
    for connection in connections {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if connection.write(&[0]).is_ok() {
            continue;
        }
        if let Ok(new) = TcpStream::connect_timeout(&address, Duration::from_millis(200))
            && new.set_nonblocking(true).is_ok()
        {
            *connection = new;
        }
    }
}

/// Returns the number of connections that this process can open besides those of rank 0, at most
/// 2,000.
#[cfg(unix)]
fn connection_count() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // The limit stays as it is if the system does not allow this.
    let _ = setrlimit(Resource::Nofile, raised);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / 2).unwrap_or(usize::MAX).min(2000)
}

#[cfg(not(unix))]
fn connection_count() -> usize {
    2000
}

/// Ranks with the token arrive although 2,000 strangers hold and renew connections.
#[test]
fn ranks_arrive_among_strangers() -> Result {
    let address = free_address()?;
    let rank_0 = broadcast(rendezvous(0, 5, address)?);
    let siege = Siege::start(address, connection_count())?;
    let start = Instant::now();
    let mut ranks = Vec::new();
    for rank in 1..5 {
        ranks.push(broadcast(rendezvous(rank, 5, address)?));
    }
    for rank in ranks {
        assert_eq!(&join(rank)??, b"root");
    }
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    siege.end()?;
    join(rank_0)??;
    Ok(())
}

/// Connections that are half open, end at once or send a part of a message delay no rank.
#[test]
fn half_open_connections() -> Result {
    let address = free_address()?;
    let rank_0 = broadcast(rendezvous(0, 2, address)?);
    let mut strangers = Vec::new();
    for length in 0..120_usize {
        let mut stranger = connect(address)?;
        // Rank 0 closes the connection after 80 bytes.
        let _ = stranger.write_all(&vec![0; length]);
        match length % 3 {
            0 => drop(stranger),
            1 => {
                let _ = stranger.shutdown(Shutdown::Write);
                strangers.push(stranger);
            }
            _ => strangers.push(stranger),
        }
    }
    let start = Instant::now();
    assert_eq!(&join(broadcast(rendezvous(1, 2, address)?))??, b"root");
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    join(rank_0)??;
    Ok(())
}
