//! The processes of a job: started together, ended together.

use std::io::{self, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::group::{self, Group};
use super::input;
use super::interrupts::Interrupts;
use super::output::Outputs;
use crate::program;

/// The time between two looks at the processes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The processes of a job. Dropping it kills those that still run.
pub(super) struct Ranks {
    processes: Vec<Process>,
    outputs: Outputs,
    grace: Duration,
    interrupts: Interrupts,
}

/// The process of one rank, and the group that it leads.
struct Process {
    child: Child,
    status: Option<ExitStatus>,
    group: Group,
}

impl Ranks {
    /// Creates a job without ranks. From now on, an interrupt or a request to terminate ends the
    /// job, not this program alone.
    pub(super) fn new(grace: Duration) -> Result<Self> {
        group::end_with_this_program()?;
        Ok(Self {
            processes: Vec::new(),
            outputs: Outputs::new(),
            grace,
            interrupts: Interrupts::handle()?,
        })
    }

    /// Returns `true` if an interrupt has requested the end of the job.
    pub(super) fn are_interrupted(&self) -> bool {
        self.interrupts.count() > 0
    }

    /// Starts the next rank.
    pub(super) fn start(&mut self, mut command: Command) -> Result<()> {
        let rank = self.processes.len();
        Group::create_for(&mut command);
        let started = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started
            .with_context(|| format!("{} could not be started", command.get_program().display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        // From here on, the process is killed if something fails.
        self.processes.push(Process {
            group: Group::led_by(&child),
            child,
            status: None,
        });
        if let Some(stdin) = stdin {
            input::forward(stdin)?;
        }
        if let Some(stdout) = stdout {
            self.outputs.forward(rank, stdout, io::stdout())?;
        }
        if let Some(stderr) = stderr {
            self.outputs.forward(rank, stderr, io::stderr())?;
        }
        Ok(())
    }

    /// Waits until every rank has ended, and returns the exit code. When one fails, the others are
    /// terminated.
    ///
    /// Processes that the ranks leave behind have the grace period to end, and are then terminated
    /// as well.
    pub(super) fn wait(mut self) -> Result<u8> {
        let mut code = loop {
            if let Some((rank, status)) = self.poll()? {
                // The other ranks must end, and the exit code must be that of this rank, even if no
                // receiver is left for the report.
                let _ = writeln!(
                    io::stderr(),
                    "curium run: rank {rank} failed ({status}); terminating the other ranks"
                );
                break program::exit_code(status);
            }
            if self.are_interrupted() {
                break self.interrupts.exit_code();
            }
            if self
                .processes
                .iter()
                .all(|process| process.status.is_some())
            {
                break 0;
            }
            thread::sleep(POLL_INTERVAL);
        };
        if code == 0 {
            let start = Instant::now();
            while (self.is_running()? || !self.outputs.have_ended())
                && start.elapsed() < self.grace
                && !self.are_interrupted()
            {
                thread::sleep(POLL_INTERVAL);
            }
            if self.are_interrupted() {
                code = self.interrupts.exit_code();
            }
        }
        self.terminate()?;
        self.finish_outputs();
        Ok(code)
    }

    /// Collects the status of the ranks that have ended, and returns the first one that failed.
    fn poll(&mut self) -> io::Result<Option<(usize, ExitStatus)>> {
        let mut failed = None;
        for (rank, process) in self.processes.iter_mut().enumerate() {
            if process.status.is_none() {
                process.status = process.child.try_wait()?;
                if let Some(status) = process.status.filter(|status| !status.success()) {
                    failed = failed.or(Some((rank, status)));
                }
            }
            if process.status.is_some() {
                process.group.release_if_empty();
            }
        }
        Ok(failed)
    }

    /// Returns `true` if a rank, or a process of its group, has not ended.
    fn is_running(&mut self) -> io::Result<bool> {
        self.poll()?;
        Ok(self.processes.iter_mut().any(Process::is_running))
    }

    /// Requests all processes to terminate, and kills those that run after the grace period, or at
    /// the next interrupt.
    fn terminate(&mut self) -> io::Result<()> {
        let interrupts = self.interrupts.count();
        for process in &mut self.processes {
            process.terminate();
        }
        let start = Instant::now();
        while self.is_running()?
            && start.elapsed() < self.grace
            && self.interrupts.count() == interrupts
        {
            thread::sleep(POLL_INTERVAL);
        }
        self.kill()
    }

    /// Kills the processes that still run, and waits for the ranks among them. A rank that has
    /// changed its user cannot be killed: reports it.
    fn kill(&mut self) -> io::Result<()> {
        let mut killed = Vec::new();
        for (rank, process) in self.processes.iter_mut().enumerate() {
            process.group.kill();
            if process.status.is_some() {
                continue;
            }
            match process.child.kill() {
                Ok(()) => killed.push(process),
                // All others are killed nevertheless.
                Err(error) => {
                    // No receiver may be left for the report.
                    let _ = writeln!(
                        io::stderr(),
                        "curium run: rank {rank} could not be killed ({error}); it runs on"
                    );
                }
            }
        }
        for process in killed {
            process.status = Some(process.child.wait()?);
        }
        Ok(())
    }

    /// Forwards what the processes have written, at the speed at which this program's own output is
    /// read. An interrupt ends this.
    fn finish_outputs(&self) {
        let interrupts = self.interrupts.count();
        let start = Instant::now();
        self.outputs.end();
        while !self.outputs.have_ended() && self.interrupts.count() == interrupts {
            // Elsewhere, the threads cannot be woken while a process holds the pipe.
            if !cfg!(unix) && start.elapsed() > Duration::from_secs(1) {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        // No receiver is left for the report.
        let _ = self.kill();
    }
}

impl Process {
    fn is_running(&mut self) -> bool {
        self.status.is_none() || self.group.is_running()
    }

    /// Sends SIGTERM to the group.
    #[cfg(unix)]
    fn terminate(&mut self) {
        self.group.terminate();
    }

    /// Kills the process: this system has no milder request that every program receives.
    #[cfg(not(unix))]
    fn terminate(&mut self) {
        self.group.terminate();
        if self.status.is_none() {
            // It may have ended meanwhile.
            let _ = self.child.kill();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A group that is empty is not signaled again, however long other ranks run: its number may
    /// have been given to another group.
    #[test]
    fn ended_group_is_released_at_once() -> Result<()> {
        let mut ranks = Ranks::new(Duration::from_secs(10))?;
        ranks.start(Command::new("true"))?;
        let mut sleep = Command::new("sleep");
        sleep.arg("100");
        ranks.start(sleep)?;
        while ranks.processes[0].status.is_none() {
            ranks.poll()?;
        }
        assert!(!ranks.processes[0].group.has_number());
        assert!(ranks.processes[1].group.has_number());
        Ok(())
    }
}
