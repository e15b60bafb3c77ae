//! The result of a test.

use std::fmt::{self, Debug, Display, Formatter};
use std::panic::Location;

/// The result of a test, or of a function that tests share.
pub type TestResult<T = ()> = Result<T, TestError>;

/// The reason why a test failed: the message of an error, and the source location of the `?` that
/// returned it.
///
/// Every error, and every message, converts into this type. It implements neither
/// [`Error`](std::error::Error) nor [`Display`], so that the conversion is unambiguous.
pub struct TestError {
    message: String,
    location: &'static Location<'static>,
}

impl<E: Display> From<E> for TestError {
    #[track_caller]
    fn from(error: E) -> Self {
        Self {
            message: error.to_string(),
            location: Location::caller(),
        }
    }
}

/// Shows the message and the location: the test harness prints the `Debug` representation.
impl Debug for TestError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  at {}", self.message, self.location)
    }
}

/// A value that a test returns: `()`, or a `Result`.
pub trait TestOutcome {
    /// Returns the outcome of a test that is skipped.
    fn skipped() -> Self;

    /// Returns `true` if the test failed.
    fn is_failure(&self) -> bool;
}

/// Reports that a test is skipped, and returns its outcome.
#[expect(
    clippy::print_stdout,
    reason = "the output of the tests lists those that were skipped"
)]
#[must_use]
pub fn skip<R: TestOutcome>(reason: &str) -> R {
    println!("skipped: {reason}");
    R::skipped()
}

impl TestOutcome for () {
    fn skipped() -> Self {}

    fn is_failure(&self) -> bool {
        false
    }
}

impl<E> TestOutcome for Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }

    fn is_failure(&self) -> bool {
        self.is_err()
    }
}
