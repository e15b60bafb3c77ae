//! The CUDA foundation for Rust: a facade over the curium crates.
