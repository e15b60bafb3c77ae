//! Random kernels in safe Rust: a generator of valid programs of the model, compared with an
//! interpreter.
//!
//! A program is a tree of syntax. The printer writes it as a kernel of `curium-kernel`, which is
//! compiled and runs on the simulator with all checks; the interpreter executes the same tree on
//! the host, one thread after the other. No check may report anything, and the results must be the
//! same. Everything follows from a seed, and a program that fails is reduced to a small one.

mod compile;
mod generate;
mod interpret;
mod launch;
mod print;
mod program;
mod search;
mod shrink;
mod value;
mod wrong;

pub use search::{Figures, Options, Progress, Verdict, run};
