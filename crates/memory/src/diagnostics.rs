//! Diagnostics: allocation logs, their replay, and memory snapshots.
//!
//! - [`AllocationRecorder`] is a [`Resource`](crate::Resource) that records every allocation.
//! - [`AllocationLog`] parses, analyzes and replays such a log.
//! - [`Snapshot`] writes a file for PyTorch's memory viewer.

mod allocation_log;
mod allocation_recorder;
mod snapshot;

pub use self::allocation_log::{
    AllocationEvent, AllocationLog, CacheSample, CallSite, EventKind, ParseLogError, Replay,
    UsageSample,
};
pub use self::allocation_recorder::AllocationRecorder;
pub use self::snapshot::Snapshot;
pub use crate::resource::SegmentChange;
