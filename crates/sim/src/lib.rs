//! The CUDA driver on the CPU: the same ABI, real kernels, faults on request.
//!
//! A [`Simulator`] is a CUDA driver that needs no GPU. [`Simulator::api`] is its table of functions, the same that a loaded
//! `libcuda` gives, so that everything built on `curium-sys` runs on it: contexts, asynchronous streams, events, memory and
//! modules behave as on hardware, down to the codes of errors.
//!
//! It is a driver and not a mock: work is queued and runs later on other threads, in an order between independent streams
//! that the seed decides, so that a missing synchronisation shows; fresh device memory holds a pattern and not zeros; host
//! code cannot touch device memory; sizes are checked to the byte.
//!
//! What a kernel must not do is reported with its place ([`Simulator::kernel_faults`], [`Checks`]): accesses out of bounds, to freed memory
//! or misaligned, always; races ([`Config::with_race_checks`]) and reads of memory that nobody wrote ([`Config::with_unwritten_checks`]) on
//! request, because they take time. What a program does not destroy is counted ([`Simulator::live_handles`]) and named with the call
//! that made it ([`Simulator::live_objects`]), and with the caller's stack if that is kept ([`Config::with_backtraces`]).
//!
//! It is honest: its devices are named as simulated, and a function that it does not implement returns
//! `CUDA_ERROR_NOT_SUPPORTED` and is counted ([`Simulator::unsupported_calls`]).
//!
//! ```
//! use curium_sim::{Config, Simulator};
//! use curium_sys::CUresult;
//!
//! let simulator = Simulator::new(Config::new())?;
//! let api = simulator.api();
//! let init = api.cuInit.expect("every driver has `cuInit`");
//! // SAFETY: 0 is the argument that `cuInit` wants.
//! assert_eq!(unsafe { init(0) }, CUresult::CUDA_SUCCESS);
//! # Ok::<(), curium_sim::Error>(())
//! ```
//!
//! # Checks
//!
//! What a kernel must not do is found where it does it, with kernel, block, thread, PTX line, address, and the allocation that it is in or
//! near. [`Checks`] says what happens then.
//!
//! | check | on | not seen |
//! |---|---|---|
//! | accesses out of bounds, to freed memory, misaligned | always | an access that leaves one allocation and lands in another |
//! | reads of memory that nobody wrote | [`Config::with_unwritten_checks`] | memory that the host or another process may write |
//! | races for shared memory, between warps and within one | [`Config::with_race_checks`] | what matrix instructions access; what lies beside fences and atomics |
//! | races between streams: launches, copies, fills, nodes of graphs | [`Config::with_race_checks`] | what textures, surfaces, matrix instructions and asynchronous copies of kernels access; memory under two addresses; other processes; what lies behind a fence, a volatile access, a host function or a value that a stream waits for |
//! | graphs that are instantiated or launched with an unloaded kernel, a destroyed event or freed memory | always | memory of kernels; memory in bodies of conditional nodes |
//! | the host changes memory while a copy that uses it is queued | [`Config::with_race_checks`] | what the host only reads, what kernels use, and changes after other work has run |
//!
//! All threads of the host count as one: what one of them has waited for, the others know.
//!
//! # Features
//!
//! `export` (not on by default) exports every function under its C name, for the shared library that takes the place of `libcuda.so.1`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod argument;
#[cfg(feature = "export")]
mod call_trace;
mod check;
mod config;
mod driver;
mod entry;
pub mod exec;
#[cfg(feature = "export")]
mod export;
mod fault;
mod handle;
mod live;
mod memory;
mod origin;
mod per_thread;
pub mod ptx;
mod race;
mod schedule;
mod simulator;
mod slot;
mod summary;

pub use self::check::{test, test_with};
pub use self::config::{Checks, Config, DeviceModel, EnvironmentError};
pub use self::fault::{Fault, FaultPlan, FaultSyntaxError};
pub use self::live::{LiveHandles, LiveObject};
pub use self::simulator::{Error, Simulator};
pub use self::summary::Summary;
