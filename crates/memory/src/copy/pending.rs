//! Copies that own their memory of the host until they are done.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytemuck::{AnyBitPattern, NoUninit};
use curium_driver::hazard::Uses;
use curium_driver::{Error, Finished, PooledEvent, Result, Stream, report};

use super::host;
use crate::{AsDeviceSlice, AsDeviceSliceMut, PinnedBuffer, size};

/// A copy that is under way, and the memory of the host that it reads or writes.
///
/// [`Pending::wait`] waits and gives the memory back; so does `await`, on any executor. Dropping it waits, too: a value that is forgotten
/// leaks the memory, but the device never uses what is not there.
///
/// The memory of the device is not held: later uses of it wait for the copy by themselves, on the device.
#[must_use = "dropping it waits for the copy"]
pub struct Pending<B> {
    /// Nothing once it was given back.
    host: Option<B>,
    /// Goes before the event, which is used again only if nobody looks at it any more.
    finished: Option<Finished>,
    /// Recorded behind the copy.
    event: PooledEvent,
}

/// Copies a pinned buffer to device memory, which has as many elements, on `stream`. Waits for nothing: the buffer comes back from what
/// is returned.
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new())?;
/// # // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
/// # let driver = unsafe { curium_driver::Driver::from_api(simulator.api()) }?;
/// use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
///
/// # let context = driver.device(0)?.primary_context()?;
/// let stream = context.stream()?;
/// let source = PinnedBuffer::from_slice(&context, &[1_u32, 2, 3], PinnedFlags::empty())?;
/// let mut target = DeviceBuffer::zeroed(&stream, 3)?;
/// let pending = copy::upload(&stream, source, &mut target).map_err(|(_, error)| error)?;
/// // … the host is free to do something else …
/// let source = pending.wait().map_err(|(_, error)| error)?;
/// assert_eq!((&*source, target.to_vec()?), (&[1, 2, 3][..], vec![1, 2, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// CUDA: `cuMemcpyHtoDAsync_v2`, `cuEventRecord`, `cuStreamIsCapturing`.
///
/// # Errors
///
/// Gives the buffer back: an argument error if the lengths differ, or if the stream is being captured, since a graph would outlive the
/// buffer.
#[doc(alias = "cuMemcpyHtoDAsync")]
#[inline]
pub fn upload<T: NoUninit>(
    stream: &Stream,
    source: PinnedBuffer<T>,
    target: &mut impl AsDeviceSliceMut<Element = T>,
) -> Result<Pending<PinnedBuffer<T>>, (PinnedBuffer<T>, Error)> {
    let target = target.as_device_slice_mut();
    let (end, from, bytes) = (target.end(), source.as_ptr().cast(), source.byte_len());
    Pending::begin("copy::upload", stream, (source.len(), target.len()), source, || {
        end.tracked.before_write("copy::upload", stream)?;
        // SAFETY: both sides have this many bytes, the device's is live on this stream, and the host's is kept by the value that is
        // returned until the copy is done.
        unsafe { host::to_device(stream, end.address, from, bytes) }.map_err(|error| end.explain(error))?;
        end.tracked.after_partial_write(stream);
        Ok(())
    })
}

/// Copies device memory to a pinned buffer, which has as many elements, on `stream`. Waits for nothing: the buffer comes back from what is
/// returned.
///
/// CUDA: `cuMemcpyDtoHAsync_v2`, `cuEventRecord`, `cuStreamIsCapturing`.
///
/// # Errors
///
/// As for [`upload`].
#[doc(alias = "cuMemcpyDtoHAsync")]
#[inline]
pub fn download<T: AnyBitPattern>(
    stream: &Stream,
    source: &impl AsDeviceSlice<Element = T>,
    mut target: PinnedBuffer<T>,
) -> Result<Pending<PinnedBuffer<T>>, (PinnedBuffer<T>, Error)> {
    let source = source.as_device_slice();
    let (end, to, bytes) = (source.end(), target.as_mut_ptr().cast(), target.byte_len());
    Pending::begin("copy::download", stream, (target.len(), source.len()), target, || {
        end.tracked.before_read("copy::download", stream)?;
        // SAFETY: both sides have this many bytes, the device's is live on this stream, any bytes are valid elements, and the host's is
        // kept by the value that is returned until the copy is done.
        unsafe { host::to_host(stream, to, end.address, bytes) }.map_err(|error| end.explain(error))?;
        end.tracked.after_read(stream);
        Ok(())
    })
}

impl<B> Pending<B> {
    /// Waits until the copy is done and gives the memory back.
    ///
    /// CUDA: `cuEventSynchronize`.
    ///
    /// # Errors
    ///
    /// Gives this value back: the copy may still be under way. If the context is lost it is not, and dropping frees the memory.
    ///
    /// # Panics
    ///
    /// If it was awaited before, and gave the memory back.
    #[inline]
    pub fn wait(mut self) -> Result<B, (Self, Error)> {
        match self.event.synchronize() {
            Ok(()) => Ok(self.host.take().expect("the memory is there until it is given back")),
            Err(error) => Err((self, error)),
        }
    }

    /// Whether the copy is done. Does not wait.
    ///
    /// CUDA: `cuEventQuery`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn is_finished(&self) -> Result<bool> {
        self.event.is_finished()
    }

    /// Has `enqueue` put a copy of lengths that must agree on `stream`.
    #[inline]
    fn begin(
        operation: &'static str,
        stream: &Stream,
        (own, other): (usize, usize),
        host: B,
        enqueue: impl FnOnce() -> Result<()>,
    ) -> Result<Self, (B, Error)> {
        let _uses = Uses::begin();
        let prepared = size::same_len(operation, own, other)
            .and_then(|()| stream.refuse_capture(operation))
            .and_then(|()| stream.marker())
            .and_then(|event| enqueue().map(|()| event));
        let event = match prepared {
            Ok(event) => event,
            Err(error) => return Err((host, error)),
        };
        match event.record(stream) {
            Ok(()) => Ok(Self { host: Some(host), event, finished: None }),
            // The copy is on the stream: the memory may be given back only behind it.
            Err(error) => {
                crate::wait::until_done(stream).unwrap_or_default();
                Err((host, error))
            }
        }
    }
}

impl<B: Unpin> Future for Pending<B> {
    type Output = Result<B>;

    /// # Panics
    ///
    /// If it was ready before.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<B>> {
        let this = &mut *self;
        let finished = this.finished.get_or_insert_with(|| this.event.finished());
        match Pin::new(finished).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                Poll::Ready(Ok(this.host.take().expect("a future is not polled after it was ready")))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl<B> fmt::Debug for Pending<B> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pending({:?})", &*self.event)
    }
}

impl<B> Drop for Pending<B> {
    #[inline]
    fn drop(&mut self) {
        let Some(host) = self.host.take() else { return };
        // Nobody is there to try again.
        if let Err(error) = self.event.synchronize().or_else(|_| self.event.synchronize()) {
            report(&error);
            // Only a context that is lost is known not to use the memory any more.
            if !error.is_sticky() {
                std::mem::forget(host);
            }
        }
    }
}
