//! Hints for errors inside a capture.

use curium_driver::Error;
use curium_driver::extend::ON_THE_SCOPE;

/// The hint for copies to host memory.
pub(crate) const READ_LATER: &str = "copy to a `MappedBuffer` with `copy_from_device_on(scope, …)`, and read it with `host_view` after a launch";

/// The hint for copies from pinned or borrowed host memory.
pub(crate) const UPLOAD: &str = "use `copy_from_slice_on(scope, …)`, which copies the slice into the graph, or copy from a `MappedBuffer` \
                                 with `copy_from_device_on(scope, …)` and write it with `host_view_mut` between launches";

/// The hint for memory that a graph cannot own and that enqueued work writes.
pub(crate) const ALLOCATE_BEFORE: &str = "allocate it before the capture";

/// The hint for memory that a graph can own.
pub(crate) const ALLOCATE: &str =
    "allocate it before the capture, or on the capture scope if only the graph uses it";

/// The hint for vectors, which would grow at capture time and not at each launch.
pub(crate) const GROW_BEFORE: &str =
    "grow the vector before the capture; a graph can only write its elements";

/// Names `operation`, which enqueues on the stream of its memory, in an error of the form with a stream, which it calls. If the
/// stream was refused because of a capture, the hint is that form.
pub(crate) fn without_stream(operation: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| match &error {
        Error::Argument(refused) if refused.reason.ends_with(ON_THE_SCOPE) => {
            let method = operation.rsplit("::").next().unwrap_or(operation);
            let form = format!("use `{method}_on(scope, …)`");
            Error::argument(operation, refused.reason.replace(ON_THE_SCOPE, &form))
        }
        _ => error.during(operation),
    }
}
