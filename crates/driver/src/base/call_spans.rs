//! Driver calls as `tracing` spans.

use std::cell::RefCell;

use curium_sys::Function;
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{Level, span};

use crate::{Call, CallObserver};

/// Makes every call of the driver a span of `tracing`, inside the span that is entered on the calling thread.
///
/// The spans are called `cuda`, have the target `curium::call` and the level `TRACE`, and carry the fields `function` and, when
/// they close, `code`, the number that the driver returned.
///
/// ```
/// use curium_driver::{CallSpans, observe_calls};
///
/// let guard = observe_calls(CallSpans::new());
/// // … every call of the driver is a span …
/// drop(guard);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSpans {
    _private: (),
}

thread_local! {
    /// The spans of the calls that this thread is in.
    static ENTERED: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

impl CallSpans {
    /// Returns an observer for [`observe_calls`](crate::observe_calls).
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl CallObserver for CallSpans {
    #[inline]
    fn before(&self, function: Function) {
        let span = span!(target: "curium::call", Level::TRACE, "cuda", function = function.name(), code = Empty);
        let entered = span.entered();
        // A thread that is ending may have no list any more; its calls have no spans then.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push(entered));
    }

    #[inline]
    fn after(&self, call: &Call<'_>) {
        let entered = ENTERED.try_with(|spans| spans.borrow_mut().pop()).ok().flatten();
        if let Some(span) = entered {
            span.record("code", call.code.0);
        }
    }
}
