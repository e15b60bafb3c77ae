//! The chapters of the book as doc tests: their code is compiled, and runs on the simulator unless
//! it is marked `no_run`. `build.rs` completes the examples.

include!(concat!(env!("OUT_DIR"), "/book.rs"));
