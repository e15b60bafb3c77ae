//! The driver's part in libraries.

use std::sync::Arc;

use curium_sys::{CUlib_st, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::image::Code;
use crate::memory::Owner;
use crate::object::kernel::Kernel;
use crate::object::library::{Compiled, Library};
use crate::object::module::Module;
use crate::result::Result;

impl Locked<'_> {
    /// Returns the module of a library in a context, loading it on first use.
    pub(crate) fn library_module(
        &mut self,
        id: Id<Library>,
        context: Id<Context>,
    ) -> Result<Id<Module>> {
        let context = self.contexts.owning_context(context);
        let library = self
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        // A primary context that was reset has lost its modules, and may be active again.
        if let Some(module) = library
            .modules
            .get(&context)
            .filter(|module| self.modules.contains(**module))
        {
            return Ok(*module);
        }
        let code = Arc::clone(library.code()?);
        let owner = Owner {
            context,
            device: self.contexts.valid_context(context)?.device(),
        };
        let module = self.instantiate(code, owner, Some(id))?;
        if let Some(library) = self.libraries.get_mut(id) {
            library.modules.insert(context, module);
        }
        Ok(module)
    }
}

impl State {
    /// Sets the code of a library, unless another thread has compiled it meanwhile.
    pub(crate) fn set_library_code(&mut self, id: Id<Library>, code: Arc<Code>) -> Result {
        let library = self
            .libraries
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if library.compiled.is_none() {
            let kernels = (0..code.program.kernels().len())
                .map(|index| self.kernels.insert(Kernel::new(id, index)))
                .collect();
            library.compiled = Some(Compiled { code, kernels });
        }
        Ok(())
    }

    pub(crate) fn library(&self, raw: Pointer<CUlib_st>) -> Result<Id<Library>> {
        let id = Id::from(raw);
        if self.libraries.contains(id) {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
        }
    }
}
