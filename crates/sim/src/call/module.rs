//! The C functions for modules.

use std::ffi::{c_char, c_void};

use curium_sys::{
    CUdeviceptr, CUfunction, CUjit_option, CUmod_st, CUmodule, CUmoduleLoadingMode, CUresult,
};

use crate::argument::{Argument as _, ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::image::jit::JitOptions;
use crate::object::module::Module;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
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
        state.check_potentially_unsafe_call()?;
        // The module of a library ends with it.
        let by_itself = state
            .modules
            .get(id)
            .filter(|module| module.library.is_none());
        let context = by_itself
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?
            .context;
        let device = state.contexts.valid_context(context)?.device();
        let mut state = state.wait_for_device(device)?;
        state.contexts.valid_context(context)?;
        state.unload(id);
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

impl Call<'_> {
    fn load_module(
        &self,
        module: Pointer<CUmodule>,
        image: ConstPointer<c_void>,
        options: &JitOptions,
    ) -> Result {
        let owner = self.current_owner()?;
        let output = module.required()?;
        let code = self.compile_image(image, options)?;
        let id = self.lock().instantiate(code, owner, None)?;
        output.write(id.as_raw())
    }
}

impl Locked<'_> {
    /// Unloads a module and frees its variables.
    pub(crate) fn unload(&mut self, id: Id<Module>) {
        let driver = self.driver();
        let Some(module) = self.modules.remove(id) else {
            return;
        };
        for function in module.functions {
            self.functions.remove(function);
        }
        module
            .globals
            .iter()
            .for_each(|address| driver.memory().free(*address));
    }
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
