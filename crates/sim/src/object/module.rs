//! Modules: code in a context.

use std::sync::Arc;

use curium_sys::CUmod_st;

use crate::context::Context;
use crate::handle::{Id, Kind, Object};
use crate::image::Code;
use crate::object::function::Function;
use crate::object::library::Library;

/// Code that is loaded in a context, with its variables.
pub(crate) struct Module {
    pub(crate) context: Id<Context>,
    pub(crate) code: Arc<Code>,
    /// The addresses of the program's variables.
    pub(crate) globals: Arc<[u64]>,
    /// The handles of the kernels, in the order of the program.
    pub(crate) functions: Vec<Id<Function>>,
    /// The library that the module belongs to, if it was not loaded by itself.
    pub(crate) library: Option<Id<Library>>,
}

impl Object for Module {
    type Raw = CUmod_st;
    const KIND: Kind = Kind::Module;
}
