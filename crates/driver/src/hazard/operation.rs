//! The gate: every operation that enqueues work on a stream begins here, and ends with the record
//! of its accesses.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use curium_sys::{CUdeviceptr, CUstream};

use super::lease::Leased;
use super::scope::Scope;
use super::sync_point::OPERATION;
use super::thread_state::{self, check_not_ordering, is_nested, is_ordering};
use crate::base::capture_guard::ON_THE_SCOPE;
use crate::base::kept_value::Key;
use crate::stream::until_done::until_done;
use crate::{AsRawStream as _, Driver, Result, Stream};

/// An operation that is being enqueued on a stream.
///
/// [`Stream::enqueue`], [`Stream::enqueue_uncaptured`] and [`Stream::enqueue_now`] create it once
/// they have checked what the calling thread and the stream capture. It carries the name of the
/// operation for errors, is the only safe access to the stream's handle
/// ([`Operation::raw_stream`]), and orders and records the [`Accesses`](super::Accesses) of the
/// operation.
///
/// While it exists, other threads cannot launch graphs that lease the memory, and the capture that
/// the stream belongs to does not end. Dropping it ends an access that was ordered but not
/// recorded. If it is forgotten ([`mem::forget`](std::mem::forget)), those launches wait forever,
/// and so does the end of the capture on another thread.
///
/// A capture whose closure returns while its own thread holds an operation of it ends with an
/// error, since it cannot wait for itself.
#[derive(Debug)]
pub struct Operation<'a> {
    stream: &'a Stream,
    name: &'static str,
    /// `None` if it holds nothing. [`Drop`] releases it, so dropping the field does nothing.
    held: ManuallyDrop<Option<Held>>,
    /// The counts of what a thread holds make this type `!Send`.
    _not_send: PhantomData<*const ()>,
}

/// The registration and the locks of an operation, for whose end other threads may wait.
#[derive(Debug, Default)]
pub(crate) struct Held {
    registration: Registration,
    /// In a box: an operation is moved often, and rarely has any.
    locks: Option<Box<Locks>>,
}

/// The registration of an operation on its stream ([`Registrations`](super::registrations)).
///
/// As large as a word, because padding would be copied piece by piece.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(usize)]
enum Registration {
    /// The operation has accessed no leased memory that needs no lock.
    #[default]
    Possible,
    /// Accesses on the owner stream need no lock.
    Registered,
    /// The driver call may wait for the stream, so accesses are locked one by one.
    Blocking,
}

#[derive(Debug, Default)]
struct Locks {
    capture: Option<Arc<Scope>>,
    /// Leased memory that is locked for the access, and `true` if it is written.
    leases: Vec<(Arc<Leased>, bool)>,
}

impl<'a> Operation<'a> {
    /// Creates an operation, which holds its capture.
    #[inline]
    pub(crate) fn new(stream: &'a Stream, name: &'static str, held: Option<Held>) -> Self {
        Self {
            stream,
            name,
            held: ManuallyDrop::new(held),
            _not_send: PhantomData,
        }
    }

    /// Checks the captures of a launch, whose operation was created in place without a check.
    #[cold]
    pub(crate) fn admit(&mut self) -> Result<()> {
        *self.held = self.stream.enter_capture(self.name, ON_THE_SCOPE)?;
        Ok(())
    }

    /// Declares that the driver call of the operation may block until earlier work on the stream
    /// has completed, as a copy between device and pageable memory does. Launches of graphs that do
    /// not lease the memory do not wait for it.
    #[must_use]
    #[inline]
    pub fn blocking(mut self) -> Self {
        let held = self.held.get_or_insert_default();
        if held.registration == Registration::Possible {
            held.registration = Registration::Blocking;
        }
        self
    }

