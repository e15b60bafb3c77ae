//! Groups: several operations that NCCL starts as one.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_driver::extend::{Entered, recorded_capture};
use curium_driver::hazard::Operation as StreamOperation;
use curium_driver::sys::CUcontext;
use curium_driver::{Stream, emit_event};
use smallvec::SmallVec;

use crate::communicator::Communicator;
use crate::communicator::shared::Shared;
use crate::communicator::use_guard::UseGuard;
use crate::error::{ArgumentError, Error, Result, call};
use crate::library::Nccl;
use crate::operation::{Call, Description, GroupState, Operands, Operation};
use crate::reduction::CreatedOperator;

thread_local! {
    /// `true` while this thread is in a group, whose operations NCCL starts at its end.
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
}

/// The number of operations without an allocation: that of an exchange with another rank.
const INLINE: usize = 2;

/// An open group, to which operations are added.
///
/// The memory of the operations stays borrowed until the group has ended, as do the streams.
#[derive(Debug)]
pub struct Group<'a> {
    library: &'a Nccl,
    operations: SmallVec<[Added<'a>; INLINE]>,
    /// Each communicator of the operations once.
    used: SmallVec<[UseGuard<Arc<Shared>>; 1]>,
    /// The context of the first operation, which is current until the group has ended.
    entered: Option<(CUcontext, Entered<'a>)>,
    /// The capture that the thread recorded when the group started. An operation of a group keeps
    /// its capture open, so the end of a capture within the group would wait for the end of the
    /// group.
    capture: usize,
    is_open: bool,
}

/// The parts of an added operation that the end of its group needs.
struct Added<'a> {
    /// The text for the errors of a communicator with a timeout; `None` for another one.
    description: Option<Box<Description>>,
    operands: Operands<'a>,
    stream_operation: StreamOperation<'a>,
    /// The index of its communicator in [`Group::used`].
    communicator: usize,
    operator: CreatedOperator,
}

impl Nccl {
    /// Starts the operations that `operations` adds to the group as one: they progress together. A
    /// group is required for a thread with several ranks, and for transfers that depend on each
    /// other.
    ///
    /// The group ends when the closure returns, fails or panics: in each case, the operations that
    /// were added are started.
    ///
    /// CUDA: `ncclGroupStart`, `ncclGroupEnd`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] within another group. The error of the closure, or else that of NCCL, or
    /// [`Error::Timeout`] as for [`Communicator::enqueue`].
    ///
    /// ```
    /// # let config = curium_sim::Config::new().with_devices(2);
    /// # let driver = curium_sim::Simulator::new(config)?.driver::<curium_driver::Driver>()?;
    /// # let nccl = curium_sim_libraries::nccl();
    /// # let contexts = [driver.device(0)?.primary_context()?, driver.device(1)?.primary_context()?];
    /// # let streams = [contexts[0].stream()?, contexts[1].stream()?];
    /// # let mut ranks = curium_nccl::Communicator::all(&nccl, &contexts)?;
    /// use curium_memory::DeviceBuffer;
    /// use curium_nccl::Operation;
    ///
    /// let x = DeviceBuffer::from_slice(&streams[0], &[1_u32, 2, 3])?;
    /// let mut y = DeviceBuffer::<u32>::zeroed(&streams[1], 3)?;
    /// nccl.group(|group| {
    ///     group.enqueue(&mut ranks[0], &streams[0], Operation::send(&x, 1))?;
    ///     group.enqueue(&mut ranks[1], &streams[1], Operation::receive(&mut y, 0))
    /// })?;
    /// assert_eq!(y.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "ncclGroupStart")]
    #[doc(alias = "ncclGroupEnd")]
    #[inline]
    pub fn group<'a, R>(
        &'a self,
        operations: impl FnOnce(&mut Group<'a>) -> Result<R>,
    ) -> Result<R> {
        // The group releases the communicators before the caller's values are dropped. It is large,
        // and is not moved.
        let (result, ended) = {
            let mut group = Group::new(self);
            group.start()?;
            let result = operations(&mut group);
            (result, group.end())
        };
        result.and_then(|value| ended.map(|()| value))
    }
}

