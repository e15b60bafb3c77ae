//! The reports of a driver.

use curium_ptx::exec::{Report, ReportKind, Severity, Stale};
use curium_sys::CUresult;

use crate::config::Checks;
use crate::lock::{Mutex, Rank};

/// The maximum number of reports that are stored and written. A kernel that continues after a fault
/// can have one in every warp.
const MAX_REPORTS: usize = 1000;

/// The reports of a driver, oldest first.
pub(crate) struct Reports {
    checks: Checks,
    entries: Mutex<Vec<Entry>>,
}

/// A report, and the number of its occurrences that were written.
#[derive(Debug)]
struct Entry {
    report: Report,
    written: u64,
}

/// The effect of an error on the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// The program continues.
    Survivable,
    /// A call returns the code of the error.
    Fatal,
}

impl Reports {
    pub(crate) fn new(checks: Checks) -> Self {
        Self {
            checks,
            entries: Mutex::new(Rank::Reports, Vec::new()),
        }
    }

    /// Returns all reports.
    pub(crate) fn all(&self) -> Vec<Report> {
        let entries = self.entries.lock();
        entries.iter().map(|entry| entry.report.clone()).collect()
    }

    /// Returns `true` if the program continues after a report: a warning, or any error with
    /// [`Checks::Report`].
    pub(crate) fn are_survivable(&self, report: &Report) -> bool {
        let is_warning = report.severity() == Severity::Warning;
        (is_warning || self.checks == Checks::Report) && report.kind != ReportKind::Cancelled
    }

    /// Stores a report, and writes it or aborts, depending on the settings.
    #[expect(
        clippy::print_stderr,
        reason = "a code does not identify the thread, and C has no other channel for the message"
    )]
    pub(crate) fn add(&self, report: &Report, persistence: Persistence) {
        let Some(number) = self.store(report, persistence) else {
            return;
        };
        if report.kind == ReportKind::Cancelled || self.checks == Checks::Quiet {
            return;
        }
        eprintln!("curium-sim: {report:#}");
        if self.checks == Checks::Abort && report.severity() == Severity::Error {
            std::process::abort();
        }
        if number == MAX_REPORTS {
            eprintln!("curium-sim: {number} reports written; later ones are suppressed");
        }
    }

    /// Stores a report, and returns the number of reports; `None` above the maximum. A report of a
    /// program that continues is only counted if there is one of the same place.
    fn store(&self, report: &Report, persistence: Persistence) -> Option<usize> {
        let mut entries = self.entries.lock();
        if persistence == Persistence::Survivable
            && let Some(entry) = entries
                .iter_mut()
                .find(|entry| entry.report.has_same_place(report))
        {
            entry.report.count += 1;
            return None;
        }
        if entries.len() == MAX_REPORTS {
            return None;
        }
        entries.push(Entry {
            report: report.clone(),
            written: 1,
        });
        Some(entries.len())
    }

    /// Writes the numbers of reports that were only counted since the last call.
    #[expect(
        clippy::print_stderr,
        reason = "the reports themselves are written there"
    )]
    pub(crate) fn write_repeats(&self) {
        let mut lines = Vec::new();
        for Entry { report, written } in self.entries.lock().iter_mut() {
            let repeats = report.count - *written;
            if repeats > 0 {
                let first = report.first_line();
                lines.push(format!("curium-sim: {repeats} more of: {first}"));
                *written = report.count;
            }
        }
        if self.checks != Checks::Quiet {
            for line in lines {
                eprintln!("{line}");
            }
        }
    }
}

/// Returns the code that hardware returns for a fault.
pub(crate) fn code(fault: &Report) -> CUresult {
    match fault.kind {
        ReportKind::IllegalAddress => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        ReportKind::MisalignedAddress => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        ReportKind::StaleNode {
            what: Stale::Memory,
            ..
        } => CUresult::CUDA_ERROR_INVALID_VALUE,
        ReportKind::StaleNode { .. } => CUresult::CUDA_ERROR_INVALID_HANDLE,
        ReportKind::Assert => CUresult::CUDA_ERROR_ASSERT,
        ReportKind::HardwareStackError => CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
        ReportKind::InvalidProgramCounter => CUresult::CUDA_ERROR_INVALID_PC,
        ReportKind::IllegalInstruction(_) => CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        ReportKind::Deadlock
        | ReportKind::StreamDeadlock
        | ReportKind::OverBudget(_)
        | ReportKind::MissingMembers(_) => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        ReportKind::InvalidLaunch(_) => CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        ReportKind::Cancelled => CUresult::CUDA_ERROR_DEINITIALIZED,
        ReportKind::Trap
        | ReportKind::Race { .. }
        | ReportKind::StreamRace
        | ReportKind::DivergentBarrier(_)
        | ReportKind::HostRace
        | ReportKind::InactiveLane(_)
        | ReportKind::InvalidBarrier(_)
        | ReportKind::Uninitialized => CUresult::CUDA_ERROR_LAUNCH_FAILED,
        // A kind without a code of hardware here.
        _ => CUresult::CUDA_ERROR_UNKNOWN,
    }
}
