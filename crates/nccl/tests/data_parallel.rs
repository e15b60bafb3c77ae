//! The training of the example: losses on one rank and on several, and a rank that dies.

#[path = "../examples/data_parallel/train.rs"]
mod train;

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::Driver;
use curium_nccl::{Communicator, CommunicatorOptions, Rendezvous, UniqueId};
use curium_sim::{Config, Simulator};

use self::train::train;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const STEPS: usize = 12;

fn losses(ranks: usize) -> TestResult<Vec<f32>> {
    let config = Config::new().with_devices(ranks as u32);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    let nccl = curium_sim_libraries::nccl();
    let id = UniqueId::new(&nccl)?;
    let rank = &|rank: usize| {
        let context = driver
            .device(rank)
            .expect("it exists")
            .primary_context()
            .expect("it has one");
        let mut communicator =
            Communicator::new(&nccl, &context, id, rank, ranks).expect("the ranks meet");
        let losses = train(&curium_sim_libraries::cublas(), &mut communicator, STEPS)
            .expect("training failed");
        communicator.close().expect("the ranks have finished");
        losses
    };
    let all: Vec<Vec<f32>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|number| scope.spawn(move || rank(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"))
            .collect()
    });
    assert!(
        all.iter().all(|losses| *losses == all[0]),
        "every rank has the same losses"
    );
    Ok(all.into_iter().next().ok_or("no rank")?)
}

#[test]
fn losses_ignore_the_rank_count() -> TestResult {
    let one = losses(1)?;
    assert!(one[STEPS - 1] < 0.7 * one[0], "the loss falls: {one:?}");
    for ranks in [2, 4] {
        for (single, several) in one.iter().zip(losses(ranks)?) {
            assert!(
                (single - several).abs() <= 1e-5 * single,
                "{ranks} ranks: {single} and {several}"
            );
        }
    }
    Ok(())
}

/// The environment variable of a rank that is a process: its number, the port, and the time in
/// microseconds after which rank 1 dies.
const RANK: &str = "CURIUM_TEST_RANK";

/// The environment variable that replaces the number of deaths: 100 take a few minutes.
const DEATHS: &str = "CURIUM_TEST_DEATHS";

/// The timeout of the communicator of a process.
const TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn dead_rank_ends_the_training() -> TestResult {
    if let Ok(rank) = std::env::var(RANK) {
        train_until_a_rank_dies(&rank)?;
        return Ok(());
    }
    let deaths: u64 = std::env::var(DEATHS).map_or(6, |text| text.parse().expect("not a number"));
    for death in 0..deaths {
        // The points are spread over about a tenth of a second: over the first step, the capture,
        // and launches.
        let time = death * 1_000_003 % 100_000;
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = listener?.port();
        let [survivor, dead] = [0, 1].map(|rank| start(rank, port, time));
        let (status, output) = ended(survivor)?;
        assert!(status, "after {time} µs:\n{output}");
        assert!(
            output.contains("rank 1 has ended without the end of its communicator"),
            "after {time} µs:\n{output}"
        );
        assert!(!ended(dead)?.0, "rank 1 dies");
    }
    Ok(())
}

fn start(rank: usize, port: u16, time: u64) -> Child {
    let name = "dead_rank_ends_the_training";
    let program = std::env::current_exe().expect("the path of this program is known");
    let mut command = Command::new(program);
    command
        .args([name, "--exact", "--nocapture"])
        .env(RANK, format!("{rank} {port} {time}"));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("failed to start the test again")
}

/// Waits for a process, and returns its success and its output.
fn ended(mut child: Child) -> TestResult<(bool, String)> {
    let deadline = Instant::now() + 6 * TIMEOUT;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            return Ok((false, "the process hangs".to_owned()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

/// Trains as one of two processes, of which rank 1 dies after a time.
#[expect(clippy::print_stderr, reason = "the other process reads the error")]
fn train_until_a_rank_dies(input: &str) -> TestResult {
    let numbers: Vec<u64> = input
        .split(' ')
        .map(|text| text.parse().expect("not a number"))
        .collect();
    let [rank, port, time] = numbers[..] else {
        panic!("there are three numbers")
    };
    let driver = Simulator::new(Config::new().with_devices(2))?.driver::<Driver>();
    let context = driver?.device(rank as usize)?.primary_context();
    let rendezvous = Rendezvous::new(rank as usize, 2, "127.0.0.1", port as u16);
    let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
    let mut communicator = Communicator::exchanged(
        &curium_sim_libraries::nccl(),
        &context?,
        &mut rendezvous?,
        options,
    )?;
    if rank == 1 {
        thread::spawn(move || {
            thread::sleep(Duration::from_micros(time));
            std::process::abort();
        });
    }
    let start = Instant::now();
    let error = train(
        &curium_sim_libraries::cublas(),
        &mut communicator,
        usize::MAX,
    )
    .expect_err("rank 1 dies");
    assert!(
        start.elapsed() < Duration::from_micros(time) + TIMEOUT,
        "{:?}",
        start.elapsed()
    );
    eprintln!("{error}");
    drop(communicator);
    assert_eq!(curium_sim_libraries::live_communicators(), 0);
    Ok(())
}
