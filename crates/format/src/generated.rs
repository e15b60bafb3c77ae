//! The table of versions.

pub(crate) mod versions;
