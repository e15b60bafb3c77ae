//! The gate: every operation that enqueues work on a stream begins here, and ends with the record of its accesses.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUdeviceptr, CUstream};
use smallvec::SmallVec;

use super::lease::Leased;
use super::scope::{Key, Scope};
use super::sync_point::OPERATION;
use super::thread_state::{self, expect_not_ordering, is_nested};
use crate::base::capture_guard::{self, ON_THE_SCOPE};
use crate::{AsRawStream as _, Driver, Result, Stream};

/// An operation that is being enqueued on a stream.
///
/// [`Stream::enqueue`], [`Stream::enqueue_uncaptured`] and [`Stream::enqueue_now`] create it once they have checked what the
/// calling thread and the stream capture. It carries the name of the operation for errors, is the only safe access to the
/// stream's handle ([`Operation::raw_stream`]), and orders and records the [`Accesses`](super::Accesses) of the operation.
///
/// While it exists, other threads cannot launch graphs that lease the memory, and the capture that the stream belongs to
/// does not end. Dropping it ends an access that was ordered but not recorded. If it is forgotten
/// ([`mem::forget`](std::mem::forget)), those launches wait forever, and so does the end of the capture on another
/// thread.
///
/// A capture whose closure returns while its own thread holds an operation of it ends with an error, since it cannot wait
/// for itself.
#[derive(Debug)]
pub struct Operation<'a> {
    stream: &'a Stream,
    name: &'static str,
    /// In a box: an operation is moved often, and rarely holds anything.
    held: Option<Box<Held>>,
    /// The counts of what a thread holds make this type `!Send`.
    _not_send: PhantomData<*const ()>,
}

/// What an operation holds, which other threads may wait for.
#[derive(Debug, Default)]
struct Held {
    capture: Option<Arc<Scope>>,
    /// Accesses to leased memory that are not recorded yet.
    accesses: SmallVec<[HeldAccess; 4]>,
}

/// An access in progress to leased memory.
#[derive(Debug)]
struct HeldAccess {
    leased: Arc<Leased>,
    is_write: bool,
}

