//! What can go wrong, and what is said about it.

mod code;
mod hint;
mod out_of_memory;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use curium_sys::{CUresult, Function, LoadError, MissingFunction};

pub use self::code::ErrorClass;
pub use self::out_of_memory::{OutOfMemoryError, RecoveryAttempt};
use crate::Driver;
pub use crate::fork::ForkError;
use crate::release::discard;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver could be loaded.
    Load(Box<LoadError>),
    /// A function of the driver returned an error.
    Call(Box<CallError>),
    /// Memory was short, on the device or the host: a call's error with the figures.
    OutOfMemory(Box<OutOfMemoryError>),
    /// The driver lacks a function, mostly because it is too old.
    Missing(Box<MissingFunction>),
    /// An argument was refused before the driver was called.
    Argument(Box<ArgumentError>),
    /// A function that the driver called for you panicked.
    Panic(Box<PanicError>),
    /// The process was forked from the one that the driver works in.
    Fork(Box<ForkError>),
}

/// A function that the driver called for you panicked.
#[derive(Debug)]
#[non_exhaustive]
pub struct PanicError {
    /// What the panic said; empty if it was no text.
    pub message: Box<str>,
}

impl PanicError {
    /// The panic with this payload.
    #[cold]
    #[inline]
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref().map(String::as_str));
        let message = text.unwrap_or_default().into();
        discard(payload);
        Self { message }
    }
}

/// An argument was refused before the driver was called.
#[derive(Debug)]
#[non_exhaustive]
pub struct ArgumentError {
    /// The operation that was asked for, such as `Kernel::launch`.
    pub operation: &'static str,
    /// What is wrong, with the value.
    pub reason: Cow<'static, str>,
}

/// A function of the driver returned an error.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: Function,
    /// What it returned.
    pub code: CUresult,
    /// The driver's name for the code, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: Cow<'static, str>,
    /// The driver's sentence for the code.
    pub description: Cow<'static, str>,
    /// What was asked for, such as `1024 bytes`; empty if the function's name says it all.
    pub subject: Cow<'static, str>,
    /// What the driver's compiler wrote, for calls that compile.
    pub log: Option<Box<str>>,
    /// What the driver's own log says of the call, on drivers for CUDA 12.9 and newer: some lines, 4 KiB at most.
    pub driver_log: Option<Box<str>>,
    /// What a person can do, where the facts allow to say it.
    pub hint: Option<Cow<'static, str>>,
}

// Each variant is a pointer, so that the result of a call is returned in registers.
const _: () = assert!(size_of::<Error>() == 2 * size_of::<usize>(), "a variant is no pointer");

impl Error {
    /// An argument of `operation` that is refused for `reason`.
    #[doc(hidden)]
    #[cold]
    #[inline]
    pub fn argument(operation: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Argument(Box::new(ArgumentError { operation, reason: reason.into() }))
    }

    /// What the driver returned, if it was called.
    #[must_use]
    #[inline]
    pub fn code(&self) -> Option<CUresult> {
        self.call().map(|error| error.code)
    }

    /// The function of the driver that failed or is missing.
    #[must_use]
    #[inline]
    pub fn function(&self) -> Option<Function> {
        match self {
            Self::Call(error) => Some(error.function),
            Self::OutOfMemory(error) => error.call.as_ref().map(|call| call.function),
            Self::Missing(error) => Some(error.function),
            Self::Fork(error) => Some(error.function),
            Self::Load(_) | Self::Argument(_) | Self::Panic(_) => None,
        }
    }

