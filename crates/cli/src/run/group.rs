//! The processes of a rank: the one that was started, and those that it started.

use std::process::{Child, Command};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of a rank. A process that creates a group or a session of its own leaves it.
#[cfg(unix)]
pub(super) struct Group {
    /// `None` once the group is empty: the system may give its number to another group.
    id: Option<Pid>,
}

#[cfg(unix)]
impl Group {
    /// Makes the process of the command the leader of a new group.
    pub(super) fn create_for(command: &mut Command) {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }

    /// Returns the group that this child leads.
    pub(super) fn led_by(child: &Child) -> Self {
        Self {
            id: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        }
    }

    /// Forgets the number of the group if no process is left in it. Called soon after the leader's
    /// status was collected, and often from then on: a job may run for days, and a number that
    /// another group has received meanwhile must not be signaled.
    pub(super) fn release_if_empty(&mut self) {
        self.id = self
            .id
            .filter(|id| test_kill_process_group(*id) != Err(rustix::io::Errno::SRCH));
    }

    /// Returns `true` if a process of the group has not ended. The leader counts until its status
    /// has been collected.
    pub(super) fn is_running(&mut self) -> bool {
        self.release_if_empty();
        self.id.is_some()
    }

    /// Requests all processes of the group to terminate (SIGTERM).
    pub(super) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Kills all processes of the group.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    #[cfg(test)]
    pub(super) fn has_number(&self) -> bool {
        self.id.is_some()
    }

    fn signal(&mut self, signal: Signal) {
        if self.is_running()
            && let Some(id) = self.id
        {
            // The processes may have ended meanwhile.
            let _ = kill_process_group(id, signal);
        }
    }
}

/// Stands for the processes that a rank started: its job object kills them when this program ends.
#[cfg(not(unix))]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub(super) fn create_for(_: &mut Command) {}

    pub(super) fn led_by(_: &Child) -> Self {
        Self
    }

    pub(super) fn release_if_empty(&mut self) {}

    pub(super) fn is_running(&mut self) -> bool {
        false
    }

    pub(super) fn terminate(&mut self) {}

    pub(super) fn kill(&mut self) {}
}

/// Makes all processes that this program starts, and those that they start, end with it.
#[cfg(windows)]
pub(super) fn end_with_this_program() -> anyhow::Result<()> {
    use win32job::{ExtendedLimitInfo, Job};
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    // The system closes the handle when this program ends. Closed before, it would end this
    // program.
    job.into_handle();
    Ok(())
}

/// Does nothing: the groups are signaled.
#[cfg(not(windows))]
pub(super) fn end_with_this_program() -> anyhow::Result<()> {
    Ok(())
}
