//! The settings of a simulator.

mod environment;
mod model;
mod platform;

use std::num::NonZero;
use std::thread;
use std::time::Duration;

use curium_ptx::exec::Limits;
use curium_sys::{CUdevice_attribute, CUmemAllocationHandleType, CudaVersion, Function};

pub use self::environment::EnvironmentError;
pub use self::platform::Platform;
use crate::fault::FaultPlan;

/// The maximum number of live drivers, including the exported one.
pub(crate) const MAX_DRIVERS: usize = 32;

/// `true` if memory is in memory files, which the host and other processes can map at other
/// addresses.
pub(crate) const SHARES_MEMORY: bool = cfg!(all(target_os = "linux", not(miri)));

/// `true` if the mappings of the host process can be looked up by address.
pub(crate) const FINDS_HOST_MEMORY: bool = cfg!(all(target_os = "linux", not(miri)));

/// The settings of a [`Simulator`](crate::Simulator).
///
/// ```
/// use curium_sim::Config;
/// use curium_sys::{CudaVersion, Function};
///
/// let config = Config::new()
///     .with_devices(2)
///     .with_memory_budget(1 << 30)
///     .with_driver_version(CudaVersion::new(12, 4))
///     .without(Function::cuMemAllocAsync);
/// # let _ = config;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The number of devices. Default: 1.
    pub devices: u32,
    /// The hardware model of each device. Default: [`DeviceModel::H100`].
    pub device_model: DeviceModel,
    /// The memory of each device in bytes. Default: that of the device model.
    pub memory_budget: u64,
    /// The CUDA version of the driver; newer functions are missing. Default:
    /// [`CudaVersion::NEWEST_KNOWN`].
    pub driver_version: CudaVersion,
    /// The seed that selects the order of independent streams.
    pub seed: u64,
    /// The number of threads that execute the work of the streams, and of threads that execute the
    /// blocks of a kernel. Default: the number of processors.
    ///
    /// With one worker, equal calls by one host thread with the same seed run in the same order,
    /// unless the host pauses for 200 ms between two of them.
    pub workers: u32,
    /// Injected faults.
    pub faults: FaultPlan,
    /// Functions that are missing regardless of the driver's version.
    pub missing: Vec<Function>,
    /// The reaction to an invalid access of a kernel. Default: [`Checks::Error`].
    pub checks: Checks,
    /// `true` if races are checked, within warps, blocks and launches and between streams, and
    /// barriers for divergent warps. Default: `false`, because accesses then take longer.
    pub race_checks: bool,
    /// `true` if kernels that use uninitialized memory are stopped. Default: `false`, because every
    /// access then takes longer.
    pub uninitialized_checks: bool,
    /// The operating system whose driver is simulated. Default: [`Platform::Linux`].
    pub platform: Platform,
    /// `true` if the host may access managed memory while a device works, on a platform and a
    /// device model that allow it. Default: `true`.
    pub concurrent_managed_access: bool,
    /// The maximum number of instructions that the warps of a launch execute; `None` without a
    /// limit. Default: `None`, and 10 billion in [`test()`](crate::test()).
    pub instruction_limit: Option<u64>,
    /// The maximum time of a launch, and of a stream that waits for a value in memory; `None`
    /// without a limit. Default: `None`, and 120 s in [`test()`](crate::test()).
    pub time_limit: Option<Duration>,
    /// `true` if the call stack that created each object is recorded. Default: `false`, because
    /// such calls then take much longer.
    pub backtraces: bool,
}

/// The consequence of a [`Report`](crate::Report) of [`Severity::Error`](crate::Severity::Error):
/// an access out of bounds or misaligned, a trap, a failed assertion, or an error that an optional
/// check found.
///
/// [`Simulator::reports`](crate::Simulator::reports) returns the reports in any case. At most a
/// thousand are kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Checks {
    /// The launch fails with the sticky code that hardware returns, and the report is written to
    /// stderr.
    #[default]
    Error,
    /// The launch fails in the same way, and nothing is written.
    Quiet,
    /// The report is written to stderr, and the program continues. The faulting threads end, with
    /// the threads of their warp that execute with them. All others finish, so one run reports
    /// every error. A kernel that waits for an ended thread is stopped, but the program continues.
    /// A load of uninitialized memory ends no thread.
    Report,
    /// The report is written to stderr, and the process aborts: a debugger or a core file shows the
    /// host's stack.
    Abort,
}

