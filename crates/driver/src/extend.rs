//! Building blocks for crates that extend this one.
//!
//! `curium-memory`, `curium-nvrtc`, `curium-interop`, `curium-diagnostics` and the crates of
//! NVIDIA's libraries use the items of this module and the following methods to call the driver,
//! create errors and release handles:
//!
//! - Calls: [`call!`](crate::call) calls a driver function.
//!   [`Context::entered`](crate::Context::entered) or [`Context::enter`](crate::Context::enter)
//!   makes a context current for the call.
//! - Errors: [`Error::argument`](crate::Error::argument) rejects an argument.
//!   [`Error::about`](crate::Error::about), [`Error::advised`](crate::Error::advised) and
//!   [`Error::during`](crate::Error::during) add details to an error.
//!   [`declare_library_error!`](crate::declare_library_error) declares the error type of a
//!   library's crate.
//! - Ownership: [`Driver::check_same`](crate::Driver::check_same) rejects a handle of another
//!   driver. [`Context::attached`](crate::Context::attached) and
//!   [`Stream::attached`](crate::Stream::attached) keep a value for as long as a context or a
//!   stream lives. A [`Handle`] is a raw handle of the driver that threads may share.
//! - Streams: [`Stream::enqueue`](crate::Stream::enqueue) begins an operation, which is the gate to
//!   the stream: see rule 1. [`Stream::record_pooled_event`](crate::Stream::record_pooled_event)
//!   marks a point in a stream, and [`Stream::downgrade`](crate::Stream::downgrade) refers to a
//!   stream without keeping it alive.
//! - Callbacks: [`Callbacks`] keeps the closures that the driver calls back.
//!   [`observe_calls`](crate::observe_calls) observes driver calls; [`Microseconds`] and
//!   [`thread_number`] are the times and the thread numbers of a trace.
//! - Memory: [`hazard`](crate::hazard) orders the accesses of an operation to an allocation across
//!   streams.
//!
//! # Rules
//!
//! 1. Work is enqueued through an [`Operation`](crate::hazard::Operation), which has checked what
//!    the thread and the stream capture, and alone gives the handle of the stream.
//!    [`Stream::enqueue`](crate::Stream::enqueue) begins one that a graph can contain,
//!    [`Stream::enqueue_uncaptured`](crate::Stream::enqueue_uncaptured) and
//!    [`Stream::enqueue_now`](crate::Stream::enqueue_now) one that no graph can contain, and
//!    [`Stream::enqueue_release`](crate::Stream::enqueue_release) one of a destructor. A handle for
//!    anything else than enqueued work, such as a query, comes from
//!    [`AsRawStream`](crate::AsRawStream). A wait on the host calls [`refuse_wait`].
//! 2. A `Drop` that calls the driver does so within [`release`], [`release_handle`] or
//!    [`dropping`], which permit it to wait on the host within a capture closure. Enqueuing work
//!    that the graph would miss remains an error there.
//! 3. Memory is freed only after a successful wait for the work that uses it. Otherwise it is
//!    passed to [`leak`]. Memory that is borrowed cannot be leaked: the wait is [`until_done`], and
//!    another call that ends its use is repeated with [`retry_or_abort`].
//! 4. User code, such as a callback, runs within [`contain`], and never while a lock is held,
//!    except for an [`Exclusive`]. A waker is held by a [`TaskWaker`]. The body of an `extern "C"`
//!    function is a [`contain_callback`]. Events of `tracing` are emitted by `emit_event!`.

pub use crate::base::call_trace::{Microseconds, thread_number};
pub use crate::base::callback::{CallbackNumber, Callbacks};
pub use crate::base::capture_guard::{
    NOT_WHILE_CAPTURING, ON_THE_SCOPE, recorded_capture, refuse_wait,
};
pub use crate::base::capture_mode::{
    with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible,
};
#[doc(hidden)]
pub use crate::base::contain::emit;
pub use crate::base::contain::{TaskWaker, contain, contain_callback};
pub use crate::base::current::Entered;
pub use crate::base::exclusive::{Exclusive, ExclusiveGuard};
pub use crate::base::handle::Handle;
pub use crate::base::release::{dropping, is_exiting, leak, release, release_handle, report};
pub use crate::completion::drop_on_completion;
pub use crate::completion::watch::wake;
pub use crate::stream::WeakStream;
pub use crate::stream::until_done::{retry_or_abort, until_done};
#[doc(hidden)]
pub use tracing;

/// Emits an event of `tracing` and contains a panic of the subscriber.
///
/// Takes the name of a level, and then the arguments of `tracing::event!`; a target comes first.
#[doc(hidden)]
#[macro_export]
macro_rules! emit_event {
    (target: $target:expr, $level:ident, $($event:tt)+) => {
        $crate::extend::emit(|| {
            $crate::extend::tracing::event!(target: $target, $crate::extend::tracing::Level::$level, $($event)+);
        })
    };
    ($level:ident, $($event:tt)+) => {
        $crate::extend::emit(|| {
            $crate::extend::tracing::event!($crate::extend::tracing::Level::$level, $($event)+);
        })
    };
}
