//! PTX on the CPU: a parser, and an executor that checks every access.
//!
//! [`syntax::parse`] turns the text of a module into a typed and resolved [`syntax::Module`].
//! [`exec::lower`] lowers the module to an [`exec::Program`], and [`exec::run`] executes one of its
//! kernels on the threads of the host.
//!
//! This is the engine of `curium-sim`, which implements the CUDA driver around it: devices,
//! contexts, streams and memory. Programs use that crate. The interface here follows its needs and
//! may change in any release, except for the reports, which `curium-sim` exports too.

pub mod exec;
mod isa;
pub mod syntax;
