//! Observation of accesses to device memory, for the check of races between launches.
//!
//! Fences, barriers of a cluster, and volatile or ordered accesses may order the launch with
//! others. The watcher is notified of them, and volatile or ordered accesses themselves are not
//! observed. Accesses of matrix instructions, asynchronous copies, textures and surfaces are not
//! observed either.

use std::fmt;

use super::report::Conflict;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic operation, which does not race with other atomic operations.
    Atomic,
}

/// Observes the accesses of one worker of a launch.
pub trait Watcher: fmt::Debug {
    /// Records an access. Returns the first byte that races with another launch or copy, and that
    /// operation.
    fn note(&mut self, address: u64, bytes: u64, how: AccessKind) -> Option<(u64, Conflict)>;
    /// Records that the launch may order its earlier accesses before those of others, or the
    /// reverse.
    fn exchange(&mut self);
}
