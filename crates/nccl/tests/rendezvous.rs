//! Ranks that meet over TCP, in threads of this process: successes, failures, and strangers.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use curium_nccl::{Exchange as _, Rendezvous, RendezvousError, Token};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const HOST: &str = "127.0.0.1";

/// Returns a port that was free a moment ago.
fn free_port() -> TestResult<u16> {
    Ok(TcpListener::bind((HOST, 0))
        .and_then(|listener| listener.local_addr())?
        .port())
}

fn rendezvous(rank: usize, world_size: usize, port: u16) -> Rendezvous {
    Rendezvous::new(rank, world_size, HOST, port)
        .expect("the rank is in range")
        .with_token(Token::new(*b"token"))
        .with_timeout(Duration::from_secs(20))
}

/// Broadcasts once, and returns the bytes.
fn broadcast(mut rendezvous: Rendezvous) -> Result<[u8; 4], RendezvousError> {
    let mut bytes = if rendezvous.rank() == 0 {
        *b"root"
    } else {
        *b"none"
    };
    rendezvous.broadcast(&mut bytes).map(|()| bytes)
}

/// Runs every rank on a thread of its own.
fn broadcast_all(ranks: Vec<Rendezvous>) -> Vec<Result<[u8; 4], RendezvousError>> {
    let threads: Vec<_> = ranks
        .into_iter()
        .map(|rendezvous| thread::spawn(move || broadcast(rendezvous)))
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect()
}

#[test]
fn any_start_order_is_accepted() -> TestResult {
    for (size, rank_0_is_last) in [(2, false), (16, true), (64, false)] {
        let port = free_port()?;
        let mut ranks: Vec<_> = (0..size).map(|rank| rendezvous(rank, size, port)).collect();
        if rank_0_is_last {
            ranks.reverse();
        }
        for result in broadcast_all(ranks) {
            assert_eq!(&result?, b"root");
        }
    }
    Ok(())
}