/// The hardware model of a simulated device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum DeviceModel {
    /// An inference GPU of compute capability 7.5: 40 multiprocessors and 14.6 GiB.
    T4,
    /// A data-center GPU of compute capability 8.0: 108 multiprocessors and 79 GiB.
    A100,
    /// A GeForce RTX 3090, of compute capability 8.6: 82 multiprocessors and 23.7 GiB. It has no
    /// access to other devices.
    Rtx3090,
    /// An inference GPU of compute capability 8.6: 72 multiprocessors and 22.2 GiB.
    A10,
    /// A GeForce RTX 4090, of compute capability 8.9: 128 multiprocessors and 23.6 GiB. It has no
    /// access to other devices.
    Rtx4090,
    /// An inference GPU of compute capability 8.9: 58 multiprocessors and 22 GiB.
    L4,
    /// A data-center GPU of compute capability 8.9: 142 multiprocessors and 44.5 GiB.
    L40S,
    /// A data-center GPU of compute capability 9.0: 132 multiprocessors and 79 GiB.
    #[default]
    H100,
    /// A data-center GPU of compute capability 10.0: 148 multiprocessors and 178 GiB.
    B200,
    /// The integrated GPU of a Jetson AGX Orin (64 GB), of compute capability 8.7: 16
    /// multiprocessors and the 61 GiB of the host. It has no concurrent managed access.
    Orin,
    /// The GPU of a Grace Hopper superchip, of compute capability 9.0: 132 multiprocessors and 95
    /// GiB. Its kernels access all memory of the host, pageable memory included.
    GH200,
    /// The integrated GPU of a Jetson AGX Thor, of compute capability 11.0: 20 multiprocessors and
    /// the 123 GiB of the host. Its kernels access all memory of the host, pageable memory
    /// included.
    Thor,
    /// A GeForce RTX 5090, of compute capability 12.0: 170 multiprocessors and 31.4 GiB. It has no
    /// access to other devices.
    Rtx5090,
    /// A workstation GPU of compute capability 12.0, the RTX PRO 6000 Blackwell: 188
    /// multiprocessors and 95 GiB.
    RtxPro6000,
    /// The integrated GPU of a DGX Spark, of compute capability 12.1: 48 multiprocessors and the
    /// 120 GiB of the host. Its kernels access all memory of the host, pageable memory included.
    GB10,
}

impl Config {
    /// Creates the default settings.
    #[must_use]
    pub fn new() -> Self {
        Self {
            devices: 1,
            device_model: DeviceModel::H100,
            memory_budget: DeviceModel::H100.memory(),
            driver_version: CudaVersion::NEWEST_KNOWN,
            seed: 0,
            workers: thread::available_parallelism()
                .map_or(1, NonZero::get)
                .min(64) as u32,
            faults: FaultPlan::new(),
            missing: Vec::new(),
            checks: Checks::Error,
            race_checks: false,
            uninitialized_checks: false,
            platform: Platform::Linux,
            concurrent_managed_access: true,
            instruction_limit: None,
            time_limit: None,
            backtraces: false,
        }
    }

    /// Sets the number of devices; with none, `cuInit` returns `CUDA_ERROR_NO_DEVICE`.
    #[must_use]
    pub const fn with_devices(mut self, devices: u32) -> Self {
        self.devices = devices;
        self
    }

    /// Sets the model of the devices, and their memory to that of the model.
    #[must_use]
    pub const fn with_device_model(mut self, model: DeviceModel) -> Self {
        self.device_model = model;
        self.memory_budget = model.memory();
        self
    }

    /// Sets the memory of each device in bytes.
    #[must_use]
    pub const fn with_memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Sets the CUDA version of the driver.
    #[must_use]
    pub const fn with_driver_version(mut self, version: CudaVersion) -> Self {
        self.driver_version = version;
        self
    }

    /// Sets the seed that selects the order of independent streams.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of worker threads, at least one.
    #[must_use]
    pub const fn with_workers(mut self, workers: u32) -> Self {
        self.workers = if workers == 0 { 1 } else { workers };
        self
    }

    /// Sets the faults that are injected from the start.
    #[must_use]
    pub fn with_faults(mut self, faults: FaultPlan) -> Self {
        self.faults = faults;
        self
    }

    /// Sets the reaction to invalid accesses of kernels.
    #[must_use]
    pub const fn with_checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Fails launches and copies with `CUDA_ERROR_LAUNCH_FAILED` at a race, regardless of the order
    /// in which the two accesses ran:
    ///
    /// - two threads of a block access the same shared memory, one of them writes, and no barrier
    ///   orders them;
    /// - two warps of a launch access the same device memory, one of them writes, and no barrier of
    ///   their block or fence orders them;
    /// - two launches, copies or fills access the same memory, one of them writes, and no stream,
    ///   event, graph edge or wait of the host orders them;
    /// - the host changes pinned or managed memory while a copy that uses it is queued.
    ///
    /// Racing threads of a launch that store the same value are reported as a
    /// [`Warning`](crate::Severity::Warning), and the launch succeeds.
    /// [`Simulator::reports`](crate::Simulator::reports) names both sides. Accesses that may be
    /// ordered are not reported, so a race next to a fence, a host function or a value that a
    /// stream waits for may be missed.
    #[must_use]
    pub const fn with_race_checks(mut self, race_checks: bool) -> Self {
        self.race_checks = race_checks;
        self
    }

