//! copy.

pub(crate) mod rows;
