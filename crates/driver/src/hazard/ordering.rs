//! Accesses that are not known at once to wait for nothing: those that wait, and those to leased memory.

use std::sync::{Arc, OnceLock};

use super::guard::{self, AccessGuard, expect_not_ordering};
use super::lease::Leased;
use super::scope::in_another_graph;
use super::{Accesses, OPERATION};
use crate::{Result, Stream};

impl Accesses {
    #[cold]
    #[inline(never)]
    pub(super) fn before(&self, guard: &mut AccessGuard<'_>, is_write: bool) -> Result<()> {
        let stream = guard.stream();
        if let Some(lease) = self.lease.get()
            && lease.begin_home(stream, || guard.begin_operation())
        {
            return Ok(());
        }
        if let Some(scope) = guard.scope() {
            return scope.before(self, stream, is_write);
        }
        if self.home().scope().is_some() {
            return Err(in_another_graph());
        }
        if let Some(lease) = self.lease.get() {
            return guard.hold(lease, is_write);
        }
        expect_not_ordering(OPERATION)?;
        let mut others = self.history.others();
        let Some(lease) = self.lease.get() else { return self.history.before(&mut others, stream, is_write) };
        drop(others);
        guard.hold(lease, is_write)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after(&self, guard: &mut AccessGuard<'_>, is_write: bool) {
        let stream = guard.stream();
        if guard.holds_no_lock()
            && let Some(lease) = self.lease.get()
            && lease.is_home(stream)
        {
            return lease.record_home(stream, is_write);
        }
        if let Some(scope) = guard.scope() {
            return scope.after(self, stream, is_write);
        }
        if guard::is_ordering() {
            return self.after_in_observer(stream, is_write);
        }
        let Some(lease) = self.lease.get().or_else(|| self.after_of_owner(stream, is_write)) else { return };
        if guard.take(lease, is_write) {
            lease.end(stream, is_write);
        } else if guard.is_operation() && lease.is_home(stream) {
            lease.record_home(stream, is_write);
        } else {
            lease.record(stream, is_write);
        }
    }

    /// Records an access to memory that no graph leases. Returns the lease if a capture has leased the memory meanwhile.
    #[inline]
    fn after_of_owner(&self, stream: &Stream, is_write: bool) -> Option<&Arc<Leased>> {
        let mut others = self.history.others();
        // Under the lock: the first lease takes the history away.
        let lease = self.lease.get();
        if lease.is_none() {
            self.history.after(&mut others, stream, is_write);
        }
        lease
    }

    /// Records an access that a call observer enqueued while its thread orders another, and holds locks. If one of them is this memory's,
    /// the access completes instead, so that nobody has to wait for it.
    #[cold]
    fn after_in_observer(&self, stream: &Stream, is_write: bool) {
        match (self.lease.get(), self.history.try_others()) {
            (None, Some(mut others)) => self.history.after(&mut others, stream, is_write),
            _ => stream.synchronize().unwrap_or_default(),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after_whole_write(&mut self, guard: &mut AccessGuard<'_>) {
        if self.lease.get().is_some() || guard.is_captured() {
            self.after(guard, true);
            if self.lease.get().is_some_and(|lease| Arc::strong_count(lease) == 1) {
                self.reclaim();
            }
        } else if let Some(writer) = self.history.record_whole_write(guard.stream()) {
            self.origin.get_or_insert(writer);
        }
    }

    /// Makes the history the owner's alone if no graph shares it any more, and returns `true` if it is.
    #[cold]
    pub(super) fn reclaim(&mut self) -> bool {
        let Some(lease) = self.lease.take() else { return true };
        match Arc::try_unwrap(lease) {
            Ok(leased) => {
                self.history = leased.into_history();
                true
            }
            Err(lease) => {
                self.lease = OnceLock::from(lease);
                false
            }
        }
    }
}
