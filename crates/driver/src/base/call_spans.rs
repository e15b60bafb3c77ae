//! Driver calls as `tracing` spans.

use std::cell::RefCell;

use curium_sys::Function;
use tracing::field::Empty;
use tracing::span::Id;
use tracing::{Dispatch, Level, Span, span};

use crate::base::contain::contain;
use crate::{Call, CallObserver};

/// Records every driver call as a `tracing` span, inside the span entered on the calling thread.
///
/// The spans are named `cuda` and have the target `curium::call` and the level `TRACE`. Their field
/// `function` names the driver function. When a span closes, its field `code` receives the result
/// code.
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
    /// The spans of the calls in progress on this thread; `None` if the subscriber panicked.
    static ENTERED: RefCell<Vec<Option<CallSpan>>> = const { RefCell::new(Vec::new()) };
}

/// An entered span.
///
/// Each call of the subscriber is contained by itself: a guard of `tracing` would call it again
/// while it unwinds from its own panic, which aborts the process.
struct CallSpan {
    /// `None` while it is being dropped.
    span: Option<Span>,
    /// `None` if the span is disabled.
    dispatch: Option<Dispatch>,
}

impl CallSpans {
    /// Returns an observer for [`observe_calls`](crate::observe_calls).
    #[must_use]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl CallSpan {
    /// Creates and enters a span; `None` if the subscriber panics.
    fn enter(function: Function) -> Option<Self> {
        let mut created = None;
        contain(|| {
            let span = span!(target: "curium::call", Level::TRACE, "cuda", function = function.name(), code = Empty);
            created = Some(span);
        });
        let span = created?;
        let dispatch = span.with_subscriber(|(_, dispatch)| dispatch.clone());
        let entered = Self {
            span: Some(span),
            dispatch,
        };
        entered.notify(Dispatch::enter);
        Some(entered)
    }

    fn notify(&self, call: impl FnOnce(&Dispatch, &Id)) {
        let id = self.span.as_ref().and_then(Span::id);
        if let (Some(dispatch), Some(id)) = (&self.dispatch, id) {
            contain(|| call(dispatch, &id));
        }
    }
}

impl CallObserver for CallSpans {
    fn before(&self, function: Function) {
        let entered = CallSpan::enter(function);
        // The list may already be destroyed on a thread that is exiting. Its calls have no spans.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push(entered));
    }

    fn after(&self, call: &Call<'_>) {
        let entered = ENTERED
            .try_with(|spans| spans.borrow_mut().pop())
            .ok()
            .flatten()
            .flatten();
        if let Some(span) = entered.as_ref().and_then(|entered| entered.span.as_ref()) {
            contain(|| {
                span.record("code", call.code.0);
            });
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.notify(Dispatch::exit);
        let span = self.span.take();
        contain(move || drop(span));
        // Last: it may be the last reference to the subscriber, whose destructor is user code.
        let dispatch = self.dispatch.take();
        contain(move || drop(dispatch));
    }
}
