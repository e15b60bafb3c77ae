//! EGLStreams of frames.

use std::fmt;
use std::time::Duration;

use curium_driver::extend::{Handle, release};
use curium_driver::sys::{
    CUeglFrame, CUeglResourceLocationFlags, CUeglStreamConnection, CUeglStreamConnection_st,
    CUgraphicsResource, EGLStreamKHR,
};
use curium_driver::{Context, Driver, Result, Returned, Stream, call};

use super::mapped::mapped_egl_frame;

/// CUDA as the consumer of an EGLStream. Dropping it disconnects.
pub struct EglConsumer {
    connection: Connection,
}

/// CUDA as the producer of an EGLStream. Dropping it disconnects.
pub struct EglProducer {
    connection: Connection,
}

/// A frame acquired from an EGLStream. Dropping it releases the frame, after the work currently
/// enqueued on its stream.
pub struct EglFrame<'a> {
    consumer: &'a mut EglConsumer,
    resource: CUgraphicsResource,
    stream: Stream,
    is_held: bool,
}

/// The location of acquired frames.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum EglLocation {
    /// Host memory.
    System,
    /// Device memory.
    Video,
}

struct Connection {
    raw: Handle<CUeglStreamConnection_st>,
    context: Context,
    /// Disconnects a connection of this kind.
    disconnect: fn(&Driver, *mut CUeglStreamConnection) -> Result<()>,
}

impl EglConsumer {
    /// Connects CUDA as the consumer of an EGLStream.
    ///
    /// CUDA: `cuEGLStreamConsumerConnect`, `cuEGLStreamConsumerConnectWithFlags`.
    ///
    /// # Safety
    ///
    /// `stream` is a live EGLStream without a consumer, and outlives the result.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuEGLStreamConsumerConnect")]
    #[doc(alias = "cuEGLStreamConsumerConnectWithFlags")]
    pub unsafe fn connect(
        context: &Context,
        stream: EGLStreamKHR,
        location: Option<EglLocation>,
    ) -> Result<Self> {
        let connection = Connection::new(context, disconnect_consumer, |driver, place| {
            match location {
                // SAFETY: `place` is valid for writes, the context is current, and the caller is
                // responsible for the stream.
                None => unsafe {
                    call!(driver, cuEGLStreamConsumerConnect(place, stream) creates *place)
                },
                // SAFETY: `place` is valid for writes, the context is current, and the caller is
                // responsible for the stream.
                Some(location) => unsafe {
                    call!(driver, cuEGLStreamConsumerConnectWithFlags(place, stream, location.as_raw()) creates *place)
                },
            }
        });
        Ok(Self {
            connection: connection?,
        })
    }

    /// Acquires the newest frame for work on `stream`. Blocks until a frame is available, at most
    /// for `timeout` if it is given.
    ///
    /// CUDA: `cuEGLStreamConsumerAcquireFrame`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_LAUNCH_TIMEOUT` if the timeout passed, which does not affect the context;
    /// `CUDA_ERROR_UNKNOWN` before the first frame.
    #[doc(alias = "cuEGLStreamConsumerAcquireFrame")]
    pub fn acquire(&mut self, stream: &Stream, timeout: Option<Duration>) -> Result<EglFrame<'_>> {
        self.connection
            .context
            .driver()
            .check_same(stream.driver(), "EglConsumer::acquire")?;
        let operation = stream.enqueue_uncaptured("EglConsumer::acquire")?;
        let microseconds = timeout.map_or(u32::MAX, |timeout| {
            timeout.as_micros().min(u128::from(u32::MAX - 1)) as u32
        });
        let mut resource = std::ptr::null_mut();
        let mut raw = operation.raw_stream();
        self.connection.with(|driver, connection| {
            // SAFETY: the connection is live, `place` is valid for writes, and `raw` holds a live
            // stream.
            unsafe {
                call!(
                    driver,
                    cuEGLStreamConsumerAcquireFrame(
                        connection,
                        &raw mut resource,
                        &raw mut raw,
                        microseconds
                    )
                )
            }
        })?;
        Ok(EglFrame {
            consumer: self,
            resource,
            stream: stream.clone(),
            is_held: true,
        })
    }

    /// Disconnects and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuEGLStreamConsumerDisconnect`.
    ///
    /// # Errors
    ///
    /// Returns the connection to the caller if the driver call fails.
    #[doc(alias = "cuEGLStreamConsumerDisconnect")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.connection
            .end()
            .map_err(|error| Returned::new(self, error))
    }
}

impl EglFrame<'_> {
    /// Returns the planes of the frame, as arrays or pitched memory, and their format.
    ///
    /// CUDA: `cuGraphicsResourceGetMappedEglFrame`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn planes(&self) -> Result<CUeglFrame> {
        mapped_egl_frame(&self.consumer.connection.context, self.resource, 0, 0)
    }

    /// Releases the frame and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuEGLStreamConsumerReleaseFrame`.
    ///
    /// # Errors
    ///
    /// Returns the frame to the caller if the driver call fails.
    #[doc(alias = "cuEGLStreamConsumerReleaseFrame")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.give_back().map_err(|error| Returned::new(self, error))
    }

    fn give_back(&mut self) -> Result<()> {
        let resource = self.resource;
        let mut raw = self.stream.enqueue_release("EglFrame::close")?.raw_stream();
        self.consumer.connection.with(|driver, connection| {
            // SAFETY: the connection is live, the frame was acquired from it, and `raw` holds a
            // live stream.
            unsafe {
                call!(
                    driver,
                    cuEGLStreamConsumerReleaseFrame(connection, resource, &raw mut raw)
                )
            }
        })?;
        self.is_held = false;
        Ok(())
    }
}

