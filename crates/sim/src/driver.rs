//! The driver: one file per CUDA object, each with the C functions of that object as methods under their C names.
//!
//! A method receives the unchecked arguments of the C function, and returns `Ok` or the code. It checks handles and null pointers. The
//! steps that all calls have in common are in [`Driver::admit`].

mod array;
mod capture;
mod checkpoint;
mod context;
mod copy;
mod device;
mod device_memory;
mod error;
mod event;
mod function;
mod graph;
mod green;
mod host_function;
mod host_memory;
mod image;
mod initialization;
mod ipc;
mod ipc_event;
mod kernel;
mod launch;
mod library;
mod library_operation;
mod link;
mod live;
mod log;
mod managed;
mod memset;
mod module;
mod notification;
mod occupancy;
mod pointer;
mod pool;
mod print;
mod profiler;
mod residency;
mod resource;
mod retired;
mod state;
mod stream;
mod stream_attribute;
mod stream_memory_operation;
mod symbol;
mod tensor_map;
mod texture;
mod virtual_memory;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use curium_sys::CUresult;

pub(crate) use self::array::{Array, MipmappedArray};
pub(crate) use self::capture::{Capture, Captured};
pub(crate) use self::context::Context;
pub(crate) use self::error::{code_named, error_name};
pub(crate) use self::event::Event;
pub(crate) use self::function::Function;
pub(crate) use self::graph::{Executable, Graph, GraphMemory, Node, UserObject};
pub(crate) use self::host_function::HostFunction;
pub(crate) use self::kernel::Kernel;
pub(crate) use self::library::Library;
pub(crate) use self::link::Link;
pub(crate) use self::module::Module;
pub(crate) use self::notification::Listener;
pub(crate) use self::resource::{Descriptor, Resources};
pub(crate) use self::state::State;
pub(crate) use self::stream::Stream;
pub(crate) use self::texture::{Destroyed, Surface, Texture};
use crate::Error;
use crate::argument::Pointer;
use crate::config::Config;
use crate::fault::{Fault, PendingFaults};
use crate::live::LiveHandles;
use crate::lock::{Condvar, Mutex, MutexGuard, Rank};
use crate::memory::Memory;
use crate::summary::Summary;
use curium_ptx::exec;

/// The result of a C function: `Err` holds every code but success.
pub(crate) type Result<T = ()> = std::result::Result<T, CUresult>;

/// One driver with its state.
pub(crate) struct Driver {
    config: Config,
    slot: usize,
    /// The process that it was started in.
    #[cfg(all(feature = "export", target_os = "linux"))]
    process: u32,
    /// Distinguishes this driver from others that had the same slot.
    serial: u64,
    /// A reference to this driver for its worker threads.
    shared: Weak<Self>,
    initialized: AtomicBool,
    /// Boxed, because Miri visits each counter of a borrowed driver.
    counts: Box<[Counts]>,
    faults: Mutex<PendingFaults>,
    /// `true` if a fault may be pending: most drivers never have one.
    faulty: AtomicBool,
    state: Mutex<State>,
    /// `true` if a capture may have begun. Most calls skip the check for captures.
    capturing: AtomicBool,
    /// Signaled when work is queued, granted or completed.
    changed: Condvar,
    memory: Memory,
    threads: Mutex<Vec<JoinHandle<()>>>,
    log: log::Log,
    graph_memory: Mutex<GraphMemory>,
    printed: print::KernelOutput,
    /// Stops kernels when the driver ends.
    canceled: AtomicBool,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    unsupported: AtomicU64,
}

