//! The C functions for libraries.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use curium_sys::{
    CUdeviceptr, CUjit_option, CUkernel, CUlib_st, CUlibrary, CUlibraryOption, CUmodule, CUresult,
    CudaVersion,
};

use crate::argument::{Argument as _, ConstPointer, Pointer};
use crate::call::Call;
use crate::call::module::read_image;
use crate::context::Context;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::image::jit::JitOptions;
use crate::object::library::{Library, Source};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
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
        let options = JitOptions::new(options, values, count)?;
        let source = Source {
            text: self.read_text(image, &options)?.into_owned(),
            max_registers: options.max_registers(),
        };
        let compiled = if !self.loads_lazily() {
            Some(self.compile_text(&source.text, &options)?)
        } else if options.has_log() {
            // The compiler writes to the log now. Its error is returned on the first use.
            self.compile_text(&source.text, &options).ok()
        } else {
            None
        };
        let mut state = self.lock();
        let id = state.libraries.insert(Library {
            source: Arc::new(source),
            compiled: None,
            modules: HashMap::new(),
        });
        if let Some(code) = compiled {
            state.set_library_code(id, code)?;
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
        library.required()?;
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
            if let Ok(device) = state.contexts.live_context(context).map(Context::device) {
                state.contexts.check_device(device)?;
                state = state.wait_for_device(device)?;
                state.contexts.check_device(device)?;
            }
        }
        let library = state
            .libraries
            .remove(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        for kernel in library.kernels() {
            state.kernels.remove(*kernel);
        }
        library
            .modules
            .into_values()
            .for_each(|module| state.unload(module));
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
        let (state, id) = self.enter_library(self.lock(), library)?;
        let library = state
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?
            .compiled()?;
        // As on hardware, no kernel has an empty name.
        let index = if name.is_empty() {
            Err(CUresult::CUDA_ERROR_NOT_FOUND)
        } else {
            library.code.find(name)
        };
        output.write(library.kernels[index?].as_raw())
    }

    pub(crate) fn cuLibraryGetModule(
        &self,
        module: Pointer<CUmodule>,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let output = module.required()?;
        self.lock().library(library)?;
        let (state, context) = self.enter_current()?;
        let (mut state, id) = self.enter_library(state, library)?;
        output.write(state.library_module(id, context)?.as_raw())
    }

    pub(crate) fn cuLibraryGetGlobal(
        &self,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let name = name.text()?;
        let (state, context) = self.enter_current()?;
        let (mut state, id) = self.enter_library(state, library)?;
        let module = state.library_module(id, context)?;
        state.write_global(module, name, address, size)
    }

    /// Returns a managed variable, which all contexts share. Here each module has its own
    /// variables, so a library that is loaded into several contexts has none to return.
    pub(crate) fn cuLibraryGetManaged(
        &self,
        address: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        library: Pointer<CUlib_st>,
        name: ConstPointer<c_char>,
    ) -> Result {
        let name = name.text()?;
        let (mut state, id) = self.enter_library(self.lock(), library)?;
        if name.is_empty() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let library = state
            .libraries
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let index = library.code()?.find_global(name)?;
        if !library.code()?.program.globals()[index].managed {
            return Err(CUresult::CUDA_ERROR_NOT_FOUND);
        }
        let context = match library
            .modules
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => self.thread().top().or(state.contexts.primary_handle(0)),
            [context] => Some(*context),
            _ => return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        };
        let module =
            state.library_module(id, context.ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?)?;
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
        // No image has a unified function. The code is that of hardware for a library without the
        // function.
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    pub(crate) fn cuLibraryGetKernelCount(
        &self,
        count: Pointer<u32>,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let output = count.required()?;
        let (state, id) = self.enter_library(self.lock(), library)?;
        output.write(
            state
                .libraries
                .get(id)
                .map_or(0, |library| library.kernels().len()) as u32,
        )
    }

    pub(crate) fn cuLibraryEnumerateKernels(
        &self,
        kernels: Pointer<CUkernel>,
        count: u32,
        library: Pointer<CUlib_st>,
    ) -> Result {
        let (state, id) = self.enter_library(self.lock(), library)?;
        let handles = state
            .libraries
            .get(id)
            .map(|library| library.kernels().iter().map(|kernel| kernel.as_raw()));
        // SAFETY: by the contract of the C function, there is room for `count` handles.
        unsafe { kernels.write_all(handles.into_iter().flatten().take(count as usize)) }
    }
}

impl Call<'_> {
    /// Returns `true` if libraries are compiled on first use, as drivers do since CUDA 12.2.
    pub(crate) fn loads_lazily(&self) -> bool {
        const SINCE: CudaVersion = CudaVersion::new(12, 2);
        self.config().driver_version >= SINCE
    }

    /// Returns a live library, compiling it on first use: without the lock, which every call needs.
    fn enter_library<'a>(
        &'a self,
        state: Locked<'a>,
        raw: Pointer<CUlib_st>,
    ) -> Result<(Locked<'a>, Id<Library>)> {
        let id = state.library(raw)?;
        let source = state
            .libraries
            .get(id)
            .filter(|library| library.compiled.is_none())
            .map(|library| Arc::clone(&library.source));
        let Some(source) = source else {
            return Ok((state, id));
        };
        drop(state);
        // The caller's buffers for logs may be gone by now.
        let logs = JitOptions::none();
        let code = self
            .compile(&source.text, source.max_registers)
            .map_err(|refusal| self.report_refusal(&refusal, &logs))?;
        let mut state = self.lock();
        state.set_library_code(id, code)?;
        Ok((state, id))
    }
}
