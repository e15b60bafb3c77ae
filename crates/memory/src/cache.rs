//! The algorithms of the caching allocator. They make no driver calls: addresses and streams are
//! plain numbers.
//!
//! - A [`ThreadCache`] holds the free blocks of one thread and one stream, by [`SizeClass`]. An
//!   allocation pops a block and a deallocation pushes one, without a lock that other threads
//!   contend for.
//! - The [`CentralHeap`] is shared by all threads. It refills thread caches and receives their
//!   surplus. Its [`Heap`] coalesces free memory into ranges. Memory is available to the stream
//!   that freed it, and to every stream once the work before the deallocation has completed.
//!
//! The caller passes the size of the memory that it frees. Memory in use therefore needs no record.

mod address_space;
mod barrier;
mod biased_lock;
mod central_heap;
mod free_lists;
mod heap;
mod local;
mod simulated;
mod size_class;
mod stitching;
#[cfg(test)]
mod tests;
mod thread_cache;

pub(crate) use self::address_space::{AddressSpace, Gap, Part, part_bytes};
pub(crate) use self::central_heap::{CentralHeap, Usage};
pub(crate) use self::heap::{Epoch, Heap, Segment, StreamId};
pub(crate) use self::local::LocalCache;
pub use self::simulated::{SimulatedBlock, SimulatedCache};
pub(crate) use self::size_class::BlockSize;
pub use self::size_class::GRANULE;
pub(crate) use self::stitching::{StitchedRange, Stitching};
