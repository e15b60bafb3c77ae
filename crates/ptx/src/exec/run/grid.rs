//! Launches: workers run the blocks of a grid.

use std::sync::atomic::Ordering;
use std::thread;

use parking_lot::Mutex;

use super::worker::Worker;
use crate::exec::check::report::{Report, ReportKind};
use crate::exec::machine::launch::{Launch, Prepared, Statistics};

/// Runs a kernel and waits for it.
///
/// # Errors
///
/// Returns the first fault of a thread, an argument that the kernel or the device does not allow,
/// or [`ReportKind::Cancelled`].
pub fn run(launch: &Launch<'_>) -> Result<Statistics, Box<Report>> {
    let prepared = Prepared::new(launch)?;
    let clusters = prepared.order.clusters;
    let workers = prepared.workers.min(clusters);
    let total = Mutex::new(Ok(Statistics::default()));
    thread::scope(|scope| {
        // Most launches end before another thread could start.
        prepared.run_worker(&total, &mut || {
            for _ in 1..workers {
                scope.spawn(|| prepared.run_worker(&total, &mut || {}));
            }
        });
    });
    let statistics = total.into_inner()?;
    if statistics.blocks < prepared.blocks_to_run() {
        return Err(prepared.launch_fault(ReportKind::Cancelled));
    }
    Ok(statistics)
}

impl Prepared<'_> {
    /// Runs a worker, and adds its result to the total: the sum of the statistics, or the first
    /// fault.
    fn run_worker(
        &self,
        total: &Mutex<Result<Statistics, Box<Report>>>,
        call_for_help: &mut dyn FnMut(),
    ) {
        let result = Worker::new(self).run(call_for_help);
        let mut total = total.lock();
        match result {
            Ok(statistics) => {
                if let Ok(total) = &mut *total {
                    total.add(&statistics);
                }
            }
            Err(fault) => {
                self.failed.store(true, Ordering::Relaxed);
                if total.is_ok() {
                    *total = Err(fault);
                }
            }
        }
    }
}
