//! Errors: the operation that failed, the reason, and a hint.

mod library;
mod rendezvous;
mod returned;

use std::fmt;
use std::time::Duration;

use curium_driver::CudaError;
use curium_sys::load::{self, LibraryError, LoadError, MissingFunction};
use thiserror::Error as ThisError;

pub use self::library::{
    AbortedError, ArgumentError, CallError, FinalizedError, RecentCall, TimeoutError,
};
pub use self::rendezvous::RendezvousError;
pub use self::returned::Returned;
use crate::sys::ncclResult_t;

/// Calls a function of NCCL, like [`curium_sys::call!`], with the error of this crate, which has
/// NCCL's message.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api = $api;
        match api.$function {
            Some(function) => $crate::library::check(api, stringify!($function), function($($argument),*)),
            None => Err($crate::library::missing(api, stringify!($function))),
        }
    }};
}

pub(crate) use call;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `Debug` is the text of `Display`, with hints and sources on
/// lines of their own.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The ranks of a job did not find each other.
    #[error(transparent)]
    Rendezvous(#[from] Box<RendezvousError>),
    /// NCCL could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function of NCCL returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] Box<MissingFunction>),
    /// The arguments of an operation do not agree. NCCL was not called.
    #[error(transparent)]
    Argument(#[from] Box<ArgumentError>),
    /// An operation did not complete within the timeout of its communicator, which was aborted.
    #[error(transparent)]
    Timeout(#[from] Box<TimeoutError>),
    /// The communicator has been aborted.
    #[error(transparent)]
    Aborted(#[from] Box<AbortedError>),
    /// The communicator has been finalized.
    #[error(transparent)]
    Finalized(#[from] Box<FinalizedError>),
    /// An operation of the driver failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
}

// Every variant is a pointer, or an enum of pointers, so that the result of a call is returned in
// registers.
const _: () = assert!(
    size_of::<Error>() == 2 * size_of::<usize>(),
    "a variant is larger than a pointer"
);

impl From<LibraryError<ncclResult_t>> for Error {
    fn from(error: LibraryError<ncclResult_t>) -> Self {
        error.into_error()
    }
}

impl From<Box<load::CallError<ncclResult_t>>> for Error {
    fn from(error: Box<load::CallError<ncclResult_t>>) -> Self {
        Self::Call(Box::new(CallError {
            function: error.function,
            code: error.code,
            message: Box::default(),
        }))
    }
}

impl From<RendezvousError> for Error {
    fn from(error: RendezvousError) -> Self {
        Self::Rendezvous(Box::new(error))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => fmt::Debug::fmt(error, formatter),
            _ => write_with_source(self, formatter),
        }
    }
}

/// Writes the text of an error, and that of its source on a line of its own.
fn write_with_source(
    error: &impl std::error::Error,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(formatter, "{error}")?;
    match error.source() {
        Some(source) => write!(formatter, "\n  because: {source}"),
        None => Ok(()),
    }
}

/// Formats a time with two significant digits, such as `2.5 s`.
fn seconds(time: Duration) -> impl fmt::Display {
    format!("{:.1} s", time.as_secs_f64())
}

impl CudaError for Error {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(match self {
            Self::Rendezvous(error) => &**error,
            Self::Load(error) => &**error,
            Self::Call(error) => &**error,
            Self::Missing(error) => &**error,
            Self::Argument(error) => &**error,
            Self::Timeout(error) => &**error,
            Self::Aborted(error) => &**error,
            Self::Finalized(error) => &**error,
            Self::Driver(error) => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn rendezvous_error_has_a_source() {
        let source = io::Error::new(io::ErrorKind::AddrInUse, "in use");
        let error = Error::from(RendezvousError::Listen {
            address: "10.0.0.1:80".into(),
            source,
        });
        let text = "rendezvous: rank 0 cannot listen on 10.0.0.1:80; set MASTER_PORT, or CURIUM_PORT, to a port that no program uses";
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), format!("{text}\n  because: in use"));
        assert_eq!(
            std::error::Error::source(&error)
                .map(ToString::to_string)
                .as_deref(),
            Some("in use")
        );
    }
}
