//! Hints for errors inside a capture.

/// The hint for operations that write a slice.
pub(crate) const ON_MUT: &str = "use `.on_mut(scope)`";

/// The hint for operations on an array.
pub(crate) const ON: &str = "use `.on(scope)`";

/// The hint for copies to host memory.
pub(crate) const READ_LATER: &str = "copy to a `MappedBuffer` with `.on_mut(scope).copy_from_device(…)`, and read it with `host_view` after a launch";

/// The hint for copies from pinned or borrowed host memory.
pub(crate) const UPLOAD: &str = "use `.on_mut(scope).copy_from_slice(…)`, which copies the slice into the graph, or copy from a `MappedBuffer` \
                                 with `.on_mut(scope).copy_from_device(…)` and write it with `host_view_mut` between launches";

/// The hint for memory that a graph cannot own and that enqueued work writes.
pub(crate) const ALLOCATE_BEFORE: &str = "allocate it before the capture";

/// The hint for memory that a graph can own.
pub(crate) const ALLOCATE: &str =
    "allocate it before the capture, or on the capture scope if only the graph uses it";

/// The hint for vectors, which would grow at capture time and not at each launch.
pub(crate) const GROW_BEFORE: &str =
    "grow the vector before the capture; a graph can only write its elements";
