//! Communicators: the ranks that exchange data.

mod abort;
mod collectives;
mod connecting;
mod create;
mod finalize;
mod grow;
mod options;
mod outstanding;
mod registration;
pub(crate) mod shared;
mod split;
pub(crate) mod use_guard;
mod wake;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use curium_driver::{Context, Stream};

pub use self::abort::AbortHandle;
pub use self::connecting::Connecting;
pub use self::finalize::Finalizing;
pub use self::options::CommunicatorOptions;
pub use self::registration::{DeviceMemory, RegisteredBuffer};
use self::shared::{LIVE, Ownership, Shared, entered};
use self::use_guard::UseGuard;
use crate::error::{ArgumentError, Result};
use crate::group;
use crate::library::Nccl;
use crate::operation::{Call, GroupState, Membership, Operation};
use crate::sys::ncclComm_t;

/// One rank of a communicator: a device among those that exchange data.
///
/// Operations are enqueued on a stream and return before they have run. Their memory may be in
/// buffers of any stream: operations wait for earlier accesses on the device, and later accesses
/// wait for them, as for kernels.
///
/// NCCL allows one thread at a time to use a communicator, so operations borrow it exclusively.
///
/// In a capture (`Graph::capture`), pass the capture scope as the stream: operations become nodes.
/// Every rank captures and launches the same operations. The graph keeps the communicator and
/// leases the memory.
///
/// Dropping a communicator waits until the operations of all ranks have completed, or aborts it if
/// one has failed.
///
/// ```
/// # let config = curium_sim::Config::new().with_devices(2);
/// # let driver = curium_sim::Simulator::new(config)?.driver::<curium_driver::Driver>()?;
/// # let nccl = curium_sim_libraries::nccl();
/// # /*
/// let driver = Driver::load()?;
/// let nccl = Nccl::load()?;
/// # */
/// use curium_memory::DeviceBuffer;
/// use curium_nccl::{Communicator, Operation, Reduction};
///
/// // One process with two devices: one communicator for each.
/// let contexts = [driver.device(0)?.primary_context()?, driver.device(1)?.primary_context()?];
/// let streams = [contexts[0].stream()?, contexts[1].stream()?];
/// let mut ranks = Communicator::all(&nccl, &contexts)?;
/// let mut x = [DeviceBuffer::from_slice(&streams[0], &[1.0_f32, 2.0])?, DeviceBuffer::from_slice(&streams[1], &[3.0, 4.0])?];
///
/// // A thread that has several ranks enqueues their operations in a group.
/// nccl.group(|group| {
///     for ((rank, stream), x) in ranks.iter_mut().zip(&streams).zip(&mut x) {
///         group.enqueue(rank, stream, Operation::all_reduce_in_place(x, Reduction::Sum))?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(x[0].to_vec()?, [4.0, 6.0]);
/// assert_eq!(x[1].to_vec()?, [4.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Communicator {
    shared: Arc<Shared>,
    /// Makes the type `!Sync`: NCCL allows one thread at a time.
    _not_sync: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Communicator {
    fn from_shared(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            _not_sync: std::marker::PhantomData,
        }
    }

    /// Borrows a communicator that other code owns, on the device of `context`. It is neither
    /// destroyed nor aborted.
    ///
    /// CUDA: `ncclCommUserRank`, `ncclCommCount`.
    ///
    /// # Safety
    ///
    /// - `raw` is a blocking communicator of `library` on the device of `context`, and lives as
    ///   long as the result, and every graph that captures its operations.
    /// - No other code uses it while an operation of the result is called.
    ///
    /// # Errors
    ///
    /// An error of NCCL.
    pub unsafe fn borrow_raw(library: &Nccl, context: &Context, raw: ncclComm_t) -> Result<Self> {
        // SAFETY: the caller guarantees that the communicator is live.
        let membership = unsafe { create::membership(library.api(), raw) }?;
        Ok(Self::from_shared(Shared::new(
            raw,
            library,
            context,
            membership,
            Ownership::Borrowed,
        )))
    }

    /// Returns the rank, from 0.
    #[doc(alias = "ncclCommUserRank")]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.membership().rank
    }

    /// Returns the number of ranks.
    #[doc(alias = "ncclCommCount")]
    #[must_use]
    pub fn size(&self) -> usize {
        self.membership().size
    }

    /// Returns the context of the device.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &Nccl {
        &self.shared.library
    }

    /// Returns the raw communicator, for functions that this crate does not wrap. Calls must not
    /// destroy or abort it. Their accesses are not tracked.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`](crate::Error::Aborted) if it was aborted, and
    /// [`Error::Finalized`](crate::Error::Finalized) if it was finalized.
    pub fn as_raw(&mut self) -> Result<ncclComm_t> {
        match self.shared.stage.load(Acquire) {
            LIVE => Ok(self.shared.raw),
            stage => Err(use_guard::ended(
                &self.shared,
                "Communicator::as_raw",
                stage,
            )),
        }
    }

    pub(crate) fn membership(&self) -> Membership {
        self.shared.membership
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Enqueues an operation on a stream of the device.
    ///
    /// # Errors
    ///
    /// - [`Error::Argument`](crate::Error::Argument) if the lengths or the rank are invalid, or the
    ///   stream belongs to another device. NCCL is not called.
    /// - [`Error::Call`](crate::Error::Call) with the error of NCCL.
    /// - [`Error::Aborted`](crate::Error::Aborted) if the communicator was aborted, and
    ///   [`Error::Finalized`](crate::Error::Finalized) if it was finalized.
    /// - [`Error::Timeout`](crate::Error::Timeout) if the other ranks did not connect in time.
    // Inlined: docs/performance.md, "Functions around a call". Most checks of an operation that is
    // created in the call are then made at compile time.
    #[inline(always)]
    pub fn enqueue(&mut self, stream: &Stream, mut operation: Operation<'_>) -> Result<()> {
        let name = operation.name();
        group::check_none(name)?;
        self.check_device(name, stream)?;
        let mut stream_operation = stream.enqueue(name)?;
        operation.form.check_element(self.library())?;
        let form = operation.form;
        let membership = self.membership();
        let count = form.count(membership, GroupState::Ungrouped)?;
        let shared = &*self.shared;
        let (result, is_captured) = {
            let use_guard = UseGuard::acquire(shared, name)?;
            self.shared.keep(&stream_operation, &operation.operands);
            // SAFETY: `launched` follows the call.
            unsafe { operation.operands.bind(&mut stream_operation) }?;
            let communicator = use_guard.raw();
            let stream = stream_operation.raw_stream().cast();
            let addresses = operation.addresses(membership, count);
            let call = Call {
                api: shared.api(),
                communicator,
                stream,
                membership,
                count,
                addresses,
            };
            // SAFETY: the communicator is in use, the stream is live and of its device, and the
            // memory is bound.
            let result = entered(&shared.context, || unsafe { shared.call(name, form, call) });
            // A failure may come after some work was enqueued.
            // SAFETY: `bind` succeeded with this operation.
            unsafe { operation.operands.launched(&mut stream_operation) };
            (result, stream_operation.is_captured())
        };
        if result.is_err() {
            return shared.ended_by_timeout(result);
        }
        if shared.timeout.is_some() && !is_captured {
            shared.record(stream, form.description(membership.rank, count))
        } else {
            Ok(())
        }
    }

    /// Waits until the stream has completed its work, including the operations of this
    /// communicator.
    ///
    /// With a [timeout](CommunicatorOptions::with_timeout), the communicator is aborted when the
    /// timeout has elapsed, or when NCCL reports that another rank has failed. This ends kernels
    /// that wait for other ranks. After the launch of a graph, only this wait has a timeout: wait
    /// here before `to_vec` and its like.
    ///
    /// CUDA: `cuStreamQuery`, `ncclCommGetAsyncError`, `cuStreamSynchronize`, and `ncclCommAbort`
    /// on failure.
    ///
    /// # Errors
    ///
    /// - [`Error::Timeout`](crate::Error::Timeout) names the first operation that did not complete.
    /// - [`Error::Call`](crate::Error::Call) with an asynchronous error of NCCL.
    /// - [`Error::Driver`](crate::Error::Driver) as for [`Stream::synchronize`].
    #[doc(alias = "ncclCommGetAsyncError")]
    pub fn synchronize(&mut self, stream: &Stream) -> Result<()> {
        group::check_none("Communicator::synchronize")?;
        let use_guard = UseGuard::acquire(&*self.shared, "Communicator::synchronize")?;
        let result = self.shared.wait("Communicator::synchronize", stream);
        drop(use_guard);
        self.shared.ended_by_timeout(result)?;
        self.shared.outstanding().clear();
        Ok(stream.synchronize()?)
    }

    /// Waits for the operations of all ranks, and destroys the communicator. If a graph that
    /// captured it or memory that is registered with it still exists, it is destroyed together with
    /// the last of them.
    ///
    /// CUDA: `ncclCommFinalize`, `ncclCommDestroy`.
    ///
    /// # Errors
    ///
    /// An error of NCCL, or [`Error::Timeout`](crate::Error::Timeout) if the other ranks did not
    /// finish in time, in which case the communicator is aborted.
    #[doc(alias = "ncclCommFinalize")]
    #[doc(alias = "ncclCommDestroy")]
    pub fn close(self) -> Result<()> {
        group::check_none("Communicator::close")?;
        if Arc::strong_count(&self.shared) == 1 {
            self.shared.destroy()
        } else {
            Ok(())
        }
    }

    #[inline]
    pub(crate) fn check_device(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        if self.context() == stream.context() {
            Ok(())
        } else {
            self.check_same_device(operation, stream)
        }
    }

    /// As [`Communicator::check_device`], for a stream of another context.
    #[cold]
    fn check_same_device(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        let device = self.context().device();
        let stream_device = stream.device();
        device
            .driver()
            .check_same(stream_device.driver(), operation)?;
        if device.as_raw() == stream_device.as_raw() {
            return Ok(());
        }
        let problem = format!(
            "the stream belongs to another device ({}, the communicator is on {})",
            stream_device.as_raw(),
            device.as_raw()
        );
        Err(ArgumentError::refused(operation, problem))
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Membership { rank, size } = self.membership();
        write!(
            formatter,
            "Communicator(rank {rank} of {size}, {:?})",
            self.context().device()
        )
    }
}
