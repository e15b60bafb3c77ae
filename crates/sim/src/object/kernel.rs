//! Kernels of libraries.

use std::collections::HashMap;

use curium_sys::CUkern_st;

use crate::handle::{Id, Kind, Object};
use crate::object::function::Settings;
use crate::object::library::Library;

/// A kernel of a library, in any context.
pub(crate) struct Kernel {
    pub(crate) library: Id<Library>,
    /// Its position in the program.
    pub(crate) index: usize,
    /// The settings for each device.
    pub(crate) settings: HashMap<usize, Settings>,
}

impl Object for Kernel {
    type Raw = CUkern_st;
    const KIND: Kind = Kind::Kernel;
}

impl Kernel {
    pub(crate) fn new(library: Id<Library>, index: usize) -> Self {
        Self {
            library,
            index,
            settings: HashMap::new(),
        }
    }
}
