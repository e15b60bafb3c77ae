//! The driver's part in operations of libraries.

use std::sync::Arc;

use curium_ptx::exec::{Access, Report, ReportKind};
use curium_sys::{CUresult, CUstream_st, Function};

use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::schedule::{Wait, Work};
use crate::library_operation::{LibraryOperation, Run};
use crate::object::graph::content::Content;
use crate::result::Result;

/// The properties of a stream that libraries need.
pub(crate) struct StreamState {
    pub(crate) number: u64,
    pub(crate) is_captured: bool,
}

impl Driver {
    /// Returns `true` if the handle belongs to a stream of this driver. A default stream belongs to
    /// the driver whose context is current.
    pub(crate) fn has_stream(&self, stream: Pointer<CUstream_st>) -> bool {
        let unknown = [
            Err(CUresult::CUDA_ERROR_INVALID_HANDLE),
            Err(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        ];
        !unknown.contains(&self.lock().stream(stream).map(|_| ()))
    }

    /// Returns what libraries need to know about a stream.
    pub(crate) fn stream_state(&self, stream: Pointer<CUstream_st>) -> Result<StreamState> {
        let mut state = self.lock();
        let id = state.stream(stream)?;
        Ok(StreamState {
            number: state.contexts.stream(id)?.number(),
            is_captured: state.captures.is_capturing(id),
        })
    }

    /// Returns the device whose context is current.
    pub(crate) fn current_device(&self) -> Option<i32> {
        let current = self.current().ok()?;
        i32::try_from(self.lock().contexts.live_context(current).ok()?.device()).ok()
    }

    /// Enqueues an operation as if it were a kernel.
    pub(crate) fn enqueue_operation(
        &self,
        operation: LibraryOperation,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.admit(Function::cuLaunchKernel)?;
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        if !state.captures.is_capturing(stream)
            && let Some(wait) = operation.wait()
        {
            state.queue(stream, wait);
        }
        state.enqueue(stream, Content::Library(operation))
    }
}

/// The size in bytes up to which an operand is copied without a check of the whole.
const MAX_UNCHECKED: usize = 1 << 28;

impl LibraryOperation {
    /// Returns the wait for its condition.
    pub(crate) fn wait(&self) -> Option<Work> {
        let condition = Arc::clone(self.condition.as_ref()?);
        Some(Work::Wait(Wait::new(Box::new(move |_| Ok(condition())))))
    }

    /// Runs the operation. The error of a failed access becomes the sticky error of the device.
    pub(crate) fn run(&self, driver: &Driver) -> Result {
        activity::measured(
            || ActivityOperation::Kernel {
                name: self.name,
                grid: [1; 3],
                block: [1; 3],
            },
            || self.compute(driver),
        )
    }

    fn compute(&self, driver: &Driver) -> Result {
        let mut operands = Vec::with_capacity(self.operands.len());
        let mut runs_by_operand = Vec::with_capacity(self.operands.len());
        for operand in self.operands.iter() {
            let runs = operand.resolved(&operands);
            let size = runs
                .iter()
                .map(|run| run.bytes)
                .fold(0, usize::saturating_add);
            if size > MAX_UNCHECKED {
                self.check_allocated(driver, &runs, operand.is_written)?;
            }
            let mut bytes = vec![0; size];
            if operand.is_read {
                self.each(driver, &runs, &mut bytes, |run, part| {
                    driver.memory().read_run(self.name, run, part)
                })?;
            }
            runs_by_operand.push(runs);
            operands.push(bytes);
        }
        (self.compute)(&mut operands);
        let results = self
            .operands
            .iter()
            .zip(&runs_by_operand)
            .zip(&mut operands);
        for ((_, runs), bytes) in results.filter(|((operand, _), _)| operand.is_written) {
            self.each(driver, runs, bytes, |run, part| {
                driver.memory().write_run(self.name, run, part)
            })?;
        }
        Ok(())
    }

    /// Checks that the runs of a large operand are allocated, before the host reserves as much
    /// memory. Returns the error of an access otherwise.
    fn check_allocated(&self, driver: &Driver, runs: &[Run], write: bool) -> Result {
        let missing = runs
            .iter()
            .find(|run| !driver.memory().contains(run.address, run.bytes as u64));
        let Some(run) = missing else { return Ok(()) };
        let access = Access {
            address: run.address,
            size: u32::try_from(run.bytes).unwrap_or(u32::MAX),
            write,
        };
        let report = Report::for_operation(self.name, ReportKind::IllegalAddress, access);
        driver.handle_report(Some(report))?;
        Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
    }

    /// Calls `access` with each run of an operand and its part of the operand's bytes. Reports a
    /// failed access and returns its error, unless the checks are set to continue.
    fn each(
        &self,
        driver: &Driver,
        runs: &[Run],
        mut bytes: &mut [u8],
        access: impl Fn(Run, &mut [u8]) -> std::result::Result<(), (ReportKind, Access)>,
    ) -> Result {
        for run in runs {
            let (part, rest) = bytes.split_at_mut(run.bytes);
            if let Err((kind, access)) = access(*run, part) {
                driver.handle_report(Some(Report::for_operation(self.name, kind, access)))?;
            }
            bytes = rest;
        }
        Ok(())
    }
}
