//! Filling rows.

/// Rows of the same length in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}
