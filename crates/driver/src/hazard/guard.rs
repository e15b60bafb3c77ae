//! The accesses of one operation, from the first wait to the last record.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use curium_sys::CUdeviceptr;
use smallvec::SmallVec;

use super::OPERATION;
use super::lease::Leased;
use super::scope::{Key, Scope};
use crate::{Error, Result, Stream};

/// The accesses of one operation that is being enqueued on a stream.
///
/// [`Accesses`](super::Accesses) are ordered and recorded through it. While it exists, graphs that lease the memory are not launched by
/// other threads, and the capture that the stream belongs to does not end. An access that was ordered and not recorded ends with it.
#[derive(Debug)]
pub struct AccessGuard<'a> {
    stream: &'a Stream,
    /// None for memory that no graph leases, on a stream of no capture.
    /// [`Drop`] takes it, so that nothing is left to be dropped with the field.
    held: ManuallyDrop<Option<Held>>,
    /// The thread's count of what it holds.
    _not_send: PhantomData<*const ()>,
}

/// The capture, the operation and the locks that other threads wait for.
#[derive(Debug, Default)]
struct Held {
    capture: Option<Arc<Scope>>,
    /// The driver call may wait for the stream, so that accesses to leased memory are locked one by one.
    is_blocking: bool,
    /// The operation has begun on its stream, for accesses to leased memory that need no lock.
    is_operation: bool,
    /// Leased memory that is locked for the access, and whether it is written.
    leases: SmallVec<[(Arc<Leased>, bool); INLINE_LEASES]>,
}

/// The number of accesses to leased memory that an operation holds without an allocation: more than most kernels have pointers.
const INLINE_LEASES: usize = 6;

thread_local! {
    /// The number of captures, operations and leases that guards of this thread hold.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// `true` while this thread calls the driver with locks of this module held.
    static IS_ORDERING: Cell<bool> = const { Cell::new(false) };
}

impl<'a> AccessGuard<'a> {
    /// Begins an operation on `stream`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to a capture and a [call observer](crate::observe_calls) calls this while its thread
    /// orders another access.
    #[inline]
    pub fn new(stream: &'a Stream) -> Result<Self> {
        let mut guard = Self::outside_captures(stream);
        if stream.scope().is_some() {
            guard.enter()?;
        }
        Ok(guard)
    }

    /// Begins an operation on `stream` whose driver call may block until earlier work of the stream has completed, as that of a copy
    /// between the device and pageable memory does. Launches of graphs that do not lease the memory do not wait for it.
    ///
    /// # Errors
    ///
    /// As for [`AccessGuard::new`].
    #[inline]
    pub fn blocking(stream: &'a Stream) -> Result<Self> {
        let mut guard = Self::new(stream)?;
        guard.held.get_or_insert_default().is_blocking = true;
        Ok(guard)
    }

    /// An operation on a stream that belongs to no capture.
    #[inline]
    pub(crate) fn outside_captures(stream: &'a Stream) -> Self {
        Self { stream, held: ManuallyDrop::new(None), _not_send: PhantomData }
    }

    /// The stream that the operation is enqueued on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Returns `true` if the operation is captured for a graph instead of run.
    #[must_use]
    #[inline]
    pub fn is_captured(&self) -> bool {
        self.scope().is_some()
    }

    /// Makes the graph of the capture keep `value`. Nothing happens if the operation is not captured.
    #[inline]
    pub fn keep<T: Any + Send + Sync>(&self, value: &Arc<T>) {
        if let Some(scope) = self.scope() {
            scope.keep(Key::Shared(Arc::as_ptr(value).addr()), || Arc::clone(value) as _);
        }
    }

    /// Adds memory that the capture has allocated, and that its graph frees at its end unless it is freed before. Returns `false` if the
    /// operation is not captured.
    ///
    /// # Safety
    ///
    /// - The captured work has allocated `address` on a stream of the capture.
    /// - Nobody frees it without [`AccessGuard::remove_allocation`].
    #[inline]
    pub unsafe fn add_allocation(&self, address: CUdeviceptr) -> bool {
        self.scope().is_some_and(|scope| scope.with(|seen| seen.allocations().push(address)).is_some())
    }

    /// Takes memory back that the graph would free at its end. Returns `false` if it is not an allocation of the capture, or was freed.
    ///
    /// # Safety
    ///
    /// The caller frees the memory in the capture, after all captured work that uses it.
    #[inline]
    pub unsafe fn remove_allocation(&self, address: CUdeviceptr) -> bool {
        let remove = |allocations: &mut Vec<CUdeviceptr>| {
            let index = allocations.iter().position(|known| *known == address);
            index.map(|index| allocations.swap_remove(index)).is_some()
        };
        self.scope().and_then(|scope| scope.with(|seen| remove(seen.allocations()))).unwrap_or(false)
    }

