//! Runs sequences, each in its own process, and writes their log.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// The sequences to run.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// The seed of all sequences.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of sequences.
    #[arg(long, default_value_t = 100)]
    sequences: u64,
    /// The number of the first sequence.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of calls in each sequence, at least.
    #[arg(long, default_value_t = 30)]
    calls: usize,
    /// The number of processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The time limit of a sequence in seconds.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// The time in seconds after which no further sequence begins.
    #[arg(long)]
    seconds: Option<u64>,
    /// The log to write.
    log: PathBuf,
}

/// Lines of a process's error output in the log.
const MAX_ERROR_LINES: usize = 12;

impl Run {
    /// Runs the sequences.
    pub(crate) fn run(&self) -> Result<()> {
        let started = Instant::now();
        let log = File::create(&self.log).with_context(|| self.log.display().to_string())?;
        let log = Mutex::new(log);
        let next = AtomicU64::new(self.first);
        let folder = tempfile::tempdir()?;
        let end = self.first.saturating_add(self.sequences);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.max(1))
                .map(|worker| {
                    let folder = folder.path().join(worker.to_string());
                    let log = &log;
                    let next = &next;
                    scope.spawn(move || -> Result<()> {
                        fs::create_dir(&folder)?;
                        loop {
                            let is_late = self
                                .seconds
                                .is_some_and(|seconds| started.elapsed().as_secs() >= seconds);
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= end || is_late {
                                return Ok(());
                            }
                            let text = self.sequence(number, &folder)?;
                            let mut log = log
                                .lock()
                                .map_err(|_| anyhow::anyhow!("another worker failed"))?;
                            log.write_all(text.as_bytes())?;
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker
                    .join()
                    .map_err(|_| anyhow::anyhow!("a worker panicked"))??;
            }
            Ok(())
        })
    }

    /// Runs a sequence in a new process. Returns its part of the log.
    fn sequence(&self, number: u64, folder: &Path) -> Result<String> {
        let output = folder.join("output");
        let errors = folder.join("errors");
        let mut child = Command::new(std::env::current_exe()?)
            .arg("sequence")
            .args([self.seed, number, self.calls as u64].map(|argument| argument.to_string()))
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&errors)?)
            .spawn()?;
        let status = wait(&mut child, Duration::from_secs(self.limit))?;
        let mut text = format!("sequence\t{number}\n");
        text += &String::from_utf8_lossy(&fs::read(&output)?);
        let outcome = outcome(status);
        // The process ended in the call of the last line.
        if !text.ends_with('\n') {
            text += &format!("{}\n", if status.is_none() { "hang" } else { "crash" });
        }
        for line in String::from_utf8_lossy(&fs::read(&errors)?)
            .lines()
            .take(MAX_ERROR_LINES)
        {
            text += &format!("stderr\t{line}\n");
        }
        Ok(text + &format!("end\t{outcome}\n"))
    }
}

/// Waits for a process. Returns `None` after killing one that exceeds the time limit.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn outcome(status: Option<ExitStatus>) -> String {
    match status {
        None => "hang".to_owned(),
        Some(status) if status.success() => "complete".to_owned(),
        Some(status) => format!("crash: {status}"),
    }
}
