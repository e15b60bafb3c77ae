//! Identities of entries that the background thread watches.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number that no other entry of this process has or will have. The driver passes it to
/// callbacks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Identity(pub(crate) usize);

impl Identity {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
