//! Errors: the operation that failed, the reason, and a hint.

use std::fmt;

use curium_driver::sys::load::{self, LoadError, MissingFunction};
use thiserror::Error as ThisError;

use crate::sys::curandStatus_t;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `Debug` is the text of `Display`.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// cuRAND could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function of cuRAND returned an error.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] MissingFunction),
    /// An operation of the driver failed.
    #[error(transparent)]
    Driver(#[from] curium_driver::Error),
}

/// A function of cuRAND that returned an error.
pub type CallError = load::CallError<curandStatus_t>;

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => fmt::Debug::fmt(error, formatter),
            _ => fmt::Display::fmt(self, formatter),
        }
    }
}
