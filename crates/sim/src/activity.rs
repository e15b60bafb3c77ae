//! Activities: completed operations of simulated devices, for profilers.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::lock::{Rank, RwLock};

/// A completed operation. See [`observe_activities`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Activity<'a> {
    /// The operation.
    pub operation: ActivityOperation<'a>,
    /// The ordinal of the device.
    pub device: usize,
    /// The number of the context, which `cuCtxGetId` returns.
    pub context: u64,
    /// The number of the stream, which `cuStreamGetId` returns; 0 for calls that use no stream.
    pub stream: u64,
    /// The number of the node for operations of a graph.
    pub graph_node: Option<u64>,
    /// The start.
    pub start: Instant,
    /// The end.
    pub end: Instant,
}

/// The operation of an [`Activity`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ActivityOperation<'a> {
    /// A kernel, or an operation of a simulated library.
    Kernel {
        /// The name.
        name: &'a str,
        /// The number of blocks in each dimension.
        grid: [u32; 3],
        /// The number of threads of a block in each dimension.
        block: [u32; 3],
    },
    /// A copy.
    Copy {
        /// The kind of the source.
        from: ActivityMemory,
        /// The kind of the destination.
        to: ActivityMemory,
        /// The number of bytes.
        bytes: u64,
    },
    /// A fill.
    Set {
        /// The number of bytes.
        bytes: u64,
    },
    /// A wait of a stream for an event, from the start to the end of the call.
    Wait,
    /// An allocation.
    Allocation {
        /// The address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
        /// The kind of memory.
        memory: ActivityMemory,
    },
    /// A deallocation.
    Free {
        /// The address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
        /// The kind of memory.
        memory: ActivityMemory,
    },
}

/// The kind of memory of an operand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ActivityMemory {
    /// Pageable host memory.
    Pageable,
    /// Pinned host memory.
    Pinned,
    /// Device memory.
    Device,
    /// Managed memory.
    Managed,
}

/// The stream on which the calling thread runs an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) device: usize,
    pub(crate) context: u64,
    pub(crate) stream: u64,
}

/// A change of the allocated memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryChange {
    Allocated,
    Freed,
}

/// The callback for activities.
type Observer = dyn Fn(&Activity<'_>) + Send + Sync;

static OBSERVER: RwLock<Option<Arc<Observer>>> = RwLock::new(Rank::ActivityObserver, None);
static IS_OBSERVED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LOCATION: Cell<Option<Location>> = const { Cell::new(None) };
    static GRAPH_NODE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Calls `observer` with each activity of every simulator of this process when it completes,
/// instead of the previous observer. [`None`] removes it.
///
/// The callback runs on the thread that performed the operation, possibly with a lock of the
/// simulator held: it must not call the driver. The simulated CUPTI of `curium-sim-libraries` is
/// built on it, and replaces the observer while a profiler is attached.
pub fn observe_activities(observer: Option<Arc<Observer>>) {
    IS_OBSERVED.store(observer.is_some(), Ordering::Release);
    // A previous observer must not be dropped with the lock held.
    let previous = std::mem::replace(&mut *OBSERVER.write(), observer);
    drop(previous);
}

#[inline]
pub(crate) fn is_observed() -> bool {
    IS_OBSERVED.load(Ordering::Acquire)
}

/// Runs the work of a stream.
pub(crate) fn on_stream<T>(location: Option<Location>, work: impl FnOnce() -> T) -> T {
    let outer = LOCATION.replace(location);
    let value = work();
    LOCATION.set(outer);
    value
}

/// Runs the work of a node of a graph.
pub(crate) fn in_node<T>(number: u32, work: impl FnOnce() -> T) -> T {
    let outer = GRAPH_NODE.replace(Some(number.into()));
    let value = work();
    GRAPH_NODE.set(outer);
    value
}

/// Runs an operation, and reports it if it succeeds on a stream of an observed simulator.
pub(crate) fn measured<'a, E>(
    operation: impl FnOnce() -> ActivityOperation<'a>,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let Some(location) = LOCATION.get() else {
        return work();
    };
    let start = Instant::now();
    work()?;
    report(location, start, Instant::now(), operation());
    Ok(())
}

/// Reports an operation.
pub(crate) fn report(
    location: Location,
    start: Instant,
    end: Instant,
    operation: ActivityOperation<'_>,
) {
    let Some(observer) = OBSERVER.read().clone() else {
        return;
    };
    observer(&Activity {
        operation,
        device: location.device,
        context: location.context,
        stream: location.stream,
        graph_node: GRAPH_NODE.get(),
        start,
        end,
    });
}
