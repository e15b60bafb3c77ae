//! Rank 0 in a process that may open few files, which strangers try to use up.
#![cfg(unix)]

use std::env;
use std::error::Error;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use curium_nccl::{Exchange as _, Rendezvous, RendezvousError, Token};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const HOST: &str = "127.0.0.1";

/// The variable that holds the port in the process of rank 0.
const PORT: &str = "CURIUM_TEST_RENDEZVOUS_PORT";

fn rendezvous(rank: usize, port: u16) -> Result<Rendezvous> {
    rendezvous_in(2, rank, port)
}

fn rendezvous_in(world_size: usize, rank: usize, port: u16) -> Result<Rendezvous> {
    Ok(Rendezvous::new(rank, world_size, HOST, port)?
        .with_token(Token::new(*b"token"))
        .with_timeout(Duration::from_secs(30)))
}

/// Kills the process of rank 0 if the test fails.
struct Rank0(Child);

impl Drop for Rank0 {
    fn drop(&mut self) {
        // It has ended if the test succeeded.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a test again as rank 0, with at most 64 open files.
fn start_rank_0(port: u16, test: &str) -> Result<Rank0> {
    let program = env::current_exe()?;
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(program)
        .args(["--exact", test])
        .env(PORT, port.to_string())
        .stdout(Stdio::null())
        .spawn()?;
    Ok(Rank0(child))
}

/// Rank 0 names the limit of the system if it has too few files for all ranks.
#[test]
fn too_few_files_are_reported() -> Result {
    const WORLD_SIZE: usize = 100;
    const TIMEOUT: Duration = Duration::from_secs(3);
    if let Ok(port) = env::var(PORT) {
        let error = rendezvous_in(WORLD_SIZE, 0, port.parse()?)?
            .with_timeout(TIMEOUT)
            .broadcast(&mut [7; 4]);
        assert!(
            matches!(error, Err(RendezvousError::System { .. })),
            "{error:?}"
        );
        return Ok(());
    }
    let port = TcpListener::bind((HOST, 0))?.local_addr()?.port();
    let mut rank_0 = start_rank_0(port, "too_few_files_are_reported")?;
    let mut ranks = Vec::new();
    for rank in 1..WORLD_SIZE {
        let mut rendezvous = rendezvous_in(WORLD_SIZE, rank, port)?.with_timeout(TIMEOUT);
        ranks.push(thread::spawn(move || rendezvous.broadcast(&mut [0; 4])));
    }
    for rank in ranks {
        let result = rank.join().map_err(|_| "a rank panicked")?;
        assert!(result.is_err(), "{result:?}");
    }
    assert!(rank_0.0.wait()?.success());
    Ok(())
}

/// Sends a byte on each connection from time to time, on a thread that ends with the test.
fn drip(strangers: Vec<TcpStream>) {
    thread::spawn(move || {
        loop {
            for mut stranger in &strangers {
                // Rank 0 may have closed the connection.
                let _ = stranger.write(&[0]);
            }
            thread::sleep(Duration::from_millis(500));
        }
    });
}

/// Strangers open more connections than rank 0 may have files, and hold them. A rank with the token
/// arrives nevertheless.
#[test]
fn rank_arrives_without_files() -> Result {
    if let Ok(port) = env::var(PORT) {
        rendezvous(0, port.parse()?)?.broadcast(&mut [7; 4])?;
        return Ok(());
    }
    let port = TcpListener::bind((HOST, 0))?.local_addr()?.port();
    let mut rank_0 = start_rank_0(port, "rank_arrives_without_files")?;
    let start = Instant::now();
    let mut strangers = Vec::new();
    while strangers.len() < 200 {
        match TcpStream::connect((HOST, port)) {
            Ok(stranger) => strangers.push(stranger),
            Err(error) if start.elapsed() > Duration::from_secs(20) => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    drip(strangers);
    let start = Instant::now();
    let mut bytes = [0; 4];
    rendezvous(1, port)?.broadcast(&mut bytes)?;
    assert_eq!(bytes, [7; 4]);
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    assert!(rank_0.0.wait()?.success());
    Ok(())
}
