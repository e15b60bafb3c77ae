//! The layer that records `tracing` spans.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tracing::Subscriber;
use tracing::span::Id;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::Recorder;

/// A layer for `tracing_subscriber` that adds spans to a trace. See
/// [`Trace::layer`](crate::Trace::layer).
pub struct TraceLayer {
    /// The layer may outlive the trace.
    recorder: Weak<Recorder>,
}

/// A span that the thread has entered.
struct Entered {
    id: Id,
    recorder: Weak<Recorder>,
    time: Instant,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

impl TraceLayer {
    pub(super) fn new(recorder: &Arc<Recorder>) -> Self {
        Self {
            recorder: Arc::downgrade(recorder),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceLayer {
    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        if self.recorder.strong_count() == 0 {
            return;
        }
        let entered = Entered {
            id: id.clone(),
            recorder: self.recorder.clone(),
            time: Instant::now(),
        };
        ENTERED.with_borrow_mut(|stack| stack.push(entered));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let entered = ENTERED.with_borrow_mut(|stack| {
            // Spans can be exited in another order than that of their entries.
            let index = stack.iter().rposition(|entered| {
                entered.id == *id && entered.recorder.ptr_eq(&self.recorder)
            })?;
            Some(stack.remove(index))
        });
        if let Some(entered) = entered
            && let Some(recorder) = self.recorder.upgrade()
            && let Some(metadata) = context.metadata(id)
        {
            recorder.add_span(metadata.name(), entered.time);
        }
    }
}

impl fmt::Debug for TraceLayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TraceLayer")
    }
}
