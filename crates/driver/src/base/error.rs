//! Errors: the operation that failed, the reason, and a hint.

mod call;
mod code;
mod cuda_error;
mod fork;
mod hint;
mod library_error;
mod out_of_memory;
pub(crate) mod report;
mod returned;
mod timeout;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use curium_sys::load::LoadError;
use curium_sys::{CUdevice, CUresult, Function, MissingFunction};
pub use curium_sys::{ErrorClass, LibraryStatus};

pub use self::call::CallError;
pub use self::cuda_error::CudaError;
pub use self::fork::ForkError;
pub use self::out_of_memory::{OutOfMemoryError, RecoveryAttempt};
use self::report::{Note, OneLine, Report, debug_as_report};
pub use self::returned::Returned;
pub use self::timeout::TimeoutError;
use crate::base::contain::discard;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason for a failed operation.
///
/// The text has the form `operation: problem (facts); hint`. `Debug`, which `unwrap` and a `main`
/// that returns an error print, writes the same text with each hint and each log on its own line.
/// [`Error::code`], [`Error::function`], [`Error::call`], [`Error::hint`] and the fields of the
/// variants give access to the parts.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver could be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A driver function returned an error code.
    #[error(transparent)]
    Call(Box<CallError>),
    /// An allocation failed. Contains the error of the call and the memory usage of the device and
    /// the resource.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemoryError>),
    /// The driver lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(Box<MissingFunction>),
    /// An argument was rejected before the driver was called.
    #[error(transparent)]
    Argument(Box<ArgumentError>),
    /// A callback panicked.
    #[error(transparent)]
    Panic(Box<PanicError>),
    /// The process was forked after CUDA was initialized; the driver does not work in the child.
    #[error(transparent)]
    Fork(Box<ForkError>),
    /// A wait did not end in time. The work continues.
    #[error(transparent)]
    Timeout(Box<TimeoutError>),
}

/// A callback panicked, such as a host function in a stream.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct PanicError {
    /// The panic message; empty if the payload is not a string.
    pub message: Box<str>,
}

impl PanicError {
    /// Extracts the message from a panic payload.
    #[cold]
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref().map(String::as_str));
        let message = text.unwrap_or_default().into();
        discard(payload);
        Self { message }
    }
}

/// An argument that was rejected before the driver was called.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct ArgumentError {
    /// The operation, such as `Kernel::launch`.
    pub operation: &'static str,
    /// The problem with its facts, followed by `; ` and a hint, if any.
    pub reason: Cow<'static, str>,
}

impl ArgumentError {
    /// Returns the hint, if any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        report::split(&self.reason).1
    }
}

// Each variant is a pointer, so that the result of a call is returned in registers.
const _: () = assert!(
    size_of::<Error>() == 2 * size_of::<usize>(),
    "a variant is larger than a pointer"
);

impl Error {
    /// Creates the error of an `operation` that rejects an argument. `reason` has the form
    /// `problem (facts); hint`, where facts and hint are optional.
    #[cold]
    pub fn argument(operation: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Argument(Box::new(ArgumentError {
            operation,
            reason: reason.into(),
        }))
    }

    /// Returns the driver's result code, if the driver was called.
    #[must_use]
    pub fn code(&self) -> Option<CUresult> {
        self.call().map(|error| error.code)
    }

    /// Returns the driver function that failed or is missing.
    #[must_use]
    pub fn function(&self) -> Option<Function> {
        match self {
            Self::Call(error) => Some(error.function),
            Self::OutOfMemory(error) => error.call.as_ref().map(|call| call.function),
            Self::Missing(error) => Some(error.function),
            Self::Fork(error) => Some(error.function),
            Self::Load(_) | Self::Argument(_) | Self::Panic(_) | Self::Timeout(_) => None,
        }
    }

