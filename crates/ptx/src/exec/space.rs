//! The state spaces of accesses.

/// The state space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Any window, selected by the address.
    Generic,
    /// Device memory, including constants.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's local memory, by address.
    Local,
    /// The thread's local memory, by offset from the frame, without an address register.
    Frame,
    /// The kernel's parameters.
    Param,
}