#[test]
fn one_port_serves_broadcasts() -> TestResult {
    let port = free_port()?;
    let threads: Vec<_> = (0..4)
        .map(|rank| {
            thread::spawn(move || {
                let mut rendezvous = rendezvous(rank, 4, port);
                for round in 0..50_u8 {
                    let mut bytes = if rank == 0 { [round; 128] } else { [0; 128] };
                    rendezvous.broadcast(&mut bytes).expect("all ranks arrive");
                    assert_eq!(bytes, [round; 128]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    Ok(())
}

#[test]
fn single_rank_needs_no_network() -> TestResult {
    let single = Rendezvous::new(0, 1, "no-such-host.invalid", 1)?;
    assert_eq!(&broadcast(single)?, b"root");
    Ok(())
}

#[test]
fn missing_ranks_are_named() -> TestResult {
    let port = free_port()?;
    let timeout = Duration::from_millis(700);
    let present = [0, 1, 4].map(|rank| rendezvous(rank, 5, port).with_timeout(timeout));
    for result in broadcast_all(present.into()) {
        let Err(RendezvousError::MissingRanks {
            ranks,
            world_size,
            waited,
        }) = result
        else {
            panic!("{result:?}")
        };
        assert_eq!((ranks, world_size, waited), (vec![2, 3], 5, timeout));
    }
    Ok(())
}

#[test]
fn unreachable_rank_0_times_out() -> TestResult {
    let start = Instant::now();
    let result = broadcast(rendezvous(1, 2, free_port()?).with_timeout(Duration::from_millis(300)));
    assert!(
        matches!(result, Err(RendezvousError::Unreachable { .. })),
        "{result:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[test]
fn port_in_use_is_an_error() -> TestResult {
    let listener = TcpListener::bind((HOST, 0))?;
    let port = listener.local_addr()?.port();
    let result = broadcast(rendezvous(0, 2, port));
    assert!(
        matches!(&result, Err(RendezvousError::Listen { .. })),
        "{result:?}"
    );
    Ok(())
}

#[test]
fn other_token_is_rejected() -> TestResult {
    let port = free_port()?;
    let rank_0 = thread::spawn(move || broadcast(rendezvous(0, 2, port)));
    let stranger = broadcast(rendezvous(1, 2, port).with_token(Token::new(*b"other")));
    assert!(
        matches!(stranger, Err(RendezvousError::TokenMismatch { .. })),
        "{stranger:?}"
    );
    assert_eq!(&broadcast(rendezvous(1, 2, port))?, b"root");
    rank_0.join().expect("no panic")?;
    Ok(())
}

#[test]
fn rank_0_needs_the_token() -> TestResult {
    let port = free_port()?;
    // A rank 0 that follows the protocol without the token cannot give this rank its bytes.
    let impostor = thread::spawn(move || {
        broadcast(
            rendezvous(0, 2, port)
                .with_token(Token::default())
                .with_timeout(Duration::from_secs(2)),
        )
    });
    let result = broadcast(rendezvous(1, 2, port));
    assert!(
        matches!(result, Err(RendezvousError::TokenMismatch { .. })),
        "{result:?}"
    );
    assert!(impostor.join().expect("no panic").is_err());
    Ok(())
}

#[test]
fn disagreements_are_named() -> TestResult {
    let port = free_port()?;
    let rank_0 = thread::spawn(move || broadcast(rendezvous(0, 3, port)));
    let more = broadcast(rendezvous(1, 4, port));
    assert!(
        matches!(
            more,
            Err(RendezvousError::WorldSizeMismatch { own: 4, rank_0: 3 })
        ),
        "{more:?}"
    );
    let longer = rendezvous(1, 3, port).broadcast(&mut [0; 8]);
    assert!(
        matches!(
            longer,
            Err(RendezvousError::BroadcastMismatch {
                own_length: 8,
                length: 4,
                ..
            })
        ),
        "{longer:?}"
    );
    let first = thread::spawn(move || broadcast(rendezvous(1, 3, port)));
    thread::sleep(Duration::from_millis(200));
    let second = broadcast(rendezvous(1, 3, port));
    assert!(
        matches!(second, Err(RendezvousError::DuplicateRank { rank: 1 })),
        "{second:?}"
    );
    broadcast(rendezvous(2, 3, port))?;
    first.join().expect("no panic")?;
    rank_0.join().expect("no panic")?;
    Ok(())
}

/// A rank that ends while it waits can be started again.
#[test]
fn waiting_rank_is_restartable() -> TestResult {
    let port = free_port()?;
    let rank_0 = thread::spawn(move || broadcast(rendezvous(0, 3, port)));
    // Rank 1 arrives, gives up at once, and is started again.
    let impatient = rendezvous(1, 3, port).with_timeout(Duration::from_millis(1));
    drop(thread::spawn(move || broadcast(impatient)));
    thread::sleep(Duration::from_millis(100));
    let others = [1, 2].map(|rank| thread::spawn(move || broadcast(rendezvous(rank, 3, port))));
    rank_0.join().expect("no panic")?;
    for other in others {
        // The first rank 1 waits a while for the verdict of rank 0, so the second may be the one
        // that is rejected, or that comes after rank 0 has ended.
        let result = other.join().expect("no panic");
        assert!(
            matches!(
                result,
                Ok(_)
                    | Err(RendezvousError::DuplicateRank { rank: 1 }
                        | RendezvousError::Unreachable { .. })
            ),
            "{result:?}"
        );
    }
    Ok(())
}

#[test]
fn strangers_delay_no_rank() -> TestResult {
    let port = free_port()?;
    let rank_0 = thread::spawn(move || broadcast(rendezvous(0, 2, port)));
    let mut strangers = Vec::new();
    while strangers.len() < 20 {
        match TcpStream::connect((HOST, port)) {
            Ok(mut stream) => {
                if strangers.len() % 2 == 0 {
                    stream.write_all(&[b'x'; 256])?;
                }
                strangers.push(stream);
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    let start = Instant::now();
    assert_eq!(&broadcast(rendezvous(1, 2, port))?, b"root");
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    rank_0.join().expect("no panic")?;
    Ok(())
}

#[test]
fn other_protocol_is_reported() -> TestResult {
    let listener = TcpListener::bind((HOST, 0))?;
    let port = listener.local_addr()?.port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .expect("the connection is open");
        // Reads until the rank gives up, so that it receives the answer.
        let _ = stream.read(&mut [0; 64]);
    });
    let result = broadcast(rendezvous(1, 2, port));
    assert!(
        matches!(&result, Err(RendezvousError::OtherProtocol { .. })),
        "{result:?}"
    );
    server.join().expect("no panic");
    Ok(())
}

#[test]
fn invalid_rank_is_an_error() {
    for (rank, world_size) in [(2, 2), (0, 0), (0, usize::MAX)] {
        let result = Rendezvous::new(rank, world_size, HOST, 1);
        assert!(
            matches!(result, Err(RendezvousError::RankOutOfRange { .. })),
            "{rank} of {world_size}: {result:?}"
        );
    }
}