impl Stream {
    /// Begins an operation that a graph can contain. `name` is the function that the user called, such as
    /// `DeviceBuffer::fill`.
    ///
    /// # Errors
    ///
    /// An argument error if this thread is in a [capture closure](crate::Graph::capture) and the stream is not part of
    /// that capture: the work would run immediately and be missing from the graph. An argument error if the stream belongs
    /// to a capture and a [call observer](crate::observe_calls) calls this while its thread is ordering another access.
    #[inline]
    pub fn enqueue(&self, name: &'static str) -> Result<Operation<'_>> {
        self.enqueue_or(name, ON_THE_SCOPE)
    }

    /// Begins an operation like [`Stream::enqueue`]. `instead` is the advice of the error: what can be captured in its
    /// place.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue`].
    #[inline]
    pub fn enqueue_or(&self, name: &'static str, instead: &str) -> Result<Operation<'_>> {
        // Only the locks come from the rare path, so that an operation outside captures is written once, and not copied.
        let held = if self.is_in_capture() {
            Operation::enter_capture(self, name, instead)?
        } else {
            None
        };
        Ok(Operation {
            stream: self,
            name,
            held,
            _not_send: PhantomData,
        })
    }

    /// Begins the release of memory or of a handle in the order of the stream. Destructors, which cannot fail, may do this
    /// in every capture closure.
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
    /// An argument error if the stream belongs to a [capture](crate::Graph::capture) in progress, or if this thread is in
    /// a capture closure.
    #[inline]
    pub fn enqueue_uncaptured(&self, name: &'static str) -> Result<Operation<'_>> {
        if self.is_in_capture() {
            self.expect_uncaptured(name)?;
        }
        Ok(Operation::new(self, name))
    }

    /// Begins an operation that must be executed, and not captured, even if other code captures the stream through its
    /// handle. `instead` is the advice of the error: what can be captured in its place.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::enqueue_uncaptured`]; an argument error if other code captures the stream; an error returned by
    /// the driver.
    pub fn enqueue_now(&self, name: &'static str, instead: &str) -> Result<Operation<'_>> {
        self.expect_recorded(name, instead)?;
        if self.is_capturing()? {
            return Err(capture_guard::refused_on_captured(name, instead));
        }
        Ok(Operation::new(self, name))
    }
}

impl<'a> Operation<'a> {
    /// Creates the operation of a launch in place, because launches are the most frequent operations. The kernel
    /// [admits](Self::admit) it before it gives its handle.
    #[inline]
    pub(crate) fn launch(stream: &'a Stream) -> Self {
        Self::new(stream, "Kernel::launch")
    }

    /// Checks the captures of a launch, as [`Stream::enqueue`] does.
    #[cold]
    pub(crate) fn admit(&mut self) -> Result<()> {
        self.stream.expect_recorded(self.name, ON_THE_SCOPE)?;
        self.enter()
    }

    #[inline]
    fn new(stream: &'a Stream, name: &'static str) -> Self {
        Self {
            stream,
            name,
            held: None,
            _not_send: PhantomData,
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_capture(
        stream: &Stream,
        name: &'static str,
        instead: &str,
    ) -> Result<Option<Box<Held>>> {
        stream.expect_recorded(name, instead)?;
        let mut operation = Operation::new(stream, name);
        operation.enter()?;
        Ok(operation.held.take())
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

    /// Makes the graph of the capture keep `value` alive. Does nothing if the operation is not captured.
    #[inline]
    pub fn keep<T: Any + Send + Sync>(&self, value: &Arc<T>) {
        if let Some(scope) = self.scope() {
            scope.keep(Key::Shared(Arc::as_ptr(value).addr()), || {
                Arc::clone(value) as _
            });
        }
    }

    /// Registers memory that the capture has allocated. Its graph frees the memory at its end, unless it is freed
    /// before. Returns `false` if the operation is not captured.
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

    /// Deregisters memory that the graph would free at its end. Returns `false` if it is not an allocation of the
    /// capture, or was freed.
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
        self.held.as_ref()?.capture.as_ref()
    }

    /// Begins an access to leased memory.
    #[inline]
    pub(super) fn begin(&mut self, leased: &Arc<Leased>, is_write: bool) -> Result<()> {
        leased.begin(self.stream, is_write)?;
        let leased = Arc::clone(leased);
        let held = self.held.get_or_insert_default();
        held.accesses.push(HeldAccess { leased, is_write });
        thread_state::hold();
        Ok(())
    }

    /// Ends an access to leased memory, which was recorded. Does nothing if it began before the memory was leased.
    #[inline]
    pub(super) fn end(&mut self, leased: &Arc<Leased>, is_write: bool) {
        let Some(held) = &mut self.held else {
            return;
        };
        let index = held
            .accesses
            .iter()
            .position(|held| held.is_write == is_write && Arc::ptr_eq(&held.leased, leased));
        if let Some(index) = index {
            held.accesses.swap_remove(index);
            thread_state::release(1);
            leased.end(is_write);
        }
    }

    /// Returns `true` if the operation accesses leased memory.
    #[must_use]
    #[inline]
    pub fn holds_leases(&self) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| !held.accesses.is_empty())
    }

    /// Enters the capture that the stream belongs to, if it has not ended.
    #[cold]
    #[inline(never)]
    fn enter(&mut self) -> Result<()> {
        expect_not_ordering(OPERATION)?;
        if let Some(scope) = self.stream.scope()
            && scope.enter(is_nested())
        {
            self.held.get_or_insert_default().capture = Some(Arc::clone(scope));
            thread_state::hold();
        }
        Ok(())
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.capture.is_some() || !self.accesses.is_empty() {
            self.release();
        }
    }
}

impl Held {
    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        thread_state::release(self.accesses.len() + usize::from(self.capture.is_some()));
        for access in self.accesses.drain(..) {
            access.leased.end(access.is_write);
        }
        if let Some(scope) = self.capture.take() {
            scope.leave();
        }
    }
}
