//! Diagnostics for programs that use CUDA.
//!
//! | Task | Items |
//! |---|---|
//! | Record driver calls and device work, aggregate and draw them, write them for trace viewers | [`Trace`], [`Timeline`] |
//! | Name ranges in a profiler's timeline, restrict what it records | [`NvtxRange`], [`nvtx_mark`], [`Profiling`] |
//! | Write GPU core dumps when a kernel fails | `CoreDump`, `CoreDumpListener` (Unix) |
//! | Suspend and restore a process | [`CheckpointProcess`], [`ProcessState`] |
//! | Record, analyze and replay allocations | [`AllocationRecorder`], [`AllocationLog`] |
//! | Write a file for PyTorch's memory viewer | [`Snapshot`] |
//!
//! Calls are observed with [`curium_driver::observe_calls`], and allocations with a
//! [`Resource`](curium_memory::Resource) that wraps another one. A program that uses neither costs
//! what it costs without this crate. Every program that uses `curium-driver` writes its driver
//! calls to the file that the environment variable `CURIUM_TRACE` names, also without this crate.
//!
//! # Features
//!
//! Neither is on by default.
//!
//! - `tracing`: `Trace::layer`, which adds the spans of `tracing` to a timeline.
//! - `injection`: exports the function that the driver calls in a library named by
//!   `CUDA_INJECTION64_PATH`.
//!
//! # Example
//!
//! ```
//! use curium_diagnostics::{AllocationLog, AllocationRecorder};
//! use curium_driver::Driver;
//! use curium_memory::{DeviceBuffer, StreamOrdered};
//!
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
//! # /*
//! let driver = Driver::load()?;
//! # */
//! let stream = driver.device(0)?.primary_context()?.stream()?;
//! let resource = AllocationRecorder::ring(StreamOrdered, 1_000);
//! let buffer: DeviceBuffer<f32, _> = DeviceBuffer::zeroed_in(&stream, 1_000, &resource)?;
//! drop(buffer);
//! let peak = AllocationLog::new(resource.events()).usage().iter().map(|sample| sample.live_bytes).max();
//! assert_eq!(peak, Some(4_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod allocation_log;
mod allocation_recorder;
mod checkpoint;
#[cfg(unix)]
mod core_dump;
mod nvtx;
mod profiler;
mod snapshot;
#[cfg(test)]
mod stub_api;
mod trace;

pub use self::allocation_log::{
    AllocationEvent, AllocationLog, CacheSample, CallSite, EventKind, ParseLogError, Replay,
    UsageSample,
};
pub use self::allocation_recorder::AllocationRecorder;
pub use self::checkpoint::{CheckpointProcess, Checkpointed, Locked, ProcessState, Running};
#[cfg(unix)]
pub use self::core_dump::{CoreDump, CoreDumpFlags, CoreDumpListener, CoreDumpNotice};
pub use self::nvtx::{NvtxRange, nvtx_mark};
pub use self::profiler::Profiling;
pub use self::snapshot::Snapshot;
#[cfg(feature = "tracing")]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
pub use self::trace::TraceLayer;
pub use self::trace::{
    ActivitiesError, CuptiCallError, Timeline, Trace, TraceActivities, TraceAggregate, TraceError,
    TraceItem, TraceItemKind, TraceOptions, TraceRow,
};
/// CUPTI, NVIDIA's library for profilers, which [`TraceOptions::with_activities`] uses.
pub use curium_driver::sys::cupti::Cupti;
