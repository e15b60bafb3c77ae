//! Tests with the real compiler and linker. They need no GPU; `cargo xtask ci --step nvrtc` runs
//! them with several versions.

mod build_script;
mod cache;
mod compile;
mod headers;
mod includes;
mod library;
mod link;
mod old_driver;
mod options;
mod run;
mod test_set;
