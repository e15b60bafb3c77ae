//! Hazard tracking for device memory.
//!
//! Safe code may use a buffer on any stream. This module records which streams access an allocation
//! and inserts the waits that correctness requires, and no others. It is also the interface between
//! this crate and crates that own memory: they keep an [`Accesses`] for each allocation and enqueue
//! every operation under an [`Operation`].
//!
//! # Rules
//!
//! 1. A read waits for the last write. A write, or the deallocation, waits for the last write and
//!    for *every* read since.
//! 2. Accesses on one stream are ordered by the stream. They cost no driver call, no lock and no
//!    atomic read-modify-write.
//! 3. Reads on different streams run concurrently.
//! 4. Streams wait for each other on the device. The earlier stream records an event after all work
//!    enqueued so far (a *sync point*), and the later stream waits for that event. The host does
//!    not block.
//! 5. Sync points of a stream are counted. An access stores the count that it reads *after*
//!    enqueuing its work; a sync point increments the count *before* it is recorded. A sync point
//!    with a higher number than the access therefore covers it, whichever threads the two run on.
//!    Each stream remembers the last sync point of every other stream that it waited for, and never
//!    waits twice.
//! 6. An access is recorded while the memory is borrowed, so every access that must wait for it
//!    finds the record. A write of the whole allocation borrows it exclusively, so the stream of
//!    the last such write can be read without a lock.
//! 7. Separately borrowed parts of one allocation count as accesses to the whole: they wait for
//!    each other. Several threads may enqueue such accesses concurrently, each between the waits
//!    and the record of another. A write of a part therefore removes only the records that its
//!    stream is known to have waited for.
//! 8. An event cannot order captured work with work outside the capture: such a wait invalidates
//!    the capture. If two accesses are not in the same capture, the wait is an error before an
//!    event is used, unless the earlier access has completed. The capture status of a stream is
//!    queried only if one stream must wait for another.
//! 9. A capture has its own streams. Their accesses are recorded with the capture by the same
//!    rules, which give the graph the edges that streams would have, and the memory is *leased* to
//!    the graph. From the first lease on, the accesses of the owner and of the graph share one
//!    history, and the memory and its history live as long as either. Each launch of the graph is
//!    an access to every allocation that it leases.
//! 10. A launch borrows nothing, so rule 6 does not hold for it: each leased allocation has a lock
//!     of its own (`hazard/lease_lock.rs`). While no executable graph holds the memory, operations
//!     on the stream that wrote it last take no lock (`hazard/registrations.rs`). None of this
//!     applies to memory that was never leased.
//!
//! Streams are identified by numbers and never by their handles, which drivers reuse.
//!
//! # Contract
//!
//! For an owner of memory:
//!
//! - Every [`Operation`] on the memory calls [`Accesses::before_read`] or
//!   [`Accesses::before_write`], enqueues its work, and calls the matching `after_…` function, all
//!   while the memory is borrowed accordingly. Work that was not enqueued is not recorded: dropping
//!   the operation ends its access.
//! - An operation whose driver call may block until the stream has completed earlier work, such as
//!   a copy from pageable memory, is [blocking](Operation::blocking). No operation exists while the
//!   host waits, because a launch may wait for its end.
//! - The memory is freed after [`Accesses::before_write`] on the stream that frees it, or after
//!   [`Accesses::synchronize`]. If graphs lease it ([`Accesses::is_leased`]), the owner either
//!   leaves it to them ([`Accesses::leave`]) or revokes the leases ([`Accesses::revoke`]).
//! - The host accesses the memory while it holds a [`HostAccess`] and after
//!   [`Accesses::synchronize_writes`] or [`Accesses::synchronize`].
//!
//! The functions are safe because they access no memory; an owner that does not call them is
//! responsible for its own `unsafe` code. Locks are held while the driver records and waits for
//! events. A [call observer](crate::observe_calls) or a `tracing` subscriber that re-enters this
//! module on the same thread receives an argument error.

mod accesses;
mod history;
mod launch;
mod lease;
mod lease_lock;
mod operation;
mod registrations;
mod scope;
mod sync_point;
#[cfg(all(test, loom))]
mod tests;
mod thread_state;

pub use self::accesses::Accesses;
pub(crate) use self::launch::LaunchLeases;
pub use self::lease::HostAccess;
pub(crate) use self::lease::Lease;
pub(crate) use self::operation::Held;
pub use self::operation::Operation;
pub(crate) use self::scope::{CaptureLog, Scope};
pub(crate) use self::sync_point::{SyncPoints, wait};
pub use self::thread_state::is_nested;
pub(crate) use self::thread_state::{Ordering, check_not_ordering};
