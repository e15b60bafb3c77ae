//! The package of the tests in `tests/graphics`, which need a GPU: `cargo test` does not build
//! them.
