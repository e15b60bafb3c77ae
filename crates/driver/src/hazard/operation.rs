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
use super::thread_state::{self, check_not_ordering, is_nested};
use crate::base::capture_guard::{self, ON_THE_SCOPE};
use crate::base::kept_value::Key;
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
    /// [`Drop`] releases it, so dropping the field does nothing.
    held: ManuallyDrop<Held>,
    /// The counts of what a thread holds make this type `!Send`.
    _not_send: PhantomData<*const ()>,
}

/// The locks of an operation, which other threads may wait for.
#[derive(Debug)]
enum Held {
    /// No lock: no graph leases the memory, and the stream belongs to no capture.
    Nothing,
    /// No lock, and the driver call may wait for the stream: accesses to leased memory are locked
    /// one by one.
    Blocking,
    /// The operation is registered on its stream: its accesses to leased memory need no lock.
    Registered,
    /// Locks of a capture or of leased memory, in a box: an operation is moved often, and rarely
    /// has any.
    Locks(Box<Locks>),
}

#[derive(Debug, Default)]
struct Locks {
    capture: Option<Arc<Scope>>,
    /// As for [`Held::Blocking`].
    is_blocking: bool,
    /// As for [`Held::Registered`], for accesses that are not in `leases`.
    is_registered: bool,
    /// Leased memory that is locked for the access, and `true` if it is written.
    leases: Vec<(Arc<Leased>, bool)>,
}