impl Driver {
    pub(crate) fn new(config: Config, slot: usize) -> std::result::Result<Arc<Self>, Error> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let memory = Memory::new(&config)?;
        let races = config.race_checks.then(Arc::default);
        Ok(Arc::new_cyclic(|shared| Self {
            slot,
            #[cfg(all(feature = "export", target_os = "linux"))]
            process: std::process::id(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            shared: Weak::clone(shared),
            initialized: AtomicBool::new(false),
            counts: curium_sys::Function::all()
                .map(|_| Counts::default())
                .collect(),
            faults: Mutex::new(Rank::Faults, PendingFaults::new(&config.faults)),
            faulty: AtomicBool::new(true),
            state: Mutex::new(Rank::State, State::new(&config, races)),
            capturing: AtomicBool::new(false),
            changed: Condvar::new(),
            memory,
            threads: Mutex::new(Rank::Threads, Vec::new()),
            log: log::Log::default(),
            graph_memory: Mutex::new(Rank::GraphMemory, GraphMemory::default()),
            printed: print::KernelOutput::default(),
            canceled: AtomicBool::new(false),
            config,
        }))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
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

    /// Returns a shared reference to this driver for its threads.
    pub(crate) fn shared(&self) -> Option<Arc<Self>> {
        self.shared.upgrade()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn changed(&self) -> &Condvar {
        &self.changed
    }

    pub(crate) fn canceled(&self) -> &AtomicBool {
        &self.canceled
    }

    /// Performs the first steps of every call: counts it, applies its faults, and fails before `cuInit` or on a thread that may not call
    /// the driver.
    pub(crate) fn admit(&self, function: curium_sys::Function) -> Result {
        self.counts[function.index()]
            .calls
            .fetch_add(1, Ordering::Relaxed);
        if let Some(code) = self.fault(function) {
            return Err(code);
        }
        if host_function::is_running_here() {
            return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
        }
        self.expect_initialized(function)?;
        if self.capturing.load(Ordering::Acquire) {
            self.admit_among_captures(function)
        } else {
            Ok(())
        }
    }

    /// Applies the faults of a call. Returns the code that the call returns instead of running.
    fn fault(&self, function: curium_sys::Function) -> Option<CUresult> {
        if !self.faulty.load(Ordering::Acquire) {
            return None;
        }
        let met = self.faults().apply(function);
        if !met.delay.is_zero() {
            std::thread::sleep(met.delay);
        }
        if met.loses_devices {
            self.lock().lose_devices();
        }
        met.result
    }

    pub(crate) fn count_unsupported(&self, function: curium_sys::Function) {
        self.counts[function.index()]
            .unsupported
            .fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self, function: curium_sys::Function) -> u64 {
        self.counts[function.index()].calls.load(Ordering::Relaxed)
    }

    /// Returns the summary of the program so far.
    pub(crate) fn summary(&self) -> Summary {
        let called = curium_sys::Function::all().map(|function| (function, self.calls(function)));
        Summary {
            calls: called.filter(|(_, calls)| *calls > 0).collect(),
            unsupported: self.unsupported_calls(),
            failures: self.log.failures(),
            reports: self.reports(),
            live: self.live_handles(),
            live_objects: self.live_objects(),
        }
    }

    pub(crate) fn unsupported_calls(&self) -> Vec<(curium_sys::Function, u64)> {
        let counted = curium_sys::Function::all()
            .map(|function| (function, &self.counts[function.index()].unsupported));
        counted
            .map(|(function, calls)| (function, calls.load(Ordering::Relaxed)))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.faults().add(fault);
        self.faulty.store(true, Ordering::Release);
    }

    pub(crate) fn clear_faults(&self) {
        self.faults().clear();
        self.faulty.store(false, Ordering::Release);
    }

    fn faults(&self) -> MutexGuard<'_, PendingFaults> {
        self.faults.lock()
    }

    pub(crate) fn reports(&self) -> Vec<exec::Report> {
        let state = self.lock();
        state
            .reports
            .iter()
            .map(|kept| kept.report.clone())
            .collect()
    }

    pub(crate) fn reset_errors(&self) {
        self.lock().clear_sticky();
    }

    pub(crate) fn live_handles(&self) -> LiveHandles {
        let mut live = LiveHandles::default();
        self.lock().count_live(&mut live);
        self.memory.count_live(&mut live);
        live.listeners += self.log.listeners();
        live
    }

    pub(crate) fn register_thread(&self, thread: JoinHandle<()>) {
        self.threads.lock().push(thread);
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
        self.flush_output();
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuInit(&self, flags: u32) -> Result {
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if self.config.devices == 0 {
            return Err(CUresult::CUDA_ERROR_NO_DEVICE);
        }
        self.initialized.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn cuDriverGetVersion(&self, version: Pointer<i32>) -> Result {
        version.write(self.config.driver_version.as_raw().cast_signed())
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Driver")
            .field("slot", &self.slot)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
