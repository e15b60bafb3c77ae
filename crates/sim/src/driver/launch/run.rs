//! Execution of a launch.

use curium_ptx::exec::{self, DeviceModel, Report, ReportKind, Schedule, Severity, Stale};
use curium_sys::{CUdevice_attribute, CUresult};

use crate::activity::{self, ActivityOperation};
use crate::config::Checks;
use crate::driver::Driver;
use crate::driver::launch::runtime::Host;
use crate::memory::{Fill, Owner, Purpose};
use crate::object::graph::plan::SharedConditions;
use crate::object::launch::Launch;
use crate::object::launch::run::KeptReport;
use crate::race;
use crate::result::Result;

/// The maximum number of reports that are kept and written. A kernel that continues after a fault can have one in every warp.
const MAX_REPORTS: usize = 1000;

impl Launch {
    /// Runs the kernel, in a graph with the values that it may set; a fault becomes the sticky code of the device.
    pub(crate) fn run(&self, driver: &Driver, conditions: Option<&SharedConditions>) -> Result {
        let kernel = self.resolved.kernel()?;
        activity::measured(
            || ActivityOperation::Kernel {
                name: &kernel.name,
                grid: self.shape.grid,
                block: self.shape.block,
            },
            || self.execute(driver, conditions),
        )
    }

    fn execute(&self, driver: &Driver, conditions: Option<&SharedConditions>) -> Result {
        let kernel = self.resolved.kernel()?;
        let host = Host::new(driver, self.context, kernel.runtime, conditions);
        let peers = driver.lock().peer_devices(self.context);
        let workspace = self
            .shape
            .is_cooperative
            .then(|| Workspace::new(driver, self))
            .flatten();
        let launch = exec::Launch {
            program: &self.resolved.code.program,
            kernel,
            grid: self.shape.grid,
            block: self.shape.block,
            cluster: self.shape.cluster,
            dynamic_shared: self.shape.dynamic_shared,
            params: &self.parameters,
            globals: &self.globals,
            memory: &driver
                .memory()
                .seen_by(self.device, peers)
                .watched_by(race::launch(&kernel.name)),
            runtime: &host,
            device: &driver.executor_model(),
            workers: driver.config().workers as usize,
            schedule: driver.block_order(),
            workspace: workspace.as_ref().map_or(0, |workspace| workspace.address),
            cancel: driver.canceled(),
            limits: driver.config().limits(),
        };
        let result = exec::run(&launch);
        host.flush();
        driver.write_repeats();
        let Err(fault) = result else { return Ok(()) };
        if driver.report_survivable(&fault) {
            return Ok(());
        }
        let code = report_code(&fault);
        driver.report(*fault, Persistence::Fatal);
        // Later calls return the sticky error before they wait.
        driver.flush_output();
        Err(code)
    }
}

/// The arrival counter of the blocks of a cooperative launch, after its size.
struct Workspace<'a> {
    pub(crate) driver: &'a Driver,
    address: u64,
}

impl<'a> Workspace<'a> {
    const WORDS: usize = 2;

    /// `None` if the allocation fails. The kernel then reads a null address, as in a launch that is not cooperative.
    fn new(driver: &'a Driver, launch: &Launch) -> Option<Self> {
        let owner = Owner {
            context: launch.context,
            device: launch.device,
        };
        let size = 4 * Self::WORDS as u64;
        let address = driver
            .memory()
            .allocate_on_device(size, owner, Purpose::Module)
            .ok()?;
        let workspace = Self { driver, address };
        driver
            .memory()
            .fill(
                address,
                Fill {
                    value: 0,
                    width: 4,
                    count: Self::WORDS,
                },
            )
            .ok()?;
        Some(workspace)
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        self.driver.memory().free(self.address);
    }
}

impl Driver {
    /// Returns the device properties that kernels can query.
    fn executor_model(&self) -> DeviceModel {
        use CUdevice_attribute as Attribute;

        DeviceModel {
            multiprocessors: self
                .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            clock_khz: self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            max_threads_per_block: self
                .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            max_shared_per_block: self
                .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        }
    }

