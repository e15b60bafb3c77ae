//! The CUDA driver on the CPU: the same ABI, real kernels, and fault injection.
//!
//! A [`Simulator`] is a CUDA driver that requires no GPU. Everything built on `curium-sys` runs on
//! it: contexts, asynchronous streams, events, memory and modules behave as on hardware, down to
//! the error codes.
//!
//! It executes the work instead of mocking it. Work is queued and runs later on other threads. A
//! seed selects the order of independent streams, so that tests can find missing synchronization.
//! New device memory contains a pattern instead of zeros. Host code cannot access device memory.
//! Bounds are checked to the byte.
//!
//! [`test()`] runs a closure on a new simulator with all checks enabled, and fails if an object is
//! leaked or the simulator reports a problem:
//!
//! ```
//! use curium_driver::Device;
//!
//! curium_sim::test(|device: Device| {
//!     let stream = device.primary_context()?.stream()?;
//!     stream.synchronize()
//! })?;
//! # Ok::<(), curium_driver::Error>(())
//! ```
//!
//! [`Simulator::new`] creates a simulator outside of a test. [`Simulator::driver`] initializes it
//! for `curium-driver`, and [`Simulator::api`] returns its table of functions.
//!
//! The names of its devices identify them as simulated. A function that it does not implement
//! returns `CUDA_ERROR_NOT_SUPPORTED`, and the call is counted ([`Simulator::unsupported_calls`]).
//!
//! # The book
//!
//! The chapters of the book are in the folder `docs/book/src` of the repository: `testing.md`
//! explains how to test with the simulator, `found-bugs.md` shows reports.
//!
//! # Checks
//!
//! A [`Report`] names the kernel, the block, the thread, the line of the source and of the PTX, the
//! address, and the variable or the allocation at or near it; a report of a race names both
//! accesses. Source lines come from `.loc` directives, which NVRTC and nvcc emit with `-lineinfo`.
//! Reports are kept ([`Simulator::reports`]), written to stderr, and carried by the error of the
//! next call (`CallError::driver_log` of `curium-driver`). A report of [`Severity::Error`] also
//! fails the launch, unless [`Checks`] sets another reaction. A report of [`Severity::Warning`]
//! never does. Expensive checks are disabled by default and enabled in [`test()`].
//!
//! | check | enabled by | not detected |
//! |---|---|---|
//! | accesses out of bounds, to freed memory, or misaligned | always | an access past the end of one allocation that is inside another |
//! | reads of uninitialized memory | [`Config::with_uninitialized_checks`] | memory that the host or another process may write |
//! | races of a block's threads on shared memory, also within a warp | [`Config::with_race_checks`] | accesses of matrix instructions; accesses ordered by fences and atomics |
//! | warps that diverge at an aligned barrier: `bar`, or `barrier` with `.aligned` | [`Config::with_race_checks`] | a barrier in a loop that some threads skip, if the others execute nothing after the loop and no other barrier |
//! | threads that wait at `shfl.sync`, `bar.warp.sync` or the like for members of their mask forever | always | threads of the mask that have exited, for which the PTX ISA does not wait |
//! | operations on `mbarrier` objects that are not initialized, and more arrivals than a phase expects | always | arrivals by asynchronous copies |
//! | deadlocks of all threads of a block or a cluster | always | |
//! | launches that do not end, such as endless loops | [`Config::with_instruction_limit`], [`Config::with_time_limit`] | |
//! | streams that wait for a value that no work writes | [`Config::with_time_limit`] | |
//! | races of a launch's threads on device memory, also within a warp | [`Config::with_race_checks`] | atomics; accesses of matrix instructions, textures, surfaces and asynchronous copies; accesses before and after a fence, or a volatile or ordered access; more than 16 MiB per launch |
//! | races between streams: launches, copies, fills, graph nodes | [`Config::with_race_checks`] | accesses of matrix instructions, textures, surfaces and asynchronous copies; memory mapped at two addresses; other processes; accesses after a fence, a volatile access, a host function or a value that a stream waits for |
//! | graphs that are instantiated or launched with an unloaded kernel, a destroyed event or freed memory | always | memory of kernels; memory in bodies of conditional nodes |
//! | images that are refused, as a warning | always | images that are added to a linker, which has a log |
//! | changes by the host of memory that a queued copy uses | [`Config::with_race_checks`] | reads by the host; memory of kernels; changes after other work has run |
//!
//! A race of threads that store the same value has [`Severity::Warning`]; if the threads of one
//! warp store it with one instruction, it is not reported. A refused image has this severity as
//! well. All other reports have [`Severity::Error`].
//!
//! All host threads count as one: after one of them has waited for work, later operations of all
//! host threads are ordered after that work.
//!
//! Objects that a program does not destroy are counted ([`Simulator::live_handles`]) and listed
//! with the call that created each ([`Simulator::leaked_objects`]), and with the caller's stack on
//! request ([`Config::with_backtraces`]).
//!
//! # Features
//!
//! `export` (not on by default) exports every function under its C name, for the shared library
//! that replaces `libcuda.so.1`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod activity;
mod argument;
mod call;
#[cfg(feature = "export")]
mod call_trace;
mod check;
mod check_ptx;
mod config;
mod context;
mod driver;
mod entry;
mod error;
mod error_code;
#[cfg(feature = "export")]
mod export;
mod fallback;
mod fault;
mod handle;
mod host_function;
mod host_pointer;
mod image;
mod kernel_output;
mod library;
mod library_operation;
mod link;
mod live;
mod lock;
mod log;
mod memory;
mod object;
mod origin;
mod per_thread;
mod race;
mod random;
mod report;
mod result;
mod simulator;
mod slot;
mod summary;

pub use self::activity::{Activity, ActivityMemory, ActivityOperation, observe_activities};
pub use self::check::{test, test_with};
pub use self::check_ptx::{PtxError, check_ptx};
pub use self::config::{Checks, Config, DeviceModel, EnvironmentError, Platform};
pub use self::error::Error;
pub use self::fallback::fallback;
pub use self::fault::{Fault, FaultPlan, FaultSyntaxError};
pub use self::library::{
    allocate, current_device, free, is_stream_captured, stream_number, with_device,
};
pub use self::library_operation::{LibraryOperation, Operand};
pub use self::live::{LiveHandles, LiveObject};
pub use self::simulator::Simulator;
pub use self::summary::Summary;
pub use curium_ptx::exec::{
    Access, Area, Budget, CodeLocation, Divergence, Fact, FirstStore, LaneAccesses, LaneGroup,
    LoopCondition, NearbyAllocation, RegisterValue, Report, ReportKind, Severity, SourceLocation,
    Stale, StreamRace, ThreadGroup, ThreadRange, UnwrittenBytes,
};
