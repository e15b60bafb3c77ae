//! Execution of a launch.

use curium_ptx::exec::{self, DeviceModel, Report, Schedule};
use curium_sys::CUdevice_attribute;

use crate::activity::{self, ActivityOperation};
use crate::driver::Driver;
use crate::driver::device::Devices;
use crate::driver::launch::runtime::Host;
use crate::memory::{Fill, Owner, Purpose};
use crate::object::graph::plan::SharedConditions;
use crate::object::launch::Launch;
use crate::race;
use crate::report::{self, Persistence};
use crate::result::Result;

impl Launch {
    /// Runs the kernel, in a graph with the values that it may set; a fault becomes the sticky code
    /// of the device.
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
        let peers = driver.lock().contexts.peer_devices(self.context);
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
            device: &driver.devices().executor_model(),
            workers: driver.config().workers as usize,
            schedule: driver.block_order(),
            workspace: workspace.as_ref().map_or(0, |workspace| workspace.address),
            cancel: driver.canceled(),
            limits: driver.config().limits(),
        };
        let result = exec::run(&launch);
        host.flush();
        driver.reports.write_repeats();
        let Err(fault) = result else { return Ok(()) };
        if driver.report_survivable(&fault) {
            return Ok(());
        }
        let code = report::code(&fault);
        driver.report(*fault, Persistence::Fatal);
        // Later calls return the sticky error before they wait.
        driver.output().flush();
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

    /// `None` if the allocation fails. The kernel then reads a null address, as in a launch that is
    /// not cooperative.
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

impl Devices<'_> {
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
}

impl Driver {
    /// Returns the order of blocks: ascending for seed 0, shuffled for other seeds.
    fn block_order(&self) -> Schedule {
        match self.config().seed {
            0 => Schedule::InOrder,
            seed => Schedule::Shuffled(seed),
        }
    }

    /// Reports an error if the program continues after it: a warning, or any error with
    /// [`Checks::Report`]. Returns `true` if it does.
    pub(crate) fn report_survivable(&self, report: &Report) -> bool {
        let is_survivable = self.reports.are_survivable(report);
        if is_survivable {
            self.report(report.clone(), Persistence::Survivable);
        }
        is_survivable
    }

    /// Reports the error of a copy or a fill, if any, and returns its code unless the program
    /// continues.
    pub(crate) fn handle_report(&self, fault: Option<Report>) -> Result {
        let Some(fault) = fault.filter(|fault| !self.report_survivable(fault)) else {
            return Ok(());
        };
        let code = report::code(&fault);
        self.report(fault, Persistence::Fatal);
        Err(code)
    }

    /// Adds what only the driver knows to a report, and stores it.
    fn report(&self, mut report: Report, persistence: Persistence) {
        if let Some(conflict) = report.stream_race.as_ref().map(|race| race.conflict) {
            let races = self.races.as_ref();
            let described = races.and_then(|races| races.describe(conflict));
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
        self.reports.add(&report, persistence);
    }
}
