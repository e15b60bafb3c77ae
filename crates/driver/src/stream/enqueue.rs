//! The gate: every operation that enqueues work on a stream begins with one of these methods, which
//! check what the calling thread and the stream capture.

use crate::base::capture_guard::{self, NOT_WHILE_CAPTURING, ON_THE_SCOPE};
use crate::hazard::{Held, Operation};
use crate::{Error, Result, Stream};

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
        // Only what it holds comes from the rare path, so that an operation outside captures is
        // written once, and not copied.
        let held = if self.is_in_capture() {
            self.enter_capture(name, instead)?
        } else {
            None
        };
        Ok(Operation::new(self, name, held))
    }

    /// Begins the release of memory or of a handle in the order of the stream. Destructors, which
    /// cannot fail, may do this in every capture closure.
    ///
    /// # Errors
    ///
    /// An argument error in a [call observer](crate::observe_calls), as for [`Stream::enqueue`].
    #[inline]
    pub fn enqueue_release(&self, name: &'static str) -> Result<Operation<'_>> {
        let held = if self.scope().is_some() {
            Held::for_capture(self)?
        } else {
            None
        };
        Ok(Operation::new(self, name, held))
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
        Ok(Operation::new(self, name, None))
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
        Ok(Operation::new(self, name, None))
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

/// The checks of captures.
impl Stream {
    /// Returns `true` if the stream was created by a capture, or if this thread is in a capture
    /// closure. Every operation asks this first.
    #[inline]
    pub(crate) fn is_in_capture(&self) -> bool {
        self.scope().is_some() || capture_guard::key() != 0
    }

    /// Enters the capture of an operation that a graph can contain.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_capture(&self, name: &'static str, instead: &str) -> Result<Option<Held>> {
        self.check_recorded(name, instead)?;
        Held::for_capture(self)
    }

    /// Returns an argument error that names `operation` if the stream belongs to a capture in
    /// progress. For operations that would invalidate the capture, or use memory that its graph
    /// does not keep alive.
    #[inline]
    pub(crate) fn check_no_scope(&self, operation: &'static str) -> Result<()> {
        if self.scope().is_none() {
            Ok(())
        } else {
            self.check_ended(operation)
        }
    }

    /// Returns an argument error that names `operation`, which no graph can contain, if the stream
    /// belongs to a capture in progress, or if this thread is in a capture closure.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_uncaptured(&self, operation: &'static str) -> Result<()> {
        self.check_no_scope(operation)?;
        self.check_recorded(operation, NOT_WHILE_CAPTURING)
    }

    /// Returns an argument error that names `operation` if this thread is in a capture closure and
    /// the stream is not part of that capture: the work would run immediately and be missing from
    /// the graph. `instead` names an operation that can be captured.
    #[inline]
    pub(crate) fn check_recorded(&self, operation: &'static str, instead: &str) -> Result<()> {
        if capture_guard::key() == 0 {
            Ok(())
        } else {
            self.check_recording_scope(operation, instead)
        }
    }

    #[cold]
    #[inline(never)]
    fn check_recording_scope(&self, operation: &'static str, instead: &str) -> Result<()> {
        if self
            .scope()
            .is_some_and(|scope| capture_guard::is_recording(scope.identity()))
        {
            return Ok(());
        }
        let reason = format!(
            "this thread is capturing a graph, and {self:?} is not part of that capture: the work would run immediately and be missing from the \
             graph; {instead}"
        );
        Err(Error::argument(operation, reason))
    }

    #[cold]
    fn check_ended(&self, operation: &'static str) -> Result<()> {
        if self.open_scope().is_none() {
            return Ok(());
        }
        let reason = format!(
            "{self:?} is being captured, and a graph cannot contain this operation: it would invalidate the capture, or the graph would not \
             keep the operation's memory alive"
        );
        Err(Error::argument(operation, reason))
    }
}
