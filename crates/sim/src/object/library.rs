//! Libraries: code that is loaded into contexts on demand.

use std::collections::HashMap;
use std::sync::Arc;

use curium_sys::{CUlib_st, CUresult};

use crate::context::Context;
use crate::handle::{Id, Kind, Object};
use crate::image::Code;
use crate::object::kernel::Kernel;
use crate::object::module::Module;
use crate::result::Result;

/// Code that is independent of contexts.
pub(crate) struct Library {
    pub(crate) source: Arc<Source>,
    /// The compiled code; `None` before the first use.
    pub(crate) compiled: Option<Compiled>,
    /// The module in each context that has used the library.
    pub(crate) modules: HashMap<Id<Context>, Id<Module>>,
}

/// The PTX of a library.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) max_registers: Option<u32>,
}

/// The code of a library.
pub(crate) struct Compiled {
    pub(crate) code: Arc<Code>,
    /// The handles of the kernels, in the order of the program.
    pub(crate) kernels: Vec<Id<Kernel>>,
}

impl Object for Library {
    type Raw = CUlib_st;
    const KIND: Kind = Kind::Library;
}

impl Library {
    /// Returns the code, which exists if the library has been used: if it has a kernel or a module.
    pub(crate) fn code(&self) -> Result<&Arc<Code>> {
        Ok(&self.compiled()?.code)
    }

    /// Returns the handles of the kernels, in the order of the program.
    pub(crate) fn kernels(&self) -> &[Id<Kernel>] {
        self.compiled
            .as_ref()
            .map_or(&[], |compiled| &compiled.kernels)
    }

    pub(crate) fn compiled(&self) -> Result<&Compiled> {
        self.compiled
            .as_ref()
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