    /// Returns the order of blocks: ascending for seed 0, shuffled for other seeds.
    fn block_order(&self) -> Schedule {
        match self.config().seed {
            0 => Schedule::InOrder,
            seed => Schedule::Shuffled(seed),
        }
    }

    /// Reports an error if the program continues after it: a warning, or any error with [`Checks::Report`]. Returns `true` if it does.
    pub(crate) fn report_survivable(&self, report: &Report) -> bool {
        let is_warning = report.severity() == Severity::Warning;
        let is_survivable = (is_warning || self.config().checks == Checks::Report)
            && report.kind != ReportKind::Cancelled;
        if is_survivable {
            self.report(report.clone(), Persistence::Survivable);
        }
        is_survivable
    }

    /// Reports the error of a copy or a fill, if any, and returns its code unless the program continues.
    pub(crate) fn handle_report(&self, fault: Option<Report>) -> Result {
        let Some(fault) = fault.filter(|fault| !self.report_survivable(fault)) else {
            return Ok(());
        };
        let code = report_code(&fault);
        self.report(fault, Persistence::Fatal);
        Err(code)
    }

    /// Stores a report, and writes it or aborts, depending on the settings.
    #[expect(
        clippy::print_stderr,
        reason = "a code does not identify the thread, and C has no other channel for the message"
    )]
    fn report(&self, mut report: Report, persistence: Persistence) {
        if let Some(conflict) = report.stream_race.as_ref().map(|race| race.conflict) {
            let described = self
                .lock()
                .schedule
                .races()
                .and_then(|races| races.describe(conflict));
            report.stream_race = described.map(Box::new);
        }
        if report.nearby.is_none() {
            report.nearby = report
                .access
                .and_then(|access| self.memory().nearby(access.address))
                .map(Box::new);
        }
        if persistence == Persistence::Fatal {
            // The error of the next call carries the report.
            self.log().add_report(&report);
        }
        let Some(number) = self.keep_report(&report, persistence) else {
            return;
        };
        let checks = self.config().checks;
        if report.kind == ReportKind::Cancelled || checks == Checks::Quiet {
            return;
        }
        eprintln!("curium-sim: {report:#}");
        if checks == Checks::Abort && report.severity() == Severity::Error {
            std::process::abort();
        }
        if number == MAX_REPORTS {
            eprintln!("curium-sim: {number} reports written; later ones are suppressed");
        }
    }

    /// Stores a report, and returns the number of reports; `None` above the maximum. A report of a program that continues is only counted
    /// if there is one of the same place.
    fn keep_report(&self, report: &Report, persistence: Persistence) -> Option<usize> {
        let reports = &mut self.lock().reports;
        if persistence == Persistence::Survivable
            && let Some(kept) = reports
                .iter_mut()
                .find(|kept| kept.report.has_same_place(report))
        {
            kept.report.count += 1;
            return None;
        }
        if reports.len() == MAX_REPORTS {
            return None;
        }
        reports.push(KeptReport {
            report: report.clone(),
            written: 1,
        });
        Some(reports.len())
    }

    /// Writes the numbers of reports that were only counted since the last call.
    #[expect(
        clippy::print_stderr,
        reason = "the reports themselves are written there"
    )]
    fn write_repeats(&self) {
        let mut lines = Vec::new();
        for KeptReport { report, written } in &mut self.lock().reports {
            let repeats = report.count - *written;
            if repeats > 0 {
                let first = report.first_line();
                lines.push(format!("curium-sim: {repeats} more of: {first}"));
                *written = report.count;
            }
        }
        if self.config().checks != Checks::Quiet {
            for line in lines {
                eprintln!("{line}");
            }
        }
    }
}

/// The effect of an error on the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Persistence {
    /// The program continues.
    Survivable,
    /// A call returns the code of the error.
    Fatal,
}

/// Returns the code that hardware returns for a fault.
fn report_code(fault: &Report) -> CUresult {
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
        | ReportKind::InvalidBarrier(_)
        | ReportKind::Uninitialized => CUresult::CUDA_ERROR_LAUNCH_FAILED,
        // A kind without a code of hardware here.
        _ => CUresult::CUDA_ERROR_UNKNOWN,
    }
}
