//! The output of `cargo xtask bindings generate`.

pub(crate) mod routines;
