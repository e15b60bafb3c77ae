//! The driver: its state, the schedule of queued work, and the operations that the C functions
//! share.
//!
//! The C functions are in [`call`](crate::call), and the types of the objects in
//! [`context`](crate::context) and [`object`](crate::object).

pub(crate) mod activity;
pub(crate) mod call_counts;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod faults;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod initialization;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod library_operation;
pub(crate) mod link;
pub(crate) mod live;
pub(crate) mod locked;
pub(crate) mod managed;
pub(crate) mod memset;
pub(crate) mod module;
pub(crate) mod notification;
pub(crate) mod occupancy;
pub(crate) mod pool;
pub(crate) mod resource;
pub(crate) mod schedule;
pub(crate) mod state;
pub(crate) mod stream_memory_operation;
pub(crate) mod texture;
pub(crate) mod virtual_memory;

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use curium_ptx::exec;
use curium_sys::{CUresult, Function};

use crate::config::Config;
use crate::driver::call_counts::CallCounts;
use crate::driver::context::stack::ThreadState;
use crate::driver::copy::Operands;
use crate::driver::device::Devices;
use crate::driver::faults::Faults;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::error::Error;
use crate::host_function;
use crate::kernel_output::KernelOutput;
use crate::live::LiveHandles;
use crate::lock::{Condvar, Mutex, Rank};
use crate::log::Log;
use crate::memory::Memory;
use crate::object::graph::memory::GraphMemory;
use crate::race::Races;
use crate::report::Reports;
use crate::result::Result;
use crate::summary::Summary;

/// Returns the address of a function of the driver in a slot, or of its variant for the per-thread
/// default stream, if requested and if there is one.
pub(crate) type EntryPoint =
    fn(slot: usize, function: Function, is_per_thread: bool) -> *const c_void;

/// One driver with its state.
pub(crate) struct Driver {
    config: Config,
    entry_point: EntryPoint,
    /// The slot and a serial number, which distinguishes this driver from others that had the same
    /// slot.
    thread: ThreadState,
    /// The process that it was started in.
    #[cfg(all(feature = "export", target_os = "linux"))]
    process: u32,
    /// A reference to this driver for its worker threads.
    shared: Weak<Self>,
    initialized: AtomicBool,
    counts: CallCounts,
    faults: Faults,
    state: Mutex<State>,
    /// `true` if a capture may have begun. Most calls skip the check for captures.
    capturing: AtomicBool,
    /// Signaled when work is queued, granted or completed.
    changed: Condvar,
    memory: Memory,
    threads: Mutex<Vec<JoinHandle<()>>>,
    log: Log,
    reports: Reports,
    /// The race checker, if race checks are on.
    races: Option<Arc<Races>>,
    graph_memory: Mutex<GraphMemory>,
    printed: KernelOutput,
    /// Stops kernels when the driver ends.
    canceled: AtomicBool,
}

impl Driver {
    pub(crate) fn new(
        config: Config,
        slot: usize,
        entry_point: EntryPoint,
    ) -> std::result::Result<Arc<Self>, Error> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let memory = Memory::new(&config)?;
        let races: Option<Arc<Races>> = config.race_checks.then(Arc::default);
        Ok(Arc::new_cyclic(|shared| Self {
            entry_point,
            thread: ThreadState {
                slot,
                serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            },
            #[cfg(all(feature = "export", target_os = "linux"))]
            process: std::process::id(),
            shared: Weak::clone(shared),
            initialized: AtomicBool::new(false),
            counts: CallCounts::new(),
            faults: Faults::new(&config.faults),
            state: Mutex::new(Rank::State, State::new(&config, races.clone())),
            capturing: AtomicBool::new(false),
            changed: Condvar::new(),
            memory,
            threads: Mutex::new(Rank::Threads, Vec::new()),
            log: Log::default(),
            reports: Reports::new(config.checks),
            races,
            graph_memory: Mutex::new(Rank::GraphMemory, GraphMemory::default()),
            printed: KernelOutput::default(),
            canceled: AtomicBool::new(false),
            config,
        }))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn devices(&self) -> Devices<'_> {
        Devices {
            config: &self.config,
        }
    }

    pub(crate) fn operands(&self) -> Operands<'_> {
        Operands {
            memory: &self.memory,
        }
    }

    /// Returns the address of a function of this driver, or of its variant for the per-thread
    /// default stream, if requested and if there is one.
    pub(crate) fn function_address(
        &self,
        function: Function,
        is_per_thread: bool,
    ) -> *const c_void {
        (self.entry_point)(self.thread.slot, function, is_per_thread)
    }

    pub(crate) fn thread(&self) -> ThreadState {
        self.thread
    }

    /// Lets other calls than `cuInit` through.
    pub(crate) fn initialize(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// Returns the process that the driver was started in; another one is a child of a fork.
    #[cfg(all(feature = "export", target_os = "linux"))]
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn output(&self) -> &KernelOutput {
        &self.printed
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns a shared reference to this driver for its threads.
    pub(crate) fn shared(&self) -> Option<Arc<Self>> {
        self.shared.upgrade()
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked::new(self, self.state.lock())
    }

    pub(crate) fn changed(&self) -> &Condvar {
        &self.changed
    }

    /// Makes calls check for captures, or skip the check.
    pub(crate) fn set_capturing(&self, is_capturing: bool) {
        self.capturing.store(is_capturing, Ordering::Release);
    }

    pub(crate) fn canceled(&self) -> &AtomicBool {
        &self.canceled
    }

    /// Performs the first steps of every call: counts it, applies its faults, and fails before
    /// `cuInit` or on a thread that may not call the driver.
    pub(crate) fn admit(&self, function: Function) -> Result {
        self.counts.add(function);
        if let Some(code) = self.fault(function) {
            return Err(code);
        }
        if host_function::is_running_here() {
            return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
        }
        self.check_initialized(function)?;
        if self.capturing.load(Ordering::Acquire) {
            self.admit_among_captures(function)
        } else {
            Ok(())
        }
    }

    /// Applies the faults of a call. Returns the code that the call returns instead of running.
    fn fault(&self, function: Function) -> Option<CUresult> {
        let met = self.faults.apply(function)?;
        if !met.delay.is_zero() {
            std::thread::sleep(met.delay);
        }
        if met.loses_devices {
            self.lock().contexts.lose_devices();
        }
        met.result
    }

    pub(crate) fn counts(&self) -> &CallCounts {
        &self.counts
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the summary of the program so far.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            calls: self.counts.called(),
            unsupported: self.counts.unsupported(),
            failures: self.log.failures(),
            reports: self.reports(),
            live: self.live_handles(),
            live_objects: self.live_objects(),
        }
    }

    pub(crate) fn reports(&self) -> Vec<exec::Report> {
        self.reports.all()
    }

    pub(crate) fn live_handles(&self) -> LiveHandles {
        let mut live = LiveHandles::default();
        self.lock().count_live(&mut live);
        self.memory.count_live(&mut live);
        live.listeners += self.log.listeners();
        live
    }

    /// Ends the driver: queued work is dropped, and running work is waited for.
    pub(crate) fn shut_down(&self) {
        self.canceled.store(true, Ordering::Release);
        self.lock().schedule.close();
        self.changed.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // Threads of the simulator report their panics when they happen.
            thread.join().unwrap_or_default();
        }
        self.printed.flush();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Driver")
            .field("slot", &self.thread.slot)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
