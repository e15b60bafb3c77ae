//! Asynchronous copies that own their host memory.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{AnyBitPattern, NoUninit};
use curium_driver::extend::drop_on_completion;
use curium_driver::hazard::Operation;
use curium_driver::{Completion, Error, Event, PooledEvent, Result, Returned, Stream};

use crate::{DeviceSlice, PinnedBuffer, capture_advice, enqueue, size};

/// An asynchronous copy in progress that owns its host memory.
///
/// [`Pending::wait`] waits and returns the memory, and so does `await` on any executor. Dropping
/// the value blocks the calling thread until the copy has completed, unless the memory is from a
/// [`PinnedCache`](crate::PinnedCache), which reuses it after the copy; [`Pending::detach`] never
/// blocks. Forgetting the value leaks the memory, which is sound.
///
/// The device memory is not borrowed: later accesses to it wait for the copy on the device.
#[must_use = "dropping it may block until the copy has completed"]
pub struct Pending<T> {
    /// `None` once it has been returned.
    host: Option<PinnedBuffer<T>>,
    /// `true` if the memory may be dropped before the copy has completed.
    may_drop_early: bool,
    /// Dropped before the event, which must not be reused while the future polls it.
    finished: Option<Completion>,
    /// Recorded after the copy.
    event: PooledEvent,
}

/// Enqueues a copy of a pinned buffer to device memory of the same length on `stream`. Returns
/// immediately. The [`Pending`] returns the buffer.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
///
/// # let context = driver.device(0)?.primary_context()?;
/// let stream = context.stream()?;
/// let source = PinnedBuffer::from_slice(&context, &[1_u32, 2, 3], PinnedFlags::empty())?;
/// let mut target = DeviceBuffer::zeroed(&stream, 3)?;
/// let pending = copy::upload(&stream, source, &mut target)?;
/// // … the host is free to do something else …
/// let source = pending.wait()?;
/// assert_eq!((&*source, target.to_vec()?), (&[1, 2, 3][..], vec![1, 2, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// CUDA: `cuMemcpyHtoDAsync_v2`, `cuEventRecord`, `cuStreamIsCapturing`.
///
/// # Errors
///
/// Returns the buffer together with the error. An argument error if the lengths differ, or if the
/// stream is being captured, because a graph would outlive the buffer.
#[doc(alias = "cuMemcpyHtoDAsync")]
#[doc(alias = "cudaMemcpyAsync")]
pub fn upload<T: NoUninit>(
    stream: &Stream,
    source: PinnedBuffer<T>,
    target: &mut DeviceSlice<T>,
) -> Result<Pending<T>, Returned<PinnedBuffer<T>>> {
    const OPERATION: &str = "copy::upload";
    let target_operand = target.operand();
    let host_ptr = source.as_ptr().cast();
    let bytes = source.byte_len();
    let operation = size::same_len(OPERATION, source.len(), target.len())
        .and_then(|()| stream.enqueue_now(OPERATION, capture_advice::UPLOAD));
    Pending::begin(stream, source, operation, |operation| {
        target_operand.tracked.before_write(operation)?;
        // SAFETY: both operands have this many bytes, the device operand is live on this stream,
        // and the returned value keeps the host operand until the copy has completed.
        unsafe { enqueue::to_device(operation, target_operand.address, host_ptr, bytes) }
            .map_err(|error| target_operand.explain(error))?;
        target_operand.tracked.after_partial_write(operation);
        Ok(())
    })
}

/// Enqueues a copy of device memory to a pinned buffer of the same length on `stream`. Returns
/// immediately. The [`Pending`] returns the buffer.
///
/// CUDA: `cuMemcpyDtoHAsync_v2`, `cuEventRecord`, `cuStreamIsCapturing`.
///
/// # Errors
///
/// As for [`upload`].
#[doc(alias = "cuMemcpyDtoHAsync")]
#[doc(alias = "cudaMemcpyAsync")]
pub fn download<T: AnyBitPattern>(
    stream: &Stream,
    source: &DeviceSlice<T>,
    mut target: PinnedBuffer<T>,
) -> Result<Pending<T>, Returned<PinnedBuffer<T>>> {
    const OPERATION: &str = "copy::download";
    let source_operand = source.operand();
    let host_ptr = target.as_mut_ptr().cast();
    let bytes = target.byte_len();
    let operation = size::same_len(OPERATION, target.len(), source.len())
        .and_then(|()| stream.enqueue_now(OPERATION, capture_advice::READ_LATER));
    Pending::begin(stream, target, operation, |operation| {
        source_operand.tracked.before_read(operation)?;
        // SAFETY: both operands have this many bytes, the device operand is live on this stream,
        // every bit pattern is a valid element, and the returned value keeps the host operand until
        // the copy has completed.
        unsafe { enqueue::to_host(operation, host_ptr, source_operand.address, bytes) }
            .map_err(|error| source_operand.explain(error))?;
        source_operand.tracked.after_read(operation);
        Ok(())
    })
}

