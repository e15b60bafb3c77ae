//! Several GPUs, processes and machines over NCCL.
//!
//! A launcher (`torchrun`, `mpirun`, `srun`, Kubernetes or `curium run`) starts one process per
//! GPU, a *rank*. [`Rendezvous`] reads the rank from the launcher's environment variables, and
//! sends NCCL's [`UniqueId`] from rank 0 to all ranks. A [`Communicator`] enqueues collectives and
//! transfers ([`Operation`]) on streams, on buffers of any stream, with checked lengths and types.
//!
//! [`Nccl`] finds the library of this machine, of any version since 2.18. Neither compiling nor
//! starting a program requires it.
//!
//! # Features
//!
//! `half` (not on by default) adds collectives of `half::f16` and `half::bf16`.
//!
//! `float8` (not on by default) adds collectives of `float8::F8E4M3` and `float8::F8E5M2`, with
//! NCCL 2.24.
//!
//! # Example
//!
//! ```no_run
//! use curium_driver::Driver;
//! use curium_memory::DeviceBuffer;
//! use curium_nccl::{Communicator, CommunicatorOptions, Nccl, Reduction, Rendezvous};
//!
//! let mut rendezvous = Rendezvous::from_environment()?;
//! let context = Driver::load()?.device(rendezvous.local_rank())?.primary_context()?;
//! let stream = context.stream()?;
//! let nccl = Nccl::load()?;
//! let mut communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, CommunicatorOptions::new())?;
//!
//! let mut gradients = DeviceBuffer::from_slice(&stream, &[1.0_f32; 1024])?;
//! communicator.all_reduce_in_place(&stream, &mut gradients, Reduction::Average)?;
//! communicator.synchronize(&stream)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
// Time limits come from callers, and adding the longest ones panics: `Deadline` does not.
#![warn(clippy::arithmetic_side_effects)]

mod call_comparison;
mod communicator;
mod deadline;
mod element;
mod error;
mod group;
mod library;
mod memory;
mod operation;
mod reduction;
mod rendezvous;
mod unique_id;

pub use curium_sys::load::{LibraryError, LibraryVersion, MissingFunction};
pub use curium_sys::nccl as sys;

pub use self::call_comparison::CallDifference;
pub use self::communicator::{
    AbortHandle, Communicator, CommunicatorOptions, Connecting, DeviceMemory, Finalizing,
    RegisteredBuffer,
};
pub use self::element::Element;
pub use self::error::{
    AbortedError, ArgumentError, CallError, Error, FinalizedError, RecentCall, RendezvousError,
    Result, Returned, TimeoutError,
};
pub use self::group::Group;
pub use self::library::Nccl;
pub use self::memory::NcclMemory;
pub use self::operation::Operation;
pub use self::reduction::Reduction;
pub use self::rendezvous::{Exchange, Launcher, Rendezvous, Token};
pub use self::unique_id::UniqueId;
