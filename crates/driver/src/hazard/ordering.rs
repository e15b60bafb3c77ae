//! Accesses that may have to wait, and accesses to leased memory.

use std::sync::{Arc, OnceLock};

use super::lease::Leased;
use super::operation::{Operation, expect_not_ordering, is_ordering};
use super::scope::in_another_graph;
use super::{Accesses, OPERATION};
use crate::stream::until_done::until_done;
use crate::{Result, Stream};

impl Accesses {
    /// Starts a read, or a write, of leased memory if it is known to need neither a wait nor a lock, which requires the
    /// stream that wrote the memory last. Returns `false` for every other access. Does not check the capture of the
    /// calling thread.
    #[inline]
    pub fn begin_on_owner_stream(&self, operation: &mut Operation<'_>, is_write: bool) -> bool {
        let Some(lease) = self.lease.get() else {
            return false;
        };
        lease.begin_on_owner_stream(operation.stream(), is_write, || operation.register())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn before(&self, operation: &mut Operation<'_>, is_write: bool) -> Result<()> {
        if self.begin_on_owner_stream(operation, is_write) {
            return Ok(());
        }
        let stream = operation.stream();
        if let Some(scope) = operation.scope() {
            return scope.before(self, stream, is_write);
        }
        if self.owner_stream().scope().is_some() {
            return Err(in_another_graph());
        }
        if let Some(lease) = self.lease.get() {
            return operation.hold(lease, is_write);
        }
        expect_not_ordering(OPERATION)?;
        let mut others = self.history.others();
        let Some(lease) = self.lease.get() else {
            return self.history.before(&mut others, stream, is_write);
        };
        drop(others);
        operation.hold(lease, is_write)
    }

    /// Records an access to leased memory if it took no lock.
    #[inline]
    fn end_on_owner_stream(&self, operation: &Operation<'_>, is_write: bool) -> bool {
        let Some(lease) = self.lease.get() else {
            return false;
        };
        let is_owner_stream =
            operation.holds_no_lock() && lease.is_owner_stream(operation.stream());
        if is_owner_stream {
            lease.record_on_owner_stream(operation.stream(), is_write);
        }
        is_owner_stream
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after(&self, operation: &mut Operation<'_>, is_write: bool) {
        if !self.end_on_owner_stream(operation, is_write) {
            self.after_locked(operation, is_write);
        }
    }

    #[cold]
    #[inline(never)]
    fn after_locked(&self, operation: &mut Operation<'_>, is_write: bool) {
        let stream = operation.stream();
        if let Some(scope) = operation.scope() {
            return scope.after(self, stream, is_write);
        }
        if is_ordering() {
            return self.after_in_observer(stream, is_write);
        }
        let Some(lease) = self
            .lease
            .get()
            .or_else(|| self.record_unleased(stream, is_write))
        else {
            return;
        };
        if operation.take(lease, is_write) {
            lease.end(stream, is_write);
        } else if operation.is_registered() && lease.is_owner_stream(stream) {
            lease.record_on_owner_stream(stream, is_write);
        } else {
            lease.record(stream, is_write);
        }
    }

    /// Records an access to memory that no graph leased when it was ordered. Returns the lease if a capture has leased
    /// the memory in the meantime.
    #[inline]
    fn record_unleased(&self, stream: &Stream, is_write: bool) -> Option<&Arc<Leased>> {
        let mut others = self.history.others();
        // Under the lock: the first lease moves the history.
        let lease = self.lease.get();
        if lease.is_none() {
            self.history.after(&mut others, stream, is_write);
        }
        lease
    }

    /// Records an access that a call observer enqueued while its thread is ordering another one and holds locks. If one
    /// of them is the lock of this memory, waits until the access has completed, so that no later access has to wait
    /// for it.
    #[cold]
    fn after_in_observer(&self, stream: &Stream, is_write: bool) {
        match (self.lease.get(), self.history.try_others()) {
            (None, Some(mut others)) => self.history.after(&mut others, stream, is_write),
            // The error is one of earlier work: after this, nothing runs that a later access would have to wait for.
            _ => until_done(stream).unwrap_or_default(),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after_whole_write(&mut self, operation: &mut Operation<'_>) {
        if self.lease.get().is_some() || operation.is_captured() {
            if !self.end_on_owner_stream(operation, true) {
                self.after_locked(operation, true);
            }
            if self
                .lease
                .get()
                .is_some_and(|lease| Arc::strong_count(lease) == 1)
            {
                self.reclaim();
            }
        } else if let Some(writer) = self.history.record_whole_write(operation.stream()) {
            self.origin.get_or_insert(writer);
        }
    }

    /// Makes the history the owner's alone if no graph shares it any more. Returns `true` if it is.
    #[cold]
    pub(super) fn reclaim(&mut self) -> bool {
        let Some(lease) = self.lease.take() else {
            return true;
        };
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
