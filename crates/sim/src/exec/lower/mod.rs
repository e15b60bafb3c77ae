//! From a parsed module to a program: places variables, then decodes each function.

mod address;
mod atomic;
mod bits;
mod call;
mod convert;
mod error;
mod float;
mod flow;
mod function;
mod integer;
mod module;
mod moves;
mod select;
mod variables;
mod warp;

pub use error::LowerError;
pub use module::lower;
