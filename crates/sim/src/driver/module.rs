//! Modules: code in a context.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use curium_sys::{
    CUdeviceptr, CUfunction, CUjit_option, CUmod_st, CUmodule, CUmoduleLoadingMode, CUresult,
};

use crate::argument::{Argument, ConstPointer, Pointer};
use crate::driver::image::{Code, JitOptions};
use crate::driver::{Context, Driver, Function, Library, Result, State};
use crate::handle::{Id, Kind, Object, StaleHandle};
use crate::memory::{CopyOperand, Owner, Purpose};
use curium_ptx::exec::Global;

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

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuModuleLoadData(
        &self,
        module: Pointer<CUmodule>,
        image: ConstPointer<c_void>,
    ) -> Result {
        self.load_module(module, image, &JitOptions::none())
    }

    pub(crate) fn cuModuleLoadDataEx(
        &self,
        module: Pointer<CUmodule>,
        image: ConstPointer<c_void>,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
    ) -> Result {
        self.require_current()?;
        self.load_module(module, image, &JitOptions::new(options, values, count)?)
    }

    pub(crate) fn cuModuleLoadFatBinary(
        &self,
        module: Pointer<CUmodule>,
        image: ConstPointer<c_void>,
    ) -> Result {
        self.cuModuleLoadData(module, image)
    }

    pub(crate) fn cuModuleLoad(
        &self,
        module: Pointer<CUmodule>,
        path: ConstPointer<c_char>,
    ) -> Result {
        self.require_current()?;
        module.required()?;
        let image = read_image(path)?;
        // SAFETY: the image is NUL-terminated and lives until the end of the call.
        self.cuModuleLoadData(module, unsafe { image.as_ptr().cast::<c_void>().receive() })
    }

    /// Waits for the device, as on hardware.
    pub(crate) fn cuModuleUnload(&self, module: Pointer<CUmod_st>) -> Result {
        let mut state = self.lock();
        let id = state.module(module)?;
        self.permit_unsafe(&mut state)?;
        // The module of a library ends with it.
        let by_itself = state
            .modules
            .get(id)
            .filter(|module| module.library.is_none());
        let context = by_itself
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?
            .context;
        let device = state.valid_context(context)?.device;
        let mut state = self.wait_for_device(state, device)?;
        state.valid_context(context)?;
        self.unload(&mut state, id);
        Ok(())
    }

    pub(crate) fn cuModuleGetFunction(
        &self,
        function: Pointer<CUfunction>,
        module: Pointer<CUmod_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let state = self.lock();
        let module = state.module(module).and_then(|id| {
            state
                .modules
                .get(id)
                .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
        })?;
        let output = function.required()?;
        let name = name.text()?;
        output.write(module.functions[module.code.find(name)?].as_raw())
    }

    pub(crate) fn cuModuleGetFunctionCount(
        &self,
        count: Pointer<u32>,
        module: Pointer<CUmod_st>,
    ) -> Result {
        let output = count.required()?;
        let state = self.lock();
        let id = state.module(module)?;
        output.write(
            state
                .modules
                .get(id)
                .map_or(0, |module| module.functions.len()) as u32,
        )
    }

    pub(crate) fn cuModuleEnumerateFunctions(
        &self,
        functions: Pointer<CUfunction>,
        count: u32,
        module: Pointer<CUmod_st>,
    ) -> Result {
        let functions = functions.required()?;
        let state = self.lock();
        let id = state.module(module)?;
        let handles = state
            .modules
            .get(id)
            .map(|module| module.functions.iter().map(|function| function.as_raw()));
        // SAFETY: by the contract of the C function, there is room for `count` handles.
        unsafe { functions.write_all(handles.into_iter().flatten().take(count as usize)) }
    }

    pub(crate) fn cuModuleGetGlobal_v2(
        &self,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        module: Pointer<CUmod_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let name = name.text()?;
        let state = self.lock();
        let id = state.module(module)?;
        state.write_global(id, name, address, size)
    }

    pub(crate) fn cuModuleGetLoadingMode(&self, mode: Pointer<CUmoduleLoadingMode>) -> Result {
        mode.write(if self.loads_lazily() {
            CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING
        } else {
            CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING
        })
    }
}

impl Driver {
    fn load_module(
        &self,
        module: Pointer<CUmodule>,
        image: ConstPointer<c_void>,
        options: &JitOptions,
    ) -> Result {
        let owner = self.current_owner()?;
        let output = module.required()?;
        let code = self.compile_image(image, options)?;
        let id = self.instantiate(&mut self.lock(), code, owner, None)?;
        output.write(id.as_raw())
    }

    /// Loads code into a context, and allocates and initializes its variables.
    pub(crate) fn instantiate(
        &self,
        state: &mut State,
        code: Arc<Code>,
        owner: Owner,
        library: Option<Id<Library>>,
    ) -> Result<Id<Module>> {
        let globals = self.place_globals(code.program.globals(), owner)?;
        let kernels = code.program.kernels().len();
        let module = Module {
            context: owner.context,
            code,
            globals,
            functions: Vec::new(),
            library,
        };
        let id = state.modules.insert(module);
        let functions = (0..kernels)
            .map(|index| state.functions.insert(Function::new(id, index)))
            .collect();
        if let Some(module) = state.modules.get_mut(id) {
            module.functions = functions;
        }
        Ok(id)
    }

    /// Unloads a module and frees its variables.
    pub(crate) fn unload(&self, state: &mut State, id: Id<Module>) {
        let Some(module) = state.modules.remove(id) else {
            return;
        };
        for function in module.functions {
            state.functions.remove(function);
        }
        module
            .globals
            .iter()
            .for_each(|address| self.memory().free(*address));
    }

    /// Allocates and initializes variables; all of them or, if one fails, none.
    fn place_globals(&self, globals: &[Global], owner: Owner) -> Result<Arc<[u64]>> {
        let mut addresses = Vec::with_capacity(globals.len());
        for global in globals {
            match self.allocate_global(global, owner) {
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

    fn allocate_global(&self, global: &Global, owner: Owner) -> Result<u64> {
        let size = global.size.max(1);
        if global.managed {
            return Ok(self
                .memory()
                .allocate_on_host(size, owner, Purpose::ManagedVariable)?
                .expose());
        }
        self.memory()
            .allocate_on_device(size, owner, Purpose::Module)
    }
}

impl State {
    /// Returns a live module of a valid context.
    pub(crate) fn module(&self, raw: Pointer<CUmod_st>) -> Result<Id<Module>> {
        let id = Id::from(raw);
        match self.modules.get(id) {
            Some(module) => self.valid_context(module.context).map(|_| id),
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

/// Reads an image from a file, as if it were passed in memory.
pub(crate) fn read_image(path: ConstPointer<c_char>) -> Result<Vec<u8>> {
    let path = path
        .text()?
        .to_str()
        .ok()
        .filter(|path| !path.is_empty())
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let mut bytes = std::fs::read(path).map_err(|_| CUresult::CUDA_ERROR_FILE_NOT_FOUND)?;
    bytes.push(0);
    Ok(bytes)
}