    /// The capture that the operation goes to.
    #[inline]
    pub(crate) fn scope(&self) -> Option<&Arc<Scope>> {
        self.held.as_ref()?.capture.as_ref()
    }

    /// Orders an access to leased memory, and holds it.
    #[inline]
    pub(super) fn hold(&mut self, leased: &Arc<Leased>, is_write: bool) -> Result<()> {
        leased.begin(self.stream, is_write)?;
        self.held.get_or_insert_default().leases.push((Arc::clone(leased), is_write));
        HELD.set(HELD.get() + 1);
        Ok(())
    }

    /// Begins an operation on the stream, unless it has begun or a launch is waiting.
    #[inline]
    pub(super) fn begin_operation(&mut self) -> bool {
        if let Some(held) = &*self.held
            && (held.is_operation || held.is_blocking)
        {
            return held.is_operation;
        }
        let has_begun = self.stream.sync_points().operations().begin();
        if has_begun {
            self.held.get_or_insert_default().is_operation = true;
            HELD.set(HELD.get() + 1);
        }
        has_begun
    }

    /// Returns `true` if the operation has begun on the stream.
    #[inline]
    pub(super) fn is_operation(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_operation)
    }

    /// Returns `true` if the operation has begun on the stream, and all its accesses to leased memory are without locks.
    #[inline]
    pub(super) fn holds_no_lock(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_operation && held.leases.is_empty())
    }

    /// Takes an access to leased memory out, for its end. Returns `false` if it was ordered before the memory was leased.
    #[inline]
    pub(super) fn take(&mut self, leased: &Arc<Leased>, is_write: bool) -> bool {
        let Some(held) = &mut *self.held else { return false };
        let is_it = |(known, write): &(Arc<Leased>, bool)| Arc::ptr_eq(known, leased) && *write == is_write;
        let Some(index) = held.leases.iter().rposition(is_it) else { return false };
        held.leases.swap_remove(index);
        HELD.set(HELD.get() - 1);
        true
    }

    /// Returns `true` if accesses of this operation are to leased memory.
    #[must_use]
    #[inline]
    pub fn holds_leases(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_operation || !held.leases.is_empty())
    }

    /// Enters the capture that the stream belongs to, if it is open.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&mut self) -> Result<()> {
        expect_not_ordering(OPERATION)?;
        if let Some(scope) = self.stream.scope()
            && scope.enter(is_nested())
        {
            self.held.get_or_insert_default().capture = Some(Arc::clone(scope));
            HELD.set(HELD.get() + 1);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        HELD.set(HELD.get() - held.leases.len() - usize::from(held.capture.is_some()) - usize::from(held.is_operation));
        if held.is_operation {
            self.stream.sync_points().operations().end();
        }
        held.leases.iter().for_each(|(leased, is_write)| leased.cancel(*is_write));
        held.capture.iter().for_each(|scope| scope.leave());
    }
}

impl Drop for AccessGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.held.is_some() {
            self.release();
        }
    }
}

/// Calls of the driver with locks of this module held, for as long as this exists. What a call observer does meanwhile on the same thread
/// must not need these locks.
#[derive(Debug)]
pub(crate) struct Ordering {
    was_ordering: bool,
    _not_send: PhantomData<*const ()>,
}

impl Ordering {
    #[inline]
    pub(crate) fn begin() -> Self {
        Self { was_ordering: IS_ORDERING.replace(true), _not_send: PhantomData }
    }
}

impl Drop for Ordering {
    #[inline]
    fn drop(&mut self) {
        IS_ORDERING.set(self.was_ordering);
    }
}

/// Returns `true` if this thread is in the middle of an access that others may be waiting for.
#[inline]
pub(super) fn is_nested() -> bool {
    HELD.get() > 0
}

/// Returns `true` if this thread holds locks of this module, so that this code runs in a call observer.
#[inline]
pub(super) fn is_ordering() -> bool {
    IS_ORDERING.get()
}

/// An argument error of `operation` if this thread holds locks of this module.
#[inline]
pub(crate) fn expect_not_ordering(operation: &'static str) -> Result<()> {
    if !is_ordering() {
        return Ok(());
    }
    Err(reentrant(operation))
}

/// An argument error of `operation`, which waits for accesses of other threads, if this thread is in the middle of one.
#[inline]
pub(crate) fn expect_idle(operation: &'static str) -> Result<()> {
    if is_ordering() || is_nested() { Err(reentrant(operation)) } else { Ok(()) }
}

#[cold]
fn reentrant(operation: &'static str) -> Error {
    let reason =
        "re-entrant use: this thread is in the middle of an access to device memory (called by a call observer)";
    Error::argument(operation, reason)
}
