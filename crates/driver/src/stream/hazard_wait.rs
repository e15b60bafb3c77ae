//! The waits that hazard tracking inserts, as observers and `tracing` receive them.

use curium_sys::CUdeviceptr;

use crate::base::hook::{Installed, ObserverGuard, Observers};
use crate::{Stream, emit_event};

/// A wait that hazard tracking has inserted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HazardWait<'a> {
    /// The stream that waits.
    pub waiting_stream: &'a Stream,
    /// The stream whose work it waits for.
    pub stream: &'a Stream,
    /// The address of the memory that both access.
    pub address: u64,
    /// The size of the memory in bytes.
    pub bytes: u64,
    /// The hazard: `RAW`, `WAR` or `WAW`.
    pub hazard: &'static str,
}

/// The reason why one stream waits for another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hazard {
    /// `RAW`, `WAR` or `WAW`.
    name: &'static str,
    memory: Memory,
}

/// The address and size of memory, for reports. All 0 if it has no address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) address: CUdeviceptr,
    pub(crate) bytes: usize,
}

static OBSERVERS: Observers<dyn Fn(&HazardWait<'_>) + Send + Sync> = Observers::new();

/// Registers an observer for every wait that hazard tracking inserts in this process, in addition
/// to existing ones.
///
/// The observer runs on the thread whose access waits. As for
/// [`observe_calls`](crate::observe_calls), it must be quick and must not wait for other threads,
/// its panics are caught, and nothing that it does is observed.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use curium_driver::hazard::Accesses;
/// use curium_driver::{HazardWait, observe_hazard_waits};
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let context = driver.device(0)?.primary_context()?;
///
/// let bytes = Arc::new(AtomicU64::new(0));
/// let counter = Arc::clone(&bytes);
/// let guard = observe_hazard_waits(move |wait: &HazardWait<'_>| {
///     counter.fetch_add(wait.bytes, Ordering::Relaxed);
/// });
/// let accesses = Accesses::allocated(&context.stream()?).at(0x1000, 256);
/// let other = context.stream()?;
/// accesses.before_read(&mut other.enqueue("read")?)?; // waits for the allocation
/// drop(guard);
/// assert_eq!(bytes.load(Ordering::Relaxed), 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn observe_hazard_waits(
    observer: impl Fn(&HazardWait<'_>) + Send + Sync + 'static,
) -> ObserverGuard {
    OBSERVERS.install(Installed::new(observer), |identity| {
        OBSERVERS.remove(identity);
    })
}

impl Hazard {
    /// Returns the hazard of two accesses to `memory`, one of which writes.
    pub(crate) fn between(is_earlier_write: bool, is_write: bool, memory: Memory) -> Self {
        let name = match (is_earlier_write, is_write) {
            (_, false) => "RAW",
            (false, true) => "WAR",
            (true, true) => "WAW",
        };
        Self { name, memory }
    }

    /// Reports that `waiting` now waits for `stream`.
    pub(crate) fn report(self, waiting: &Stream, stream: &Stream) {
        let Memory { address, bytes } = self.memory;
        let wait = HazardWait {
            waiting_stream: waiting,
            stream,
            address,
            bytes: bytes as u64,
            hazard: self.name,
        };
        OBSERVERS.notify(|observer| observer(&wait));
        emit_event!(
            target: "curium_driver::hazard",
            TRACE,
            address = format_args!("{address:#x}"),
            bytes,
            waiting_stream = ?waiting,
            stream = ?stream,
            hazard = %self.name,
            "hazard wait"
        );
    }
}