impl EglProducer {
    /// Connects CUDA as the producer of an EGLStream, with frames of this size in pixels.
    ///
    /// CUDA: `cuEGLStreamProducerConnect`.
    ///
    /// # Safety
    ///
    /// `stream` is a live EGLStream without a producer, and outlives the result.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuEGLStreamProducerConnect")]
    pub unsafe fn connect(
        context: &Context,
        stream: EGLStreamKHR,
        size: (i32, i32),
    ) -> Result<Self> {
        let (width, height) = size;
        let connection = Connection::new(context, disconnect_producer, |driver, place| {
            // SAFETY: `place` is valid for writes, the context is current, and the caller is
            // responsible for the stream.
            unsafe {
                call!(driver, cuEGLStreamProducerConnect(place, stream, width, height) creates *place)
            }
        });
        Ok(Self {
            connection: connection?,
        })
    }

    /// Presents a frame, after the work currently enqueued on `stream`.
    ///
    /// CUDA: `cuEGLStreamProducerPresentFrame`.
    ///
    /// # Safety
    ///
    /// The planes of the frame are live memory of this context, and are not written until the frame
    /// is [returned](EglProducer::take_back).
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuEGLStreamProducerPresentFrame")]
    pub unsafe fn present(&mut self, frame: CUeglFrame, stream: &Stream) -> Result<()> {
        self.connection
            .context
            .driver()
            .check_same(stream.driver(), "EglProducer::present")?;
        let operation = stream.enqueue_uncaptured("EglProducer::present")?;
        let mut raw = operation.raw_stream();
        self.connection.with(|driver, connection| {
            // SAFETY: the connection is live, the caller is responsible for the frame, and `raw`
            // holds a live stream.
            unsafe {
                call!(
                    driver,
                    cuEGLStreamProducerPresentFrame(connection, frame, &raw mut raw)
                )
            }
        })
    }

    /// Returns a presented frame that the consumer has released. Work enqueued on `stream`
    /// afterwards may write the frame.
    ///
    /// CUDA: `cuEGLStreamProducerReturnFrame`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_LAUNCH_TIMEOUT` if no frame is available, which does not affect the context.
    #[doc(alias = "cuEGLStreamProducerReturnFrame")]
    pub fn take_back(&mut self, stream: &Stream) -> Result<CUeglFrame> {
        self.connection
            .context
            .driver()
            .check_same(stream.driver(), "EglProducer::take_back")?;
        let operation = stream.enqueue_uncaptured("EglProducer::take_back")?;
        let mut frame = CUeglFrame::default();
        let mut raw = operation.raw_stream();
        self.connection.with(|driver, connection| {
            // SAFETY: the connection is live, `place` is valid for writes, and `raw` holds a live
            // stream.
            unsafe {
                call!(
                    driver,
                    cuEGLStreamProducerReturnFrame(connection, &raw mut frame, &raw mut raw)
                )
            }
        })?;
        Ok(frame)
    }

    /// Disconnects and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuEGLStreamProducerDisconnect`.
    ///
    /// # Errors
    ///
    /// Returns the connection to the caller if the driver call fails.
    #[doc(alias = "cuEGLStreamProducerDisconnect")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.connection
            .end()
            .map_err(|error| Returned::new(self, error))
    }
}

impl EglLocation {
    const fn as_raw(self) -> u32 {
        match self {
            Self::System => CUeglResourceLocationFlags::CU_EGL_RESOURCE_LOCATION_SYSMEM.0,
            Self::Video => CUeglResourceLocationFlags::CU_EGL_RESOURCE_LOCATION_VIDMEM.0,
        }
    }
}

impl Connection {
    fn new(
        context: &Context,
        disconnect: fn(&Driver, *mut CUeglStreamConnection) -> Result<()>,
        connect: impl FnOnce(&Driver, &mut CUeglStreamConnection) -> Result<()>,
    ) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        context.entered(|driver| connect(driver, &mut raw))?;
        Ok(Self {
            raw: Handle::new(raw),
            context: context.clone(),
            disconnect,
        })
    }

    /// Calls the driver with a pointer to the connection, in its context.
    fn with<T>(
        &self,
        call: impl FnOnce(&Driver, *mut CUeglStreamConnection) -> Result<T>,
    ) -> Result<T> {
        let mut raw = self.raw.raw();
        self.context.entered(|driver| call(driver, &raw mut raw))
    }

    fn end(&mut self) -> Result<()> {
        self.with(self.disconnect)?;
        self.raw.clear();
        Ok(())
    }
}

impl fmt::Debug for EglConsumer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EglConsumer({:?})", self.connection.raw)
    }
}

impl fmt::Debug for EglProducer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EglProducer({:?})", self.connection.raw)
    }
}

impl fmt::Debug for EglFrame<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "EglFrame({:?} on {:?})",
            self.resource, self.stream
        )
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.end());
        }
    }
}

impl Drop for EglFrame<'_> {
    fn drop(&mut self) {
        if self.is_held {
            release(|| self.give_back());
        }
    }
}

fn disconnect_consumer(driver: &Driver, connection: *mut CUeglStreamConnection) -> Result<()> {
    // SAFETY: `connection` holds a live consumer connection, which is not used again once it is
    // disconnected.
    unsafe { call!(driver, cuEGLStreamConsumerDisconnect(connection)) }
}

fn disconnect_producer(driver: &Driver, connection: *mut CUeglStreamConnection) -> Result<()> {
    // SAFETY: `connection` holds a live producer connection, which is not used again once it is
    // disconnected.
    unsafe { call!(driver, cuEGLStreamProducerDisconnect(connection)) }
}
