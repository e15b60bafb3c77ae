//! Programs that measure: each is an example of this package, started by hand or by `cargo xtask`.
//! `cargo test` does not build them.
