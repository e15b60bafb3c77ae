//! Hazard tracking for device memory.
//!
//! Safe code may use a buffer on any stream. This module records which streams access an allocation and inserts the
//! waits that correctness requires, and no others. It is also the interface between this crate and crates that own
//! memory: they keep an [`Accesses`] for each allocation and enqueue every operation under an [`Operation`].
//!
//! # Rules
//!
//! 1. **Order.** A read waits for the last write. A write, or the deallocation, waits for the last write and for *every*
//!    read since. Reads on different streams run concurrently. Accesses on one stream are ordered by the stream: they
//!    cost no driver call, no lock and no atomic read-modify-write.
//! 2. **Waits.** Streams wait for each other on the device. The earlier stream records an event after all work enqueued
//!    so far (a *sync point*), and the later stream waits for that event. The host does not block.
//! 3. **Numbers.** Sync points of a stream are counted. An access stores the count that it reads *after* enqueuing its
//!    work; a sync point increments the count *before* it is recorded. A sync point with a higher number than the access
//!    therefore covers it, whichever threads the two run on. Each stream remembers the last sync point of every other
//!    stream that it waited for, and never waits twice.
//! 4. **Borrows.** An access is recorded while the memory is borrowed, so every access that must wait for it finds the
//!    record. A write of the whole allocation borrows it exclusively, so its stream can be read without a lock.
//!    Separately borrowed parts count as accesses to the whole, and several threads may enqueue them concurrently: a
//!    write of a part removes only the records that its stream is known to have waited for.
//! 5. **Captures of other code.** An event cannot order captured work with work outside the capture: such a wait
//!    invalidates the capture. If two accesses are not in the same capture, the wait is an error before an event is
//!    used, unless the earlier access has completed. The capture status of a stream is queried only if one stream must
//!    wait for another.
//! 6. **Leases.** A [capture](crate::Graph::capture) has its own streams. Their accesses are recorded with the capture
//!    by the same rules, which gives the graph the edges that streams would have, and the memory is *leased* to the
//!    graph. From the first lease on, the owner and the graph share one history, and the memory and its history live as
//!    long as either. Each launch of the graph is an access to every allocation that it leases.
//! 7. **Launches** borrow nothing, so rule 4 does not hold for them. An access to leased memory is *in progress* from
//!    before its waits until after its record. A launch blocks new accesses and waits for those in progress. A state
//!    word of each leased allocation counts them (`hazard/state.rs`), and one lock protects the rest
//!    (`hazard/lease_lock.rs`). Accesses on the stream that wrote the memory last need only the word, unless a graph is in
//!    their way. Memory that was never leased has neither.
//!
//! Streams are identified by numbers and never by their handles, which drivers reuse.
//!
//! # Files
//!
//! Each file uses only those above it.
//!
//! | file | subject |
//! |---|---|
//! | `sync.rs`, `thread_state.rs` | locks, and the state of the calling thread |
//! | `sync_point.rs` | rules 2, 3 and 5: a wait of one stream for another |
//! | `state.rs` | the state word of a leased allocation |
//! | `lease_lock.rs` | rule 7: the lock of a leased allocation |
//! | `history.rs` | rules 1 and 4: the accesses to an allocation |
//! | `lease.rs`, `launch.rs` | rule 6: memory that graphs lease, and their launches |
//! | `capture_gate.rs`, `scope.rs` | rule 6: captures |
//! | `operation.rs` | the gate: every operation that enqueues work |
//! | `accesses.rs` | the interface for the owner of an allocation |
//!
//! # Contract
//!
//! For an owner of memory:
//!
//! - Every [`Operation`] on the memory calls [`Accesses::before_read`] or [`Accesses::before_write`], enqueues its work, and
//!   calls the matching `after_…` function, all while the memory is borrowed accordingly. Work that was not enqueued is not
//!   recorded: dropping the operation ends its access.
//! - No operation exists while the host waits for the device, because a launch may wait for its end.
//! - The memory is freed after [`Accesses::before_write`] on the stream that frees it, or after
//!   [`Accesses::synchronize`]. If graphs lease it ([`Accesses::is_leased`]), the owner either leaves it to them
//!   ([`Accesses::leave`]) or revokes the leases ([`Accesses::revoke`]).
//! - The host accesses the memory while it holds a [`HostAccess`] and after [`Accesses::synchronize_writes`] or
//!   [`Accesses::synchronize`].
//!
//! The functions are safe because they access no memory; an owner that does not call them is responsible for its own
//! `unsafe` code. Locks are held while the driver records and waits for events. A [call observer](crate::observe_calls)
//! or a `tracing` subscriber that re-enters this module on the same thread receives an argument error.

mod accesses;
mod capture_gate;
mod history;
mod launch;
mod lease;
mod lease_lock;
mod operation;
mod scope;
mod state;
mod sync;
mod sync_point;
#[cfg(all(test, loom))]
mod tests;
mod thread_state;

pub use self::accesses::Accesses;
pub(crate) use self::capture_gate::Closed;
pub(crate) use self::launch::LaunchLeases;
pub use self::lease::HostAccess;
pub(crate) use self::lease::Lease;
pub use self::operation::Operation;
pub(crate) use self::scope::{CaptureLog, KeptValue};
pub(crate) use self::scope::{Key, Scope};
pub(crate) use self::sync_point::SyncPoints;
pub(crate) use self::sync_point::wait;
pub(crate) use self::thread_state::Ordering;
pub(crate) use self::thread_state::expect_not_ordering;
pub use self::thread_state::is_nested;
