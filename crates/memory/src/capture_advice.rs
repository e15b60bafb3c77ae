//! What errors advise within a capture, where no slice of the host can be copied to.

/// The advice for copies to memory of the host.
pub(crate) const READ_LATER: &str =
    "copy to a `MappedBuffer` with `copy_from_device_on(scope, …)`, and read it with `host_view` after a launch";

/// The advice for copies from pinned or borrowed memory of the host.
pub(crate) const UPLOAD: &str = "use `copy_from_slice_on(scope, …)`, of which the graph keeps a copy, or copy from a `MappedBuffer` \
                                 with `copy_from_device_on(scope, …)`, which `host_view_mut` writes between launches";

/// The advice for memory that no graph can own, where work sets what it holds.
pub(crate) const ALLOCATE_BEFORE: &str = "allocate it before the capture";

/// The advice for memory that a graph can own.
pub(crate) const ALLOCATE: &str = "allocate it before the capture, or on the capture scope if only the graph uses it";

/// The advice for vectors, which grow once and not with each launch.
#[cfg(feature = "virtual-memory")]
pub(crate) const GROW_BEFORE: &str =
    "a graph cannot grow a vector: grow it before the capture, and write its elements in it";