    /// Returns the class of the failure.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Call(error) => error.class(),
            Self::OutOfMemory(_) | Self::Timeout(_) => ErrorClass::Resource,
            Self::Load(_) | Self::Missing(_) => ErrorClass::System,
            Self::Argument(_) | Self::Panic(_) | Self::Fork(_) => ErrorClass::Usage,
        }
    }

    /// Returns `true` if the context is lost. Every later call that uses the context returns this
    /// error too, until the process ends.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.class() == ErrorClass::Sticky
    }

    /// Returns `true` if earlier asynchronous work, such as a kernel, failed and this call only
    /// reported the failure.
    #[must_use]
    pub fn is_from_earlier_work(&self) -> bool {
        self.call().is_some_and(CallError::is_from_earlier_work)
    }

    /// Returns `true` if a device or host allocation failed.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory(_))
            || self.code() == Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    }

    /// Adds the operands of the call, such as a size in bytes, a kernel name or a stream.
    #[cold]
    #[must_use]
    pub fn about(mut self, subject: impl Into<Cow<'static, str>>) -> Self {
        if let Some(error) = self.call_mut() {
            error.subject = subject.into();
        }
        self
    }

    /// Adds the handle and the device of the object that the call operated on.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn about_handle(self, kind: &str, handle: impl fmt::Debug, device: CUdevice) -> Self {
        self.about(format!("{kind} {handle:?} of device {device}"))
    }

    /// Sets the operation of an argument error that was detected in a lower layer.
    #[cold]
    #[must_use]
    pub fn during(mut self, operation: &'static str) -> Self {
        if let Self::Argument(error) = &mut self {
            error.operation = operation;
        }
        self
    }

    /// Replaces the default hint of the code.
    #[cold]
    #[must_use]
    pub fn advised(mut self, hint: impl FnOnce(&CallError) -> Option<Cow<'static, str>>) -> Self {
        if let Some(error) = self.call_mut()
            && let Some(hint) = hint(error)
        {
            error.hint = Some(hint);
        }
        self
    }

    /// Returns the failed driver call.
    #[must_use]
    pub fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(error) => Some(error),
            Self::OutOfMemory(error) => error.call.as_ref(),
            _ => None,
        }
    }

    /// Returns the hint, if any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Argument(error) => error.hint(),
            Self::Timeout(error) => Some(error.hint()),
            _ => self.call()?.hint.as_deref(),
        }
    }

    fn call_mut(&mut self) -> Option<&mut CallError> {
        match self {
            Self::Call(error) => Some(error),
            Self::OutOfMemory(error) => error.call.as_mut(),
            _ => None,
        }
    }

    /// Adds the log of the driver's JIT compiler.
    #[cold]
    pub(crate) fn with_log(mut self, log: &str) -> Self {
        if let Some(error) = self.call_mut() {
            error.log = (!log.is_empty()).then(|| log.into());
        }
        self
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => fmt::Debug::fmt(error, formatter),
            Self::Call(error) => fmt::Debug::fmt(error, formatter),
            Self::OutOfMemory(error) => fmt::Debug::fmt(error, formatter),
            Self::Missing(error) => fmt::Debug::fmt(error, formatter),
            Self::Argument(error) => fmt::Debug::fmt(error, formatter),
            Self::Panic(error) => fmt::Debug::fmt(error, formatter),
            Self::Fork(error) => fmt::Debug::fmt(error, formatter),
            Self::Timeout(error) => fmt::Debug::fmt(error, formatter),
        }
    }
}

impl From<MissingFunction> for Error {
    fn from(error: MissingFunction) -> Self {
        Self::Missing(Box::new(error))
    }
}

impl Report for PanicError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.message {
            "" => formatter.write_str("callback: panicked"),
            message => write!(formatter, "callback: panicked ({message})"),
        }
    }

    fn notes(&self) -> Vec<Note<'_>> {
        Vec::new()
    }
}

impl Report for ArgumentError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {}",
            self.operation,
            report::split(&self.reason).0
        )
    }

    fn notes(&self) -> Vec<Note<'_>> {
        self.hint()
            .map(|hint| Note::Hint(hint.into()))
            .into_iter()
            .collect()
    }
}

debug_as_report!(PanicError, ArgumentError);