    /// Stops kernels that use an uninitialized byte of device, shared or local memory: in an
    /// address, a branch, an atomic or a store to device memory. A value that is loaded and
    /// discarded is no error. The launch then fails with `CUDA_ERROR_LAUNCH_FAILED`, and
    /// [`Simulator::reports`](crate::Simulator::reports) names the thread, the address, the
    /// allocation and the load.
    ///
    /// Copies between allocations copy the state of the bytes. Copies to the host are not checked.
    /// Pinned, managed, registered and imported memory, exportable memory, arrays, and variables of
    /// modules count as initialized.
    #[doc(alias = "initcheck")]
    #[must_use]
    pub const fn with_uninitialized_checks(mut self, uninitialized_checks: bool) -> Self {
        self.uninitialized_checks = uninitialized_checks;
        self
    }

    /// Sets the operating system of the simulated driver, which determines capabilities of the
    /// devices.
    ///
    /// ```
    /// use curium_driver::{DeviceAttribute, Driver};
    /// use curium_sim::{Config, Platform, Simulator};
    ///
    /// let simulator = Simulator::new(Config::new().with_platform(Platform::Windows))?;
    /// let device = simulator.driver::<Driver>()?.device(0)?;
    /// assert!(!device.attribute(DeviceAttribute::CONCURRENT_MANAGED_ACCESS)?);
    /// assert!(device.attribute(DeviceAttribute::KERNEL_EXEC_TIMEOUT)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "WDDM")]
    #[must_use]
    pub const fn with_platform(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// Sets whether the host may access managed memory while a device works, as the device
    /// attribute `CONCURRENT_MANAGED_ACCESS` reports.
    ///
    /// With `false`, managed memory cannot be prefetched to a device either. [`Platform::Windows`],
    /// [`Platform::Wsl`] and [`DeviceModel::Orin`] imply it.
    #[doc(alias = "CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS")]
    #[must_use]
    pub const fn with_concurrent_managed_access(mut self, is_concurrent: bool) -> Self {
        self.concurrent_managed_access = is_concurrent;
        self
    }

    /// Ends launches whose warps execute more instructions, such as endless loops, with
    /// `CUDA_ERROR_LAUNCH_TIMEOUT` and a report of the positions of the threads. The result does
    /// not depend on the speed of the host.
    #[must_use]
    pub const fn with_instruction_limit(mut self, instructions: u64) -> Self {
        self.instruction_limit = Some(instructions);
        self
    }

    /// Ends launches that run longer, and streams that wait longer for a value in memory
    /// (`cuStreamWaitValue32`) while no work runs, with `CUDA_ERROR_LAUNCH_TIMEOUT` and a report.
    #[must_use]
    pub const fn with_time_limit(mut self, time: Duration) -> Self {
        self.time_limit = Some(time);
        self
    }

    /// Records the call stack that created each object:
    /// [`Simulator::live_objects`](crate::Simulator::live_objects) and the
    /// [`Summary`](crate::Summary) then report where a leaked object was created.
    #[must_use]
    pub const fn with_backtraces(mut self, backtraces: bool) -> Self {
        self.backtraces = backtraces;
        self
    }

    /// Removes `function`, as on an older driver.
    #[must_use]
    pub fn without(mut self, function: Function) -> Self {
        self.missing.push(function);
        self
    }

    /// Returns `true` if the host may access managed memory while a device works.
    pub(crate) fn has_concurrent_managed_access(&self) -> bool {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
        self.concurrent_managed_access
            && !self.platform.is_windows()
            && self.device_model.attribute_value(attribute) != 0
    }

    /// Returns `true` if kernels may access pageable host memory.
    pub(crate) fn has_pageable_memory_access(&self) -> bool {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
        FINDS_HOST_MEMORY
            && !self.platform.is_windows()
            && self.device_model.attribute_value(attribute) != 0
    }

    /// Returns `true` if devices may access each other's memory.
    pub(crate) fn has_peers(&self) -> bool {
        !self.platform.is_windows() && self.device_model.has_peers()
    }

    /// Returns the mask of the handle types by which memory is shared: file descriptors, or none.
    pub(crate) fn handle_types(&self) -> u32 {
        let has_descriptors = SHARES_MEMORY && !self.platform.is_windows();
        if has_descriptors {
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0
        } else {
            0
        }
    }

    /// Returns the budget of a launch.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            instructions: self.instruction_limit,
            time: self.time_limit,
        }
    }

    /// Returns `true` if a driver with these settings has `function`.
    pub(crate) fn has(&self, function: Function) -> bool {
        function.since() <= self.driver_version && !self.missing.contains(&function)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
