//! Uses of a communicator, of which its end waits.

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::Ordering::Acquire;

use super::shared::{ENDED, FINALIZED, LIVE, Shared};
use crate::error::{AbortedError, Error, FinalizedError, Result};
use crate::operation::Place;
use crate::sys::ncclComm_t;

/// A use of a communicator by one thread, which is not aborted in the meantime.
#[derive(Debug)]
pub(crate) struct Using<S: Deref<Target = Shared>> {
    shared: S,
    /// The lock is released on the thread that took it.
    _not_send: PhantomData<*const ()>,
}

impl<S: Deref<Target = Shared>> Using<S> {
    /// Starts a use. Returns an error if the communicator was finalized or aborted.
    #[inline(always)]
    pub(crate) fn begin(shared: S, operation: &'static str) -> Result<Self> {
        let using = Self::locked(shared);
        using.expect_live(operation)?;
        Ok(using)
    }

    /// Returns an error if the communicator was finalized or aborted. An end that began during this use waits for it.
    #[inline(always)]
    pub(crate) fn expect_live(&self, operation: &'static str) -> Result<()> {
        let stage = self.shared.stage.load(Acquire);
        if stage == LIVE { Ok(()) } else { Err(refused(&self.shared, operation, stage)) }
    }

    /// Starts a use like [`Using::begin`], also of a communicator that was finalized.
    pub(super) fn begin_to_end(shared: S, operation: &'static str) -> Result<Self> {
        let using = Self::locked(shared);
        let stage = using.shared.stage.load(Acquire);
        if stage == ENDED { Err(refused(&using.shared, operation, stage)) } else { Ok(using) }
    }

    /// Waits until no other thread uses the communicator. The end sets the stage before it locks: if the stage is not that of the end
    /// now, the end waits for this use.
    #[inline(always)]
    fn locked(shared: S) -> Self {
        mem::forget(shared.in_use.lock());
        Self { shared, _not_send: PhantomData }
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

impl<S: Deref<Target = Shared>> Drop for Using<S> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `locked` took the lock on this thread, forgot its guard, and created this value.
        unsafe { self.shared.in_use.force_unlock() };
    }
}

#[cold]
fn refused(shared: &Shared, operation: &'static str, stage: u8) -> Error {
    if let Some(error) = shared.expired(operation) {
        return error;
    }
    let Place { rank, size } = shared.place;
    if stage == FINALIZED {
        Box::new(FinalizedError { operation, rank, size }).into()
    } else {
        Box::new(AbortedError { operation, rank, size }).into()
    }
}