impl<T> Pending<T> {
    /// Waits until the copy has completed and returns the memory.
    ///
    /// CUDA: `cuEventSynchronize`.
    ///
    /// # Errors
    ///
    /// Returns this value together with the error, because the copy may still be in progress. If
    /// the context is lost, the copy has ended, and dropping the value frees the memory. An
    /// argument error if an earlier `await` has already returned the memory.
    #[expect(
        clippy::result_large_err,
        reason = "the caller gets the copy back, which happens rarely"
    )]
    pub fn wait(mut self) -> Result<PinnedBuffer<T>, Returned<Self>> {
        match self
            .event
            .synchronize()
            .and_then(|()| self.take_host("Pending::wait"))
        {
            Ok(host) => Ok(host),
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    /// Drops the value without blocking the calling thread. The background thread of [`Completion`]
    /// frees the memory once the copy has completed.
    ///
    /// Inside an executor, use this or await the value instead of dropping it.
    ///
    /// CUDA: `cuEventQuery`, on the background thread.
    pub fn detach(self)
    where
        T: Send + Sync + 'static,
    {
        drop_on_completion(Detached(self));
    }

    /// Takes the host memory; an error if it was already taken.
    fn take_host(&mut self, operation: &'static str) -> Result<PinnedBuffer<T>> {
        let mut host = self
            .host
            .take()
            .ok_or_else(|| Error::argument(operation, "the memory was already returned"))?;
        host.end_use();
        Ok(host)
    }

    /// Returns `true` if the copy has completed. Does not wait.
    ///
    /// CUDA: `cuEventQuery`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn is_finished(&self) -> Result<bool> {
        self.event.is_finished()
    }

    /// Enqueues a copy on `stream` with `enqueue`, unless the operation was refused.
    fn begin(
        stream: &Stream,
        mut host: PinnedBuffer<T>,
        operation: Result<Operation<'_>>,
        enqueue: impl FnOnce(&mut Operation<'_>) -> Result<()>,
    ) -> Result<Self, Returned<PinnedBuffer<T>>> {
        let result = operation.and_then(|mut operation| {
            let event = stream.pooled_event()?;
            enqueue(&mut operation)?;
            Ok(event)
        });
        let event = match result {
            Ok(event) => event,
            Err(error) => return Err(Returned::new(host, error)),
        };
        match event.record(stream) {
            Ok(()) => Ok(Self {
                may_drop_early: host.begin_use(stream),
                host: Some(host),
                event,
                finished: None,
            }),
            // The copy is enqueued, so the memory may be returned only after it has ended. A failed
            // wait is retried until the copy has ended or the context is lost; otherwise the
            // process aborts.
            Err(error) => {
                let _ = crate::wait::until_done(stream);
                Err(Returned::new(host, error))
            }
        }
    }
}

// No element is stored inline, so moving a `Pending` moves none.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<PinnedBuffer<T>>;

    /// Returns an error if it is polled after completion.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.host.is_none() {
            return Poll::Ready(this.take_host("Pending::poll"));
        }
        let finished = this.finished.get_or_insert_with(|| this.event.completion());
        match Pin::new(finished).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(this.take_host("Pending::poll")),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

/// A copy that was detached before it completed.
struct Detached<T>(Pending<T>);

impl<T> AsRef<Event> for Detached<T> {
    fn as_ref(&self) -> &Event {
        &self.0.event
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pending({:?})", *self.event)
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let Some(host) = self.host.take() else { return };
        if self.may_drop_early {
            drop(host);
            return;
        }
        let bytes = host.byte_len() as u64;
        crate::wait::drop_or_leak(self.event.driver(), bytes, host, || {
            self.event.synchronize()
        });
    }
}