    /// Returns the name of the operation.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the driver of the stream.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &'a Driver {
        self.stream.driver()
    }

    /// Returns the handle of the stream, for the calls that enqueue the operation.
    #[must_use]
    #[inline]
    pub fn raw_stream(&self) -> CUstream {
        self.stream.as_raw()
    }

    /// Returns the stream on which the operation is enqueued.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Returns `true` if the operation is being captured into a graph.
    #[must_use]
    #[inline]
    pub fn is_captured(&self) -> bool {
        self.scope().is_some()
    }

    /// Makes the graph of the capture keep `value` alive. Does nothing if the operation is not
    /// captured.
    #[inline]
    pub fn keep<T: Any + Send + Sync>(&self, value: &Arc<T>) {
        if self.held.is_some() {
            self.keep_captured(value);
        }
    }

    #[cold]
    fn keep_captured<T: Any + Send + Sync>(&self, value: &Arc<T>) {
        if let Some(scope) = self.scope() {
            let key = Key::Shared(Arc::as_ptr(value).addr());
            scope.keep(key, || Arc::clone(value) as _);
        }
    }

    /// Registers memory that the capture has allocated. Its graph frees the memory at its end,
    /// unless it is freed before. Returns `false` if the operation is not captured.
    ///
    /// # Safety
    ///
    /// - The captured work allocated `address` on a stream of the capture.
    /// - No code frees it without [`Operation::remove_allocation`].
    #[inline]
    pub unsafe fn add_allocation(&self, address: CUdeviceptr) -> bool {
        self.scope()
            .is_some_and(|scope| scope.with(|log| log.allocations.push(address)).is_some())
    }

    /// Deregisters memory that the graph would free at its end. Returns `false` if it is not an
    /// allocation of the capture, or was freed.
    ///
    /// # Safety
    ///
    /// The caller frees the memory in the capture, after all captured work that uses it.
    #[inline]
    pub unsafe fn remove_allocation(&self, address: CUdeviceptr) -> bool {
        let removed = self.scope().and_then(|scope| {
            scope.with(|log| {
                let allocations = &mut log.allocations;
                let index = allocations
                    .iter()
                    .position(|allocation| *allocation == address);
                index.map(|index| allocations.swap_remove(index))
            })
        });
        removed.flatten().is_some()
    }

    /// Returns the capture that receives the operation.
    #[inline]
    pub(crate) fn scope(&self) -> Option<&Arc<Scope>> {
        self.locks()?.capture.as_ref()
    }

    /// Begins an access to leased memory if it is known to need neither a wait nor a lock.
    #[inline]
    pub(super) fn begin_on_owner_stream(&mut self, leased: &Leased, is_write: bool) -> bool {
        leased.is_owner_stream(self.stream)
            && leased
                .lock
                .begin_on_owner_stream(is_write, || self.register())
    }

    /// Begins an access to leased memory, which locks the memory.
    #[inline]
    pub(super) fn begin(&mut self, leased: &Arc<Leased>, is_write: bool) -> Result<()> {
        leased
            .lock
            .begin(is_write, is_nested(), |history, others| {
                history.before(others, self.stream, is_write)
            })?;
        self.locks_mut().leases.push((Arc::clone(leased), is_write));
        thread_state::hold();
        Ok(())
    }

    /// Records an access to leased memory, and ends it.
    #[inline]
    pub(super) fn record(&mut self, leased: &Arc<Leased>, is_write: bool) {
        let is_lock_free = self.is_registered() && self.locks().is_none();
        if is_lock_free && leased.is_owner_stream(self.stream) {
            leased.lock.log.record_on_owner(self.stream, is_write);
        } else {
            self.record_locked(leased, is_write);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_locked(&mut self, leased: &Arc<Leased>, is_write: bool) {
        if let Some(scope) = self.scope() {
            scope.record(leased, self.stream, is_write);
        } else if is_ordering() {
            complete(self.stream);
        } else if self.unlock(leased, is_write) {
            leased.lock.end(is_write, |history, others| {
                history.record(others, self.stream, is_write);
            });
        } else {
            // The operation is registered, or the memory was leased after the access was ordered.
            let mut guard = leased.lock.lock();
            let history = &leased.lock.log;
            history.record(guard.locked(), self.stream, is_write);
        }
    }

    /// Removes the lock of an access to leased memory, which the caller ends. Returns `false` if
    /// there is none.
    fn unlock(&mut self, leased: &Arc<Leased>, is_write: bool) -> bool {
        let Some(Held {
            locks: Some(locks), ..
        }) = &mut *self.held
        else {
            return false;
        };
        let index = locks
            .leases
            .iter()
            .rposition(|(locked, write)| Arc::ptr_eq(locked, leased) && *write == is_write);
        if let Some(index) = index {
            locks.leases.swap_remove(index);
            thread_state::release(1);
        }
        index.is_some()
    }

    /// Registers the operation on the stream, unless it may block or a launch waits for the
    /// operations of the stream. Returns `true` if it is registered.
    #[inline]
    fn register(&mut self) -> bool {
        if self.registration() == Registration::Possible
            && self.stream.sync_points().registrations().begin()
        {
            self.held.get_or_insert_default().registration = Registration::Registered;
            thread_state::hold();
        }
        self.is_registered()
    }

    #[inline]
    fn registration(&self) -> Registration {
        self.held
            .as_ref()
            .map_or(Registration::Possible, |held| held.registration)
    }

    /// Returns `true` if the operation is registered on the stream.
    #[inline]
    fn is_registered(&self) -> bool {
        self.registration() == Registration::Registered
    }

    #[inline]
    fn locks(&self) -> Option<&Locks> {
        self.held.as_ref()?.locks.as_deref()
    }

    /// Returns `true` if the operation accesses leased memory.
    #[must_use]
    #[inline]
    pub fn holds_leases(&self) -> bool {
        self.is_registered() || self.locks().is_some_and(|locks| !locks.leases.is_empty())
    }

    /// Returns the locks, creating an empty set if there are none.
    fn locks_mut(&mut self) -> &mut Locks {
        self.held
            .get_or_insert_default()
            .locks
            .get_or_insert_default()
    }

    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        if self.is_registered() {
            thread_state::release(1);
            self.stream.sync_points().registrations().end();
        }
        // Releases the locks.
        *self.held = None;
    }
}

/// Waits until the work on `stream` has completed, so that no later access has to wait for it. An
/// error is one of earlier work: after it, nothing runs that a later access would have to wait for.
#[cold]
pub(super) fn complete(stream: &Stream) {
    until_done(stream).unwrap_or_default();
}

impl Held {
    /// Enters the capture that `stream` belongs to, if it has not ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn for_capture(stream: &Stream) -> Result<Option<Self>> {
        check_not_ordering(OPERATION)?;
        let Some(scope) = stream.scope().filter(|scope| scope.enter(is_nested())) else {
            return Ok(None);
        };
        thread_state::hold();
        let locks = Locks {
            capture: Some(Arc::clone(scope)),
            leases: Vec::new(),
        };
        Ok(Some(Self {
            registration: Registration::Possible,
            locks: Some(Box::new(locks)),
        }))
    }
}

impl Drop for Locks {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        thread_state::release(self.leases.len() + usize::from(self.capture.is_some()));
        for (leased, is_write) in &self.leases {
            leased.lock.end(*is_write, |_, _| {});
        }
        if let Some(scope) = &self.capture {
            scope.leave();
        }
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.held.is_some() {
            self.release();
        }
    }
}