impl<'a> Group<'a> {
    #[inline(always)]
    fn new(library: &'a Nccl) -> Self {
        Self {
            library,
            operations: SmallVec::new(),
            used: SmallVec::new(),
            entered: None,
            capture: recorded_capture(),
            is_open: false,
        }
    }

    #[inline(always)]
    fn start(&mut self) -> Result<()> {
        check_none("Nccl::group")?;
        // SAFETY: the group ends when this value does.
        unsafe { call!(self.library.api(), ncclGroupStart()) }?;
        IS_OPEN.set(true);
        self.is_open = true;
        Ok(())
    }

    /// Adds an operation on a stream of the communicator's device.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`]. [`Error::Argument`] in a capture that began within the
    /// group.
    pub fn enqueue(
        &mut self,
        communicator: &mut Communicator,
        stream: &'a Stream,
        mut operation: Operation<'a>,
    ) -> Result<()> {
        let name = operation.name();
        let membership = communicator.membership();
        let shared = communicator.shared();
        if !self.library.is_same(&shared.library) {
            return Err(ArgumentError::refused(
                name,
                "the communicator belongs to another library than the group",
            ));
        }
        communicator.check_device(name, stream)?;
        let mut stream_operation = stream.enqueue(name)?;
        if recorded_capture() != self.capture {
            return Err(ArgumentError::refused(
                name,
                "the group was started outside this capture; start it within the capture",
            ));
        }
        operation.form.check_element(self.library)?;
        let count = operation.form.count(membership, GroupState::InGroup)?;
        let index = self.begin_use(shared, name)?;
        let _entered = self.enter(shared, stream)?;
        let raw = self.used[index].raw();
        shared.keep(&stream_operation, &operation.operands);
        // SAFETY: `launched` follows the end of the group.
        unsafe { operation.operands.bind(&mut stream_operation) }?;
        let stream = stream_operation.raw_stream().cast();
        let addresses = operation.addresses(membership, count);
        let call = Call {
            api: shared.api(),
            communicator: raw,
            stream,
            membership,
            count,
            addresses,
        };
        // SAFETY: the communicator is in use, the stream is live and of its device, and the memory
        // is bound, until the group has ended.
        let (operator, result) = match unsafe { operation.form.call(call) } {
            Ok(operator) => (operator, Ok(())),
            Err(error) => (CreatedOperator::NONE, Err(error)),
        };
        // A failure may come after some work was added.
        let operands = operation.operands;
        let description = shared
            .timeout
            .map(|_| Box::new(operation.form.description(membership.rank, count)));
        self.operations.push(Added {
            description,
            operands,
            stream_operation,
            communicator: index,
            operator,
        });
        result
    }

    /// Starts the use of the communicator by the group, unless it has begun, and returns its index
    /// in `used`. Returns an error if the communicator was finalized or aborted.
    #[inline]
    fn begin_use(&mut self, shared: &Arc<Shared>, operation: &'static str) -> Result<usize> {
        if let Some(index) = self
            .used
            .iter()
            .position(|use_guard| Arc::ptr_eq(use_guard.shared(), shared))
        {
            self.used[index].check_live(operation)?;
            return Ok(index);
        }
        self.used
            .push(UseGuard::acquire(Arc::clone(shared), operation)?);
        Ok(self.used.len() - 1)
    }

    /// Makes the context of the communicator current: that of the first operation until the group
    /// has ended, another one until the result is dropped.
    #[inline]
    fn enter<'s>(&mut self, shared: &'s Shared, stream: &'a Stream) -> Result<Option<Entered<'s>>> {
        let raw = shared.context.as_raw();
        match &self.entered {
            Some((current, _)) if *current == raw => Ok(None),
            None if stream.context().as_raw() == raw => {
                self.entered = Some((raw, stream.context().enter()?));
                Ok(None)
            }
            _ => Ok(Some(shared.context.enter()?)),
        }
    }