impl Stream {
    /// Begins an operation that a graph can contain. `name` is the function that the user called,
    /// such as `DeviceBuffer::fill`.
    ///
    /// # Errors
    ///
    /// An argument error if this thread is in a [capture closure](crate::Graph::capture) and the
    /// stream is not part of that capture: the work would run immediately and be missing from the
    /// graph. An argument error if the stream belongs to a capture and a
    /// [call observer](crate::observe_calls) calls this while its thread is ordering another
    /// access.
    #[inline]
    pub fn enqueue(&self, name: &'static str) -> Result<Operation<'_>> {
        self.enqueue_or(name, ON_THE_SCOPE)
    }

    /// Begins an operation like [`Stream::enqueue`]. `instead` is the advice of the error: what can
    /// be captured in its place.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue`].
    #[inline]
    pub fn enqueue_or(&self, name: &'static str, instead: &str) -> Result<Operation<'_>> {
        // Only the locks come from the rare path, so that an operation outside captures is written
        // once, and not copied.
        let held = if self.is_in_capture() {
            Operation::enter_capture(self, name, instead)?
        } else {
            Held::Nothing
        };
        Ok(Operation {
            stream: self,
            name,
            held: ManuallyDrop::new(held),
            _not_send: PhantomData,
        })
    }

    /// Begins the release of memory or of a handle in the order of the stream. Destructors, which
    /// cannot fail, may do this in every capture closure.
    ///
    /// # Errors
    ///
    /// An argument error in a [call observer](crate::observe_calls), as for [`Stream::enqueue`].
    #[inline]
    pub fn enqueue_release(&self, name: &'static str) -> Result<Operation<'_>> {
        let mut operation = Operation::new(self, name);
        if self.scope().is_some() {
            operation.enter()?;
        }
        Ok(operation)
    }

    /// Begins an operation that no graph can contain.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to a [capture](crate::Graph::capture) in progress,
    /// or if this thread is in a capture closure.
    #[inline]
    pub fn enqueue_uncaptured(&self, name: &'static str) -> Result<Operation<'_>> {
        if self.is_in_capture() {
            self.check_uncaptured(name)?;
        }
        Ok(Operation::new(self, name))
    }

    /// Begins an operation that must be executed, and not captured, even if other code captures the
    /// stream through its handle. `instead` is the advice of the error: what can be captured in its
    /// place.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue_uncaptured`]; an argument error if other code captures the stream;
    /// an error returned by the driver.
    pub fn enqueue_now(&self, name: &'static str, instead: &str) -> Result<Operation<'_>> {
        self.check_recorded(name, instead)?;
        if self.is_capturing()? {
            return Err(capture_guard::refused_on_captured(name, instead));
        }
        Ok(Operation::new(self, name))
    }
}

/// Checks of operations that enqueue nothing yet, or nothing themselves.
impl Stream {
    /// Returns the error of [`Stream::enqueue_or`], without beginning an operation.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue`].
    #[inline]
    pub fn check_enqueue(&self, name: &'static str, instead: &str) -> Result<()> {
        self.enqueue_or(name, instead).map(drop)
    }

    /// Returns the error of [`Stream::enqueue_uncaptured`], without beginning an operation.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue_uncaptured`].
    #[inline]
    pub fn check_enqueue_uncaptured(&self, name: &'static str) -> Result<()> {
        self.enqueue_uncaptured(name).map(drop)
    }

    /// Returns the error of [`Stream::enqueue_now`], without beginning an operation.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue_now`].
    #[inline]
    pub fn check_enqueue_now(&self, name: &'static str, instead: &str) -> Result<()> {
        self.enqueue_now(name, instead).map(drop)
    }
}

impl<'a> Operation<'a> {
    /// Creates the operation of a launch in place, because launches are the most frequent
    /// operations. `kernel::admission` checks its captures before it gives it to anyone.
    #[inline]
    pub(crate) fn launch(stream: &'a Stream) -> Self {
        Self::new(stream, "Kernel::launch")
    }

    /// Checks the captures of a launch, as [`Stream::enqueue`] does.
    #[cold]
    pub(crate) fn admit(&mut self) -> Result<()> {
        self.stream.check_recorded(self.name, ON_THE_SCOPE)?;
        self.enter()
    }

    #[inline]
    fn new(stream: &'a Stream, name: &'static str) -> Self {
        Self {
            stream,
            name,
            held: ManuallyDrop::new(Held::Nothing),
            _not_send: PhantomData,
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_capture(stream: &Stream, name: &'static str, instead: &str) -> Result<Held> {
        stream.check_recorded(name, instead)?;
        let mut operation = Operation::new(stream, name);
        operation.enter()?;
        Ok(std::mem::replace(&mut *operation.held, Held::Nothing))
    }

    /// Declares that the driver call of the operation may block until earlier work on the stream
    /// has completed, as a copy between device and pageable memory does. Launches of graphs that do
    /// not lease the memory do not wait for it.
    #[must_use]
    #[inline]
    pub fn blocking(mut self) -> Self {
        match &mut *self.held {
            Held::Locks(locks) => locks.is_blocking = true,
            _ => self.held = ManuallyDrop::new(Held::Blocking),
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
        if let Some(scope) = self.scope() {
            scope.keep(Key::Shared(Arc::as_ptr(value).addr()), || {
                Arc::clone(value) as _
            });
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
        if let Held::Locks(locks) = &*self.held {
            locks.capture.as_ref()
        } else {
            None
        }
    }

    /// Begins an access to leased memory, which locks the memory.
    #[inline]
    pub(super) fn begin(&mut self, leased: &Arc<Leased>, is_write: bool) -> Result<()> {
        leased.begin(self.stream, is_write)?;
        self.locks().leases.push((Arc::clone(leased), is_write));
        thread_state::hold();
        Ok(())
    }

    /// Returns `true` if the operation is registered on the stream, and registers it unless it may
    /// block or a launch waits for the operations of the stream.
    #[inline]
    pub(super) fn register(&mut self) -> bool {
        match &*self.held {
            Held::Nothing => {
                let has_begun = self.count_registration();
                if has_begun {
                    // The old value owns nothing, and is not dropped.
                    self.held = ManuallyDrop::new(Held::Registered);
                }
                has_begun
            }
            Held::Blocking => false,
            Held::Registered => true,
            Held::Locks(_) => self.register_with_locks(),
        }
    }

    #[cold]
    #[inline(never)]
    fn register_with_locks(&mut self) -> bool {
        let has_begun =
            self.is_registered() || !self.locks().is_blocking && self.count_registration();
        self.locks().is_registered = has_begun;
        has_begun
    }

    #[inline]
    fn count_registration(&self) -> bool {
        let has_begun = self.stream.sync_points().registrations().begin();
        if has_begun {
            thread_state::hold();
        }
        has_begun
    }

    /// Returns `true` if the operation is registered on the stream.
    #[inline]
    pub(super) fn is_registered(&self) -> bool {
        match &*self.held {
            Held::Nothing | Held::Blocking => false,
            Held::Registered => true,
            Held::Locks(locks) => locks.is_registered,
        }
    }

    /// Returns `true` if the operation is registered on the stream and holds no lock.
    #[inline]
    pub(super) fn holds_no_lock(&self) -> bool {
        matches!(*self.held, Held::Registered)
    }

    /// Removes an access to leased memory, to end it. Returns `false` if it was ordered before the
    /// memory was leased.
    #[inline]
    pub(super) fn take(&mut self, leased: &Arc<Leased>, is_write: bool) -> bool {
        let Held::Locks(locks) = &mut *self.held else {
            return false;
        };
        let index = locks
            .leases
            .iter()
            .rposition(|(held, write)| Arc::ptr_eq(held, leased) && *write == is_write);
        let Some(index) = index else {
            return false;
        };
        locks.leases.swap_remove(index);
        thread_state::release(1);
        true
    }

    /// Returns `true` if the operation accesses leased memory.
    #[must_use]
    #[inline]
    pub fn holds_leases(&self) -> bool {
        self.is_registered()
            || matches!(&*self.held, Held::Locks(locks) if !locks.leases.is_empty())
    }

    /// Enters the capture that the stream belongs to, if it has not ended.
    #[cold]
    #[inline(never)]
    fn enter(&mut self) -> Result<()> {
        check_not_ordering(OPERATION)?;
        if let Some(scope) = self.stream.scope()
            && scope.enter(is_nested())
        {
            self.locks().capture = Some(Arc::clone(scope));
            thread_state::hold();
        }
        Ok(())
    }

    /// Returns the locks, creating an empty set if there are none.
    fn locks(&mut self) -> &mut Locks {
        if !matches!(*self.held, Held::Locks(_)) {
            let is_blocking = matches!(*self.held, Held::Blocking);
            let locks = Locks {
                is_blocking,
                is_registered: self.is_registered(),
                ..Locks::default()
            };
            *self.held = Held::Locks(Box::new(locks));
        }
        let Held::Locks(locks) = &mut *self.held else {
            unreachable!("the locks were created above")
        };
        locks
    }

    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        match &mut *self.held {
            Held::Nothing | Held::Blocking => {}
            Held::Registered => self.deregister(),
            Held::Locks(locks) => {
                let locks = std::mem::take(&mut **locks);
                *self.held = Held::Nothing;
                self.unlock(&locks);
            }
        }
    }

    #[inline]
    fn deregister(&self) {
        thread_state::release(1);
        self.stream.sync_points().registrations().end();
    }

    #[cold]
    #[inline(never)]
    fn unlock(&self, locks: &Locks) {
        if locks.is_registered {
            self.deregister();
        }
        thread_state::release(locks.leases.len() + usize::from(locks.capture.is_some()));
        for (leased, is_write) in &locks.leases {
            leased.cancel(*is_write);
        }
        if let Some(scope) = &locks.capture {
            scope.leave();
        }
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(*self.held, Held::Nothing | Held::Blocking) {
            self.release();
        }
    }
}
