//! Copies.

pub(crate) mod rows;
