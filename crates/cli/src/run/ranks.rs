//! The processes of a job: started together, ended together.

use std::io::{self, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::output;
use crate::program;

/// The time between two looks at the processes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The exit code after an interrupt (128 + SIGINT), as in shells.
const INTERRUPTED: u8 = 130;

/// The processes of a job. Dropping it kills those that still run.
pub(super) struct Ranks {
    processes: Vec<Process>,
    grace: Duration,
    interrupted: Arc<AtomicBool>,
}

/// The process of one rank.
struct Process {
    child: Child,
    status: Option<ExitStatus>,
    output: Vec<JoinHandle<()>>,
}

impl Ranks {
    /// Creates a job without ranks. From now on, an interrupt or a request to terminate ends the job, not this program alone.
    pub(super) fn new(grace: Duration) -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
            .context("interrupts cannot be handled")?;
        Ok(Self {
            processes: Vec::new(),
            grace,
            interrupted,
        })
    }

    /// Starts the next rank.
    pub(super) fn start(&mut self, mut command: Command) -> Result<()> {
        let rank = self.processes.len();
        let started = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = started
            .with_context(|| format!("{} could not be started", command.get_program().display()))?;
        self.processes.push(Process {
            child,
            status: None,
            output: Vec::new(),
        });
        let process = self.processes.last_mut().context("just added")?;
        if let Some(stdout) = process.child.stdout.take() {
            process
                .output
                .push(output::forward(rank, stdout, io::stdout())?);
        }
        if let Some(stderr) = process.child.stderr.take() {
            process
                .output
                .push(output::forward(rank, stderr, io::stderr())?);
        }
        Ok(())
    }

    /// Waits until every rank has ended, and returns the exit code. When one fails, the others are terminated.
    pub(super) fn wait(mut self) -> Result<u8> {
        let code = loop {
            if let Some((rank, status)) = self.poll()? {
                writeln!(
                    io::stderr(),
                    "curium run: rank {rank} failed ({status}); terminating the other ranks"
                )?;
                self.terminate()?;
                break program::exit_code(status);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                self.terminate()?;
                break INTERRUPTED;
            }
            if !self.is_running() {
                break 0;
            }
            thread::sleep(POLL_INTERVAL);
        };
        for handle in self
            .processes
            .iter_mut()
            .flat_map(|process| process.output.drain(..))
        {
            // A panic of the thread has been printed; the exit code is that of the ranks.
            let _ = handle.join();
        }
        Ok(code)
    }

    /// Collects the status of the ranks that have ended, and returns the first one that failed.
    fn poll(&mut self) -> io::Result<Option<(usize, ExitStatus)>> {
        let mut failed = None;
        for (rank, process) in self.processes.iter_mut().enumerate() {
            if process.status.is_some() {
                continue;
            }
            process.status = process.child.try_wait()?;
            if let Some(status) = process.status.filter(|status| !status.success()) {
                failed = failed.or(Some((rank, status)));
            }
        }
        Ok(failed)
    }

    fn is_running(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.status.is_none())
    }

    /// Requests the running ranks to terminate, and kills those that run after the grace period.
    fn terminate(&mut self) -> io::Result<()> {
        for process in self
            .processes
            .iter_mut()
            .filter(|process| process.status.is_none())
        {
            process.terminate();
        }
        let deadline = Instant::now() + self.grace;
        while self.is_running() && Instant::now() < deadline {
            self.poll()?;
            thread::sleep(POLL_INTERVAL);
        }
        self.kill()
    }

    /// Kills the ranks that still run, and waits for them.
    fn kill(&mut self) -> io::Result<()> {
        for process in self
            .processes
            .iter_mut()
            .filter(|process| process.status.is_none())
        {
            process.child.kill()?;
            process.status = Some(process.child.wait()?);
        }
        Ok(())
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        // No receiver is left for the report.
        let _ = self.kill();
    }
}

impl Process {
    /// Sends SIGTERM.
    #[cfg(unix)]
    fn terminate(&mut self) {
        let id = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id {
            // The process may have ended meanwhile; `wait` has not been called, so the number is still its own.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
    }

    /// Kills the process: this system has no milder request that every program receives.
    #[cfg(not(unix))]
    fn terminate(&mut self) {
        // It may have ended meanwhile.
        let _ = self.child.kill();
    }
}
