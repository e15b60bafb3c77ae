//! The driver's part in modules.

use std::ffi::CStr;
use std::sync::Arc;

use curium_ptx::exec::Global;
use curium_sys::{CUdeviceptr, CUmod_st, CUresult};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::{Id, StaleHandle};
use crate::image::Code;
use crate::memory::{CopyOperand, Memory, Owner, Purpose};
use crate::object::function::Function;
use crate::object::library::Library;
use crate::object::module::Module;
use crate::result::Result;

impl Driver {
    /// Allocates and initializes variables; all of them or, if one fails, none.
    fn place_globals(&self, globals: &[Global], owner: Owner) -> Result<Arc<[u64]>> {
        let mut addresses = Vec::with_capacity(globals.len());
        for global in globals {
            match allocate_global(self.memory(), global, owner) {
                Ok(address) => addresses.push(address),
                Err(code) => {
                    addresses
                        .into_iter()
                        .for_each(|address| self.memory().free(address));
                    return Err(code);
                }
            }
        }
        for (global, address) in globals.iter().zip(&addresses) {
            let contents = initial_contents(global, &addresses);
            let size = contents.len();
            self.report_transfer(self.memory().copy(
                &CopyOperand::Device(*address),
                &CopyOperand::Staged(contents),
                size,
            ))?;
        }
        Ok(addresses.into())
    }
}

impl Locked<'_> {
    /// Loads code into a context, and allocates and initializes its variables.
    pub(crate) fn instantiate(
        &mut self,
        code: Arc<Code>,
        owner: Owner,
        library: Option<Id<Library>>,
    ) -> Result<Id<Module>> {
        let driver = self.driver;
        let globals = driver.place_globals(code.program.globals(), owner)?;
        let kernels = code.program.kernels().len();
        let module = Module {
            context: owner.context,
            code,
            globals,
            functions: Vec::new(),
            library,
        };
        let id = self.modules.insert(module);
        let functions = (0..kernels)
            .map(|index| self.functions.insert(Function::new(id, index)))
            .collect();
        if let Some(module) = self.modules.get_mut(id) {
            module.functions = functions;
        }
        Ok(id)
    }
}

impl State {
    /// Returns a live module of a valid context.
    pub(crate) fn module(&self, raw: Pointer<CUmod_st>) -> Result<Id<Module>> {
        let id = Id::from(raw);
        match self.modules.get(id) {
            Some(module) => self.contexts.valid_context(module.context).map(|_| id),
            None if self.modules.classify_stale(id) == StaleHandle::Lost => {
                Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
            }
            None => Err(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Writes the address of a module variable, and its size.
    pub(crate) fn write_global(
        &self,
        id: Id<Module>,
        name: &CStr,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
    ) -> Result {
        let module = self
            .modules
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if name.is_empty() || (address.is_null() && size.is_null()) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let index = module.code.find_global(name)?;
        address.write_if_not_null(module.globals[index]);
        size.write_if_not_null(module.code.program.globals()[index].size as usize);
        Ok(())
    }
}

/// Returns the initial value of a variable, with the addresses in it resolved.
fn initial_contents(global: &Global, addresses: &[u64]) -> Box<[u8]> {
    let mut contents = global.init.clone();
    for relocation in &global.relocations {
        let start = relocation.offset as usize;
        let field = contents.get_mut(start..start + usize::from(relocation.size));
        if let Some(field) = field {
            let address = relocation.target.resolve(addresses).to_le_bytes();
            field.copy_from_slice(&address[..usize::from(relocation.size)]);
        }
    }
    contents.into()
}

fn allocate_global(memory: &Memory, global: &Global, owner: Owner) -> Result<u64> {
    let size = global.size.max(1);
    if global.managed {
        return Ok(memory
            .allocate_on_host(size, owner, Purpose::ManagedVariable)?
            .expose());
    }
    memory.allocate_on_device(size, owner, Purpose::Module)
}
