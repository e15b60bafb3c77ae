//! The errors of communicators.

use std::fmt;
use std::time::Duration;

use curium_driver::{CudaError, ErrorClass, LibraryStatus as _};
use thiserror::Error as ThisError;

use super::{Error, seconds};
use crate::sys::ncclResult_t;

/// A function of NCCL that returned an error.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{function}: failed ({code:?} = {}{}); NCCL_DEBUG=WARN prints details", .code.0, separated(.message))]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: &'static str,
    /// The code that it returned.
    pub code: ncclResult_t,
    /// NCCL's message, empty if there is none.
    pub message: Box<str>,
}

/// Arguments that do not agree with each other or with the communicator. NCCL was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{operation}: {problem}")]
#[non_exhaustive]
pub struct ArgumentError {
    /// The operation, such as `all_gather`.
    pub operation: &'static str,
    /// The problem, followed by `; ` and a hint, if there is one.
    pub problem: Box<str>,
}

/// An operation that did not complete within the timeout of its communicator, which was aborted.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error(
    "{operation}: not completed within {} (rank {rank} of {size}, {outstanding}{}); the communicator was aborted, see the output of the other \
     ranks",
    seconds(*.waited), last_calls(.recent)
)]
#[non_exhaustive]
pub struct TimeoutError {
    /// The operation of this crate that waited.
    pub operation: &'static str,
    /// The first operation that had not completed, with its number on the communicator.
    pub outstanding: Box<str>,
    /// The last calls of this rank, the oldest first, at most 16. A rank whose list differs from
    /// that of the others has called something else.
    pub recent: Box<[RecentCall]>,
    /// The rank.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// The duration of the wait.
    pub waited: Duration,
}

/// A call of an operation on a communicator with a timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RecentCall {
    /// The number of the call on this communicator, from 1.
    pub number: u64,
    /// The number of the collective on this communicator, from 1; `None` for transfers between two
    /// ranks.
    pub collective: Option<u64>,
    /// The operation, such as `all_reduce`.
    pub name: &'static str,
    /// The number of elements.
    pub count: usize,
    /// The type of the elements, such as `f32`.
    pub element: &'static str,
    /// The reduction, such as `Sum`; `None` if the operation has none.
    pub reduction: Option<&'static str>,
    /// The root; `None` if the operation has none.
    pub root: Option<usize>,
}

impl fmt::Display for RecentCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            name,
            count,
            element,
            ..
        } = self;
        write!(formatter, "{number} {name} of {count} {element}")
    }
}

/// The number of calls in the text of an error.
const MAX_SHOWN_CALLS: usize = 4;

/// Lists the last calls if there is more than the outstanding one.
fn last_calls(recent: &[RecentCall]) -> String {
    if recent.len() < 2 {
        return String::new();
    }
    let shown = &recent[recent.len().saturating_sub(MAX_SHOWN_CALLS)..];
    let texts: Vec<_> = shown.iter().map(ToString::to_string).collect();
    format!("; last calls: {}", texts.join(", "))
}

/// A communicator that was aborted. NCCL was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error(
    "{operation}: the communicator was aborted (rank {rank} of {size}); create another among the remaining ranks"
)]
#[non_exhaustive]
pub struct AbortedError {
    /// The operation.
    pub operation: &'static str,
    /// The rank.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
}

/// A communicator that was finalized. NCCL was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error(
    "{operation}: the communicator was finalized (rank {rank} of {size}); it can only be destroyed or aborted"
)]
#[non_exhaustive]
pub struct FinalizedError {
    /// The operation.
    pub operation: &'static str,
    /// The rank.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
}

impl ArgumentError {
    #[cold]
    pub(crate) fn refused(operation: &'static str, problem: impl Into<Box<str>>) -> Error {
        Error::Argument(Box::new(Self {
            operation,
            problem: problem.into(),
        }))
    }
}

macro_rules! debug_as_display {
    ($($ty:ty),*) => {
        $(impl fmt::Debug for $ty {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        })*
    };
}

debug_as_display!(
    CallError,
    ArgumentError,
    TimeoutError,
    AbortedError,
    FinalizedError
);

fn separated(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

impl CudaError for CallError {
    fn class(&self) -> ErrorClass {
        if self.is_out_of_memory() {
            ErrorClass::Resource
        } else {
            self.code.class()
        }
    }

    /// NCCL has no code for it: its message quotes the driver's description.
    fn is_out_of_memory(&self) -> bool {
        self.code == ncclResult_t::ncclUnhandledCudaError && self.message.contains("out of memory")
    }
}

impl CudaError for ArgumentError {}

impl CudaError for TimeoutError {
    fn class(&self) -> ErrorClass {
        ErrorClass::System
    }
}

impl CudaError for AbortedError {}

impl CudaError for FinalizedError {}
