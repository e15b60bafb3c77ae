//! Driver calls as `tracing` spans.

use std::cell::RefCell;

use curium_sys::Function;
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{Level, span};

use crate::{Call, CallObserver};

/// Records every driver call as a `tracing` span, inside the span entered on the calling thread.
///
/// The spans are named `cuda` and have the target `curium::call` and the level `TRACE`. Their field `function` names
/// the driver function. When a span closes, its field `code` receives the result code.
///
/// ```
/// use curium_driver::{CallSpans, observe_calls};
///
/// let guard = observe_calls(CallSpans::new());
/// // … every driver call is a span …
/// drop(guard);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSpans {
    _private: (),
}

thread_local! {
    /// The spans of the calls in progress on this thread.
    static ENTERED: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

impl CallSpans {
    /// Returns an observer for [`observe_calls`](crate::observe_calls).
    #[must_use]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl CallObserver for CallSpans {
    fn before(&self, function: Function) {
        let span = span!(target: "curium::call", Level::TRACE, "cuda", function = function.name(), code = Empty);
        let entered = span.entered();
        // The list may already be destroyed on a thread that is exiting. Its calls have no spans.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push(entered));
    }

    fn after(&self, call: &Call<'_>) {
        let entered = ENTERED
            .try_with(|spans| spans.borrow_mut().pop())
            .ok()
            .flatten();
        if let Some(span) = entered {
            span.record("code", call.code.0);
        }
    }
}