    /// Ends the open group: starts its operations, and records their accesses.
    #[inline(always)]
    fn end(&mut self) -> Result<()> {
        self.is_open = false;
        let api = self.library.api();
        let ended = {
            let first = self.used.first().filter(|_| self.entered.is_none());
            // Without the context, the group ends as well.
            let _entered = first.and_then(|use_guard| use_guard.shared().context.enter().ok());
            // SAFETY: the group was started on this thread, and what its operations use is borrowed
            // or kept.
            unsafe { call!(api, ncclGroupEnd()) }
        };
        self.entered = None;
        IS_OPEN.set(false);
        let waits = self
            .used
            .iter()
            .any(|use_guard| use_guard.shared().timeout.is_some());
        if waits {
            self.settle(ended)
        } else {
            self.finish(ended)
        }
    }

    #[cold]
    fn end_in_panic(&mut self) {
        let ended = self.end();
        // A subscriber of `tracing` may use the communicators.
        self.release();
        if let Err(error) = ended {
            emit_event!(ERROR, %error, "a group failed at the end of a panic");
        }
    }

    /// Waits until a non-blocking group has enqueued its operations, and used their operators, and
    /// records their accesses.
    #[cold]
    fn settle(&mut self, ended: Result<()>) -> Result<()> {
        let communicators: Vec<_> = self
            .used
            .iter()
            .map(|use_guard| Arc::clone(use_guard.shared()))
            .collect();
        let settled = communicators
            .iter()
            .map(|shared| shared.settle("Nccl::group"))
            .fold(Ok(()), Result::and);
        let has_timed_out = matches!(settled, Err(Error::Timeout(_)));
        let result = self.finish(ended.and(settled));
        self.release();
        if has_timed_out {
            // No call uses them any more.
            communicators.iter().try_for_each(|shared| shared.abort())?;
        }
        result
    }

    /// Ends the accesses and the uses of the communicators.
    fn release(&mut self) {
        self.operations.clear();
        self.used.clear();
    }

    /// Records the accesses of the operations.
    fn finish(&mut self, mut result: Result<()>) -> Result<()> {
        for added in &mut self.operations {
            if let Err(error) = added.finish(&self.used[added.communicator]) {
                result = result.and(Err(error));
            }
        }
        result
    }
}

impl Added<'_> {
    /// Records the accesses of the operation, after the group has ended.
    fn finish(&mut self, use_guard: &UseGuard<Arc<Shared>>) -> Result<()> {
        // SAFETY: `bind` succeeded with this operation.
        unsafe { self.operands.launched(&mut self.stream_operation) };
        let shared = use_guard.shared();
        if let Some(description) = self.description.take()
            && !self.stream_operation.is_captured()
        {
            shared.record(self.stream_operation.stream(), *description)?;
        }
        // SAFETY: the group has ended, and the communicator is in use.
        unsafe { self.operator.destroy(shared.api(), use_guard.raw()) }
    }
}

impl fmt::Debug for Added<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream_operation.name().fmt(formatter)
    }
}

impl Drop for Group<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.end_in_panic();
        }
    }
}

/// Returns the identity of the calling thread, which is not 0: an address within the thread's data
/// that every operation reads anyway.
#[inline(always)]
pub(crate) fn thread_identity() -> usize {
    IS_OPEN.with(|is_open| ptr::from_ref(is_open).addr())
}

/// Returns `true` if the calling thread is in a group.
#[inline]
pub(crate) fn is_open() -> bool {
    IS_OPEN.get()
}

/// Returns an error if the calling thread is in a group.
#[inline]
pub(crate) fn check_none(operation: &'static str) -> Result<()> {
    if is_open() {
        Err(within(operation))
    } else {
        Ok(())
    }
}

#[cold]
fn within(operation: &'static str) -> Error {
    ArgumentError::refused(
        operation,
        "called within a group; use the group's own method, or end it first",
    )
}
