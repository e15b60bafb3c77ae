//! Copies between host and device memory.
//!
//! | operands | operation | the host waits |
//! |---|---|---|
//! | slices | [`DeviceSlice::copy_from_slice`](crate::DeviceSlice::copy_from_slice), [`DeviceSlice::copy_to_slice`](crate::DeviceSlice::copy_to_slice) | until the copy has completed, except for [small copies](#small-copies) to the device |
//! | pinned buffers | [`upload`], [`download`], which take and return the buffer | on request: [`Pending`] |
//! | borrowed slices | [`CopyScope`] | at the end of the scope |
//! | device memory, on the same or different devices | [`DeviceSlice::copy_from_device`](crate::DeviceSlice::copy_from_device) | no |
//! | pitched memory | [`PitchedSliceMut`](crate::PitchedSliceMut) | as documented by the method |
//! | several copies at once | [`CopyBatch`] | no |
//!
//! # Small copies
//!
//! A copy of a slice of less than 768 KiB passes through a bounce buffer, which is pinned memory of
//! the context ([`StagingOptions`](crate::StagingOptions)).
//!
//! - A copy to the device returns once it is enqueued, and the slice may be changed at once. It
//!   runs in the order of its stream, and accesses on other streams wait for it, as for a kernel.
//!   Code that uses the memory through its address on another stream must wait for the stream
//!   itself.
//! - An error of the device, also of earlier work, is reported by a later call that waits, as for a
//!   kernel.
//! - If copies fill the bounce buffer, the next one waits for the oldest of them on the same
//!   stream.
//! - A copy to the host waits, and reports errors of earlier work.
//!
//! A bounce buffer has 512 KiB, or 2 MiB for copies of more than 64 KiB, and serves one stream
//! until that ends. A context has at most 64 MiB of them. Streams that get none copy in the
//! driver's way, with a wait.
//!
//! # Failed waits
//!
//! Any other copy from or to a borrowed slice synchronizes its stream before it returns, because
//! the device must not access the slice afterwards. If synchronization fails, for instance because
//! other code is capturing the stream, it is retried for ten seconds. If no retry succeeds, the
//! function can neither return nor leak the memory: it writes the reason to standard error and to
//! `tracing`, and aborts the process. The environment variable `CURIUM_ABORT_AFTER` sets another
//! number of seconds, or `never`. A lost context runs no work, so its error is returned
//! immediately. Memory that a value owns is leaked instead; see
//! [`Driver::leaked_memory`](curium_driver::Driver::leaked_memory).

mod batch;
mod pending;
mod scope;

pub(crate) use self::batch::BoxCopy;
pub use self::batch::CopyBatch;
pub use self::pending::{Pending, download, upload};
pub use self::scope::{CopyScope, copy_scope};
pub use crate::transfer::CopyOptions;
