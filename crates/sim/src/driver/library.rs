//! Libraries: code that is loaded into contexts on demand.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use curium_sys::{
    CUdeviceptr, CUjit_option, CUkernel, CUlib_st, CUlibrary, CUlibraryOption, CUmodule, CUresult,
};

use crate::argument::{Argument, ConstPointer, Pointer};
use crate::driver::image::{Code, JitOptions};
use crate::driver::module::read_image;
use crate::driver::{Context, Driver, Kernel, Module, Result, State};
use crate::handle::{Id, Kind, Object};
use crate::memory::Owner;

/// Code that is independent of contexts.
pub(crate) struct Library {
    pub(crate) code: Arc<Code>,
    /// The handles of the kernels, in the order of the program.
    pub(crate) kernels: Vec<Id<Kernel>>,
    /// The module in each context that has used the library.
    modules: HashMap<Id<Context>, Id<Module>>,
}

impl Object for Library {
    type Raw = CUlib_st;
    const KIND: Kind = Kind::Library;
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLibraryLoadData(
        &self,
        library: Pointer<CUlibrary>,
        image: ConstPointer<c_void>,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        count: u32,
        _library_options: Pointer<CUlibraryOption>,
        _library_values: Pointer<*mut c_void>,
        _library_count: u32,
    ) -> Result {
        let output = library.required()?;
        let code = self.compile_image(image, &JitOptions::new(options, values, count)?)?;
        let mut state = self.lock();
        let kernels = code.program.kernels().len();
        let id = state.libraries.insert(Library {
            code,
            kernels: Vec::new(),
            modules: HashMap::new(),
        });
        let kernels = (0..kernels)
            .map(|index| state.kernels.insert(Kernel::new(id, index)))
            .collect();
        if let Some(library) = state.libraries.get_mut(id) {
            library.kernels = kernels;
        }
        output.write(id.as_raw())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLibraryLoadFromFile(
        &self,
        library: Pointer<CUlibrary>,
        path: ConstPointer<c_char>,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        count: u32,
        library_options: Pointer<CUlibraryOption>,
        library_values: Pointer<*mut c_void>,
        library_count: u32,
    ) -> Result {
        JitOptions::new(options, values, count)?;
        let image = read_image(path)?;
        // SAFETY: the image is NUL-terminated and lives until the end of the call.
        let image = unsafe { image.as_ptr().cast::<c_void>().receive() };
        self.cuLibraryLoadData(
            library,
            image,
            options,
            values,
            count,
            library_options,
            library_values,
            library_count,
        )
    }

    /// Waits for the devices that the library is loaded on.
    pub(crate) fn cuLibraryUnload(&self, library: Pointer<CUlib_st>) -> Result {
        let mut state = self.lock();
        let id = state.library(library)?;
        for context in state.libraries.get(id).map_or(Vec::new(), |library| {
            library.modules.keys().copied().collect()
        }) {
            if let Ok(device) = state.context(context).map(|context| context.device) {
                state.check_device(device)?;
                state = self.wait_for_device(state, device)?;
                state.check_device(device)?;
            }
        }
        let library = state
            .libraries
            .remove(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        for kernel in library.kernels {
            state.kernels.remove(kernel);
        }
        library
            .modules
            .into_values()
            .for_each(|module| self.unload(&mut state, module));
        Ok(())
    }

    pub(crate) fn cuLibraryGetKernel(
        &self,
        kernel: Pointer<CUkernel>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let output = kernel.required()?;
        let name = name.text()?;
        let state = self.lock();
        let id = state.library(library)?;
        let library = state
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        output.write(library.kernels[library.code.find(name)?].as_raw())
    }

    pub(crate) fn cuLibraryGetModule(
        &self,
        module: Pointer<CUmodule>,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let output = module.required()?;
        let (mut state, context) = self.enter_current()?;
        let id = state.library(library)?;
        output.write(self.library_module(&mut state, id, context)?.as_raw())
    }

    pub(crate) fn cuLibraryGetGlobal(
        &self,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let name = name.text()?;
        let (mut state, context) = self.enter_current()?;
        let id = state.library(library)?;
        let module = self.library_module(&mut state, id, context)?;
        state.write_global(module, name, address, size)
    }

    /// Returns a managed variable, which all contexts share. Here each module has its own variables, so a library that is loaded into
    /// several contexts has none to return.
    pub(crate) fn cuLibraryGetManaged(
        &self,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let name = name.text()?;
        let mut state = self.lock();
        let id = state.library(library)?;
        if name.is_empty() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let library = state
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let index = library.code.find_global(name)?;
        if !library.code.program.globals()[index].managed {
            return Err(CUresult::CUDA_ERROR_NOT_FOUND);
        }
        let context = match library
            .modules
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => self
                .top()
                .or(state.devices.first().and_then(|device| device.primary)),
            [context] => Some(*context),
            _ => return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        };
        let module = self.library_module(
            &mut state,
            id,
            context.ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?,
        )?;
        state.write_global(module, name, address, size)
    }

    /// Fails, because PTX here declares no functions that the host can call.
    pub(crate) fn cuLibraryGetUnifiedFunction(
        &self,
        function: Pointer<*mut c_void>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        function.required()?;
        name.text()?;
        self.lock().library(library)?;
        // No image has a unified function. The code is that of hardware for a library without the function.
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    pub(crate) fn cuLibraryGetKernelCount(
        &self,
        count: Pointer<u32>,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let output = count.required()?;
        let state = self.lock();
        let id = state.library(library)?;
        output.write(
            state
                .libraries
                .get(id)
                .map_or(0, |library| library.kernels.len()) as u32,
        )
    }

    pub(crate) fn cuLibraryEnumerateKernels(
        &self,
        kernels: Pointer<CUkernel>,
        count: u32,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let state = self.lock();
        let id = state.library(library)?;
        let handles = state
            .libraries
            .get(id)
            .map(|library| library.kernels.iter().map(|kernel| kernel.as_raw()));
        // SAFETY: by the contract of the C function, there is room for `count` handles.
        unsafe { kernels.write_all(handles.into_iter().flatten().take(count as usize)) }
    }
}

impl Driver {
    /// Returns the module of a library in a context, loading it on first use.
    pub(crate) fn library_module(
        &self,
        state: &mut State,
        id: Id<Library>,
        context: Id<Context>,
    ) -> Result<Id<Module>> {
        let context = state.owning_context(context);
        let library = state
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        // A primary context that was reset has lost its modules, and may be active again.
        if let Some(module) = library
            .modules
            .get(&context)
            .filter(|module| state.modules.contains(**module))
        {
            return Ok(*module);
        }
        let code = Arc::clone(&library.code);
        let owner = Owner {
            context,
            device: state.valid_context(context)?.device,
        };
        let module = self.instantiate(state, code, owner, Some(id))?;
        if let Some(library) = state.libraries.get_mut(id) {
            library.modules.insert(context, module);
        }
        Ok(module)
    }
}

impl State {
    fn library(&self, raw: Pointer<CUlib_st>) -> Result<Id<Library>> {
        let id = Id::from(raw);
        if self.libraries.contains(id) {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
        }
    }
}