    /// What kind of failure this is.
    #[must_use]
    #[inline]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Call(error) => error.class(),
            Self::OutOfMemory(_) => ErrorClass::Resource,
            Self::Load(_) | Self::Missing(_) => ErrorClass::System,
            Self::Argument(_) | Self::Panic(_) | Self::Fork(_) => ErrorClass::Usage,
        }
    }

    /// Whether the context is lost: every later call that touches it returns this error too, until the process ends.
    #[must_use]
    #[inline]
    pub fn is_sticky(&self) -> bool {
        self.class() == ErrorClass::Sticky
    }

    /// Whether memory was short, on the device or the host.
    #[must_use]
    #[inline]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory(_)) || self.code() == Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    }

    /// Adds what was asked for: bytes, the name of a kernel, a stream.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn about(mut self, subject: impl Into<Cow<'static, str>>) -> Self {
        if let Some(error) = self.call_mut() {
            error.subject = subject.into();
        }
        self
    }

    /// Names the operation of an argument error, which was noticed deeper down.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn during(mut self, operation: &'static str) -> Self {
        if let Self::Argument(error) = &mut self {
            error.operation = operation;
        }
        self
    }

    /// Adds what a person can do in place of the general advice for the code.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn advised(mut self, hint: impl FnOnce(&CallError) -> Option<Cow<'static, str>>) -> Self {
        if let Some(error) = self.call_mut()
            && let Some(hint) = hint(error)
        {
            error.hint = Some(hint);
        }
        self
    }

    /// The call that failed.
    #[inline]
    fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(error) => Some(error),
            Self::OutOfMemory(error) => error.call.as_ref(),
            _ => None,
        }
    }

    #[inline]
    fn call_mut(&mut self) -> Option<&mut CallError> {
        match self {
            Self::Call(error) => Some(error),
            Self::OutOfMemory(error) => error.call.as_mut(),
            _ => None,
        }
    }

    /// The error itself, which this one passes on in its own words.
    #[inline]
    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Load(error) => &**error,
            Self::Call(error) => &**error,
            Self::OutOfMemory(error) => &**error,
            Self::Missing(error) => &**error,
            Self::Argument(error) => &**error,
            Self::Panic(error) => &**error,
            Self::Fork(error) => &**error,
        }
    }

    /// Adds what the driver's compiler wrote.
    #[cold]
    #[inline]
    pub(crate) fn with_log(mut self, log: &str) -> Self {
        if let Some(error) = self.call_mut() {
            error.log = (!log.is_empty()).then(|| log.into());
        }
        self
    }
}

impl CallError {
    #[inline]
    pub(crate) fn new(driver: &Driver, function: Function, code: CUresult) -> Self {
        let (name, description) = code::names(driver, code);
        let hint = hint::hint(driver, code);
        let driver_log = driver.logged(function, code);
        Self { function, code, name, description, subject: Cow::Borrowed(""), log: None, driver_log, hint }
    }

    /// What kind of failure this is.
    #[inline]
    fn class(&self) -> ErrorClass {
        match (self.function, self.code) {
            // What these call a time-out is that no frame came in time.
            (
                Function::cuEGLStreamConsumerAcquireFrame | Function::cuEGLStreamProducerReturnFrame,
                CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            ) => ErrorClass::Resource,
            _ => ErrorClass::of(self.code),
        }
    }
}

impl fmt::Display for Error {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), formatter)
    }
}

impl std::error::Error for Error {
    #[inline]
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

impl From<MissingFunction> for Error {
    #[inline]
    fn from(error: MissingFunction) -> Self {
        Self::Missing(Box::new(error))
    }
}

impl From<Box<LoadError>> for Error {
    #[inline]
    fn from(error: Box<LoadError>) -> Self {
        Self::Load(error)
    }
}

impl fmt::Display for PanicError {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a host function panicked: {}", self.message)
    }
}

impl std::error::Error for PanicError {}

impl fmt::Display for ArgumentError {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for ArgumentError {}

impl fmt::Display for CallError {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.function)?;
        if !self.subject.is_empty() {
            write!(formatter, " ({})", self.subject)?;
        }
        write!(formatter, " failed with {} ({})", self.name, self.code.0)?;
        if !self.description.is_empty() {
            write!(formatter, ": {}", self.description)?;
        }
        if self.class() == ErrorClass::Sticky {
            formatter.write_str("; the context is lost and cannot be used again in this process")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "; {hint}")?;
        }
        if let Some(log) = &self.log {
            write!(formatter, "\n{}", log.trim_end())?;
        }
        if let Some(log) = &self.driver_log {
            write!(formatter, "\nthe driver's log: {}", log.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for CallError {}

const _: () = assert!(size_of::<Error>() <= 3 * size_of::<usize>(), "an error is a few words");
