//! Details for errors of event operations: the operands and their contexts.

use curium_sys::CUresult;

use super::Event;
use crate::{Context, Error};

impl Event {
    /// Adds the operands to the error of measuring the time from `start` to this event, and their
    /// contexts if they differ.
    #[cold]
    pub(super) fn explain_elapsed(&self, error: Error, start: &Self) -> Error {
        let error = error.about(format!("from {start:?} to {self:?}"));
        match other_context(&error, start.context(), self.context()) {
            Some([first, second]) => error.advised(|_| {
                Some(
                    format!("the first event belongs to {first}, and the second to {second}")
                        .into(),
                )
            }),
            None => error.advised(|error| {
                let is_unusable = error.code == CUresult::CUDA_ERROR_INVALID_HANDLE;
                is_unusable.then(|| {
                    "an event was never recorded, or was created with `DISABLE_TIMING`".into()
                })
            }),
        }
    }
}

/// Returns the contexts of two handles if the driver rejected a handle and the contexts differ.
pub(crate) fn other_context(
    error: &Error,
    first: &Context,
    second: &Context,
) -> Option<[String; 2]> {
    let differ = error.code() == Some(CUresult::CUDA_ERROR_INVALID_HANDLE)
        && first.as_raw() != second.as_raw();
    differ.then(|| [first, second].map(|context| format!("{context:?}")))
}
