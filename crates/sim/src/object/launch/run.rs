//! Execution of a launch.

use curium_ptx::exec::Report;

/// A report, and the number of its occurrences that were written.
#[derive(Debug)]
pub(crate) struct KeptReport {
    pub(crate) report: Report,
    pub(crate) written: u64,
}
