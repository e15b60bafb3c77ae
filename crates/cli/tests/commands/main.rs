//! The commands of `curium`, run as a program.

mod bench;
#[cfg(unix)]
mod cache;
mod completions;
mod demo;
mod doctor;
mod info;
mod json;
#[cfg(unix)]
mod kernels;
mod man;
mod mem;
mod program;
#[cfg(unix)]
mod run;
mod trace;
