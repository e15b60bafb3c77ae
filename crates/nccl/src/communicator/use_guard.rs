//! Uses of a communicator, of which its end waits.

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::shared::{ENDED, FINALIZED, LIVE, Shared};
use crate::error::{AbortedError, Error, FinalizedError, Result};
use crate::group;
use crate::operation::Membership;
use crate::sys::ncclComm_t;

/// A use of a communicator by one thread, which is not aborted in the meantime.
#[derive(Debug)]
pub(crate) struct UseGuard<S: Deref<Target = Shared>> {
    shared: S,
    /// `true` within another use by this thread, which has the lock: of a group that deregisters
    /// memory, or that runs a call observer.
    is_nested: bool,
    /// The lock is released on the thread that took it.
    _not_send: PhantomData<*const ()>,
}

impl<S: Deref<Target = Shared>> UseGuard<S> {
    /// Starts a use. Returns an error if the communicator was finalized or aborted.
    #[inline(always)]
    pub(crate) fn acquire(shared: S, operation: &'static str) -> Result<Self> {
        let use_guard = Self::locked(shared);
        use_guard.check_live(operation)?;
        Ok(use_guard)
    }

    /// Returns an error if the communicator was finalized or aborted. An end that began during this
    /// use waits for it.
    #[inline(always)]
    pub(crate) fn check_live(&self, operation: &'static str) -> Result<()> {
        let stage = self.shared.stage.load(Acquire);
        if stage == LIVE {
            Ok(())
        } else {
            Err(refused(&self.shared, operation, stage))
        }
    }

    /// Starts a use like [`UseGuard::acquire`], also of a communicator that was finalized.
    pub(super) fn acquire_for_release(shared: S, operation: &'static str) -> Result<Self> {
        let use_guard = Self::locked(shared);
        let stage = use_guard.shared.stage.load(Acquire);
        if stage == ENDED {
            Err(refused(&use_guard.shared, operation, stage))
        } else {
            Ok(use_guard)
        }
    }

    /// Waits until no other thread uses the communicator. The end sets the stage before it locks:
    /// if the stage is not that of the end now, the end waits for this use.
    #[inline(always)]
    fn locked(shared: S) -> Self {
        let is_locked =
            shared.in_use.try_lock().map(mem::forget).is_some() || lock_unless_nested(&shared);
        if is_locked {
            shared.user.store(group::thread_identity(), Relaxed);
        }
        Self {
            shared,
            is_nested: !is_locked,
            _not_send: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> ncclComm_t {
        self.shared.raw
    }

    #[inline]
    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }
}

impl<S: Deref<Target = Shared>> Drop for UseGuard<S> {
    #[inline]
    fn drop(&mut self) {
        if self.is_nested {
            return;
        }
        self.shared.user.store(0, Relaxed);
        // SAFETY: `locked` took the lock, forgot its guard, and created this value.
        unsafe { self.shared.in_use.force_unlock() };
    }
}

/// Locks the communicator once no other thread uses it, and returns `true`. Returns `false` if this
/// thread uses it.
#[cold]
fn lock_unless_nested(shared: &Shared) -> bool {
    let is_nested = shared.is_in_use_here();
    if !is_nested {
        mem::forget(shared.in_use.lock());
    }
    !is_nested
}

/// Returns the error of a call by the user of a communicator that has ended: its timeout, once, or
/// [`ended`].
#[cold]
fn refused(shared: &Shared, operation: &'static str, stage: u8) -> Error {
    shared
        .expired(operation)
        .unwrap_or_else(|| ended(shared, operation, stage))
}

/// Returns the error of a call on a communicator that was finalized or aborted.
#[cold]
pub(super) fn ended(shared: &Shared, operation: &'static str, stage: u8) -> Error {
    let Membership { rank, size } = shared.membership;
    if stage == FINALIZED {
        Box::new(FinalizedError {
            operation,
            rank,
            size,
        })
        .into()
    } else {
        Box::new(AbortedError {
            operation,
            rank,
            size,
        })
        .into()
    }
}
