//! The arithmetic of the caching suballocator: which addresses are free, for whom, and which of them to hand out.
//!
//! Nothing here knows a driver. Addresses are numbers, streams are [`Owner`]s, and whether work is done is something that the caller
//! says. From the hot end to the cold one:
//!
//! 1. [`Bins`] hold the free blocks of one thread and one stream, by size class. Taking and putting is a stack's pop and push.
//! 2. [`Store`] holds the free blocks of each stream, by size class, for threads whose bins ran empty or full.
//! 3. [`Heap`] holds free ranges of any length, joined with their neighbours. Each is free for one stream, the one that it was freed
//!    on, or for all, once the work that used it is known to be done.
//!
//! Whoever frees memory says how large it is, so that memory in use needs no record at all.

mod bins;
mod class;
mod heap;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use self::bins::{Bins, Overflow};
pub(crate) use self::class::{Class, GRANULE, Rounded};
pub(crate) use self::heap::{FreeRange, Heap, Owner};
pub(crate) use self::store::{Generation, Store};
