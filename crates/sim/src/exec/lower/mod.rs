//! From a parsed module to a program: places variables, then decodes each function.

mod address;
mod asynchronous;
mod atomic;
mod barrier_object;
mod bits;
mod call;
mod convert;
mod convert_packed;
mod convert_random;
mod error;
mod extended;
mod float;
mod flow;
mod function;
mod integer;
mod launch_control;
mod matrix;
mod matrix_memory;
mod module;
mod moves;
mod packed;
mod registers;
mod select;
mod set;
mod shared;
mod stack;
mod surface;
mod system;
mod tensor_map;
mod texture;
mod unwritten;
mod variables;
mod video;
mod warp;

pub use error::LowerError;
pub use module::{lower, lower_with_checks};
