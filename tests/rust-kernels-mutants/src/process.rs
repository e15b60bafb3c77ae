//! Tests of this program in processes of their own.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{PTX_VARIABLE, SEED_VARIABLE};

/// The result of a test with other code.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) outcome: Outcome,
    pub(crate) stderr: String,
    pub(crate) time: Duration,
}

/// The outcome of a test with a mutant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// The simulator reported an error.
    Reported,
    /// A test had another result.
    Different,
    /// It did not end.
    Endless,
    /// Nothing failed.
    Unnoticed,
}

/// Returns the names of the tests of this program.
pub(crate) fn tests() -> io::Result<Vec<String>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--list", "--format=terse"])
        .output()?;
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

/// Runs a test of this program with the PTX of a file and one seed. Stops it after `limit`.
pub(crate) fn run_test(
    test: &str,
    ptx: &Path,
    seed: u64,
    limit: Duration,
) -> io::Result<Execution> {
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(PTX_VARIABLE, ptx)
        .env(SEED_VARIABLE, seed.to_string())
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let stderr = reader.join().unwrap_or_default();
    let outcome = match status {
        None => Outcome::Endless,
        Some(status) if status.success() => Outcome::Unnoticed,
        Some(_) if stderr.contains("the test failed on the simulator") => Outcome::Reported,
        Some(_) => Outcome::Different,
    };
    Ok(Execution {
        outcome,
        stderr,
        time: start.elapsed(),
    })
}
