//! Kernels of libraries.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::Arc;

use curium_sys::{
    CUdevice, CUfunc_cache, CUfunction, CUfunction_attribute, CUkern_st, CUlibrary, CUresult,
};

use crate::argument::Pointer;
use crate::driver::function::{ResolvedKernel, Settings, known_cache};
use crate::driver::{Driver, Library, Result, State};
use crate::handle::{Id, Kind, Object};

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

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuKernelGetFunction(
        &self,
        function: Pointer<CUfunction>,
        kernel: Pointer<CUkern_st>,
    ) -> Result {
        let output = function.required()?;
        let (mut state, context) = self.enter_current()?;
        let (library, index) = state
            .kernel(kernel)
            .map(|(_, kernel)| (kernel.library, kernel.index))?;
        let module = self.library_module(&mut state, library, context)?;
        let module = state
            .modules
            .get(module)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        output.write(module.functions[index].as_raw())
    }

    pub(crate) fn cuKernelGetAttribute(
        &self,
        value: Pointer<i32>,
        attribute: CUfunction_attribute,
        kernel: Pointer<CUkern_st>,
        device: CUdevice,
    ) -> Result {
        let state = self.lock();
        state.kernel(kernel)?;
        let output = value.required()?;
        let device = self.device(device)?;
        let resolved = state.resolve_library_kernel(kernel, device)?;
        output.write(self.function_attribute(&resolved, attribute)?)
    }

    pub(crate) fn cuKernelSetAttribute(
        &self,
        attribute: CUfunction_attribute,
        value: i32,
        kernel: Pointer<CUkern_st>,
        device: CUdevice,
    ) -> Result {
        let mut state = self.lock();
        state.kernel(kernel)?;
        let device = self.device(device)?;
        let mut resolved = state.resolve_library_kernel(kernel, device)?;
        self.set_function_attribute(&mut resolved, attribute, value)?;
        let id = state.kernel(kernel)?.0;
        if let Some(kernel) = state.kernels.get_mut(id) {
            kernel.settings.insert(device, resolved.settings);
        }
        Ok(())
    }

    pub(crate) fn cuKernelGetName(
        &self,
        name: Pointer<*const c_char>,
        kernel: Pointer<CUkern_st>,
    ) -> Result {
        let output = name.required()?;
        let state = self.lock();
        let resolved = state.resolve_library_kernel(kernel.required()?, 0)?;
        output.write(resolved.code.names[resolved.index].as_ptr())
    }

    pub(crate) fn cuKernelGetLibrary(
        &self,
        library: Pointer<CUlibrary>,
        kernel: Pointer<CUkern_st>,
    ) -> Result {
        let output = library.required()?;
        output.write(self.lock().kernel(kernel)?.1.library.as_raw())
    }

    pub(crate) fn cuKernelGetParamInfo(
        &self,
        kernel: Pointer<CUkern_st>,
        parameter: usize,
        offset: Pointer<usize>,
        size: Pointer<usize>,
    ) -> Result {
        let kernel = kernel.required()?;
        self.require_current()?;
        self.lock()
            .resolve_library_kernel(kernel, 0)?
            .write_parameter(parameter, offset, size)
    }

    pub(crate) fn cuKernelGetParamCount(
        &self,
        kernel: Pointer<CUkern_st>,
        count: Pointer<usize>,
    ) -> Result {
        let resolved = self.lock().resolve_library_kernel(kernel, 0)?;
        count.write(resolved.kernel()?.params.len())
    }

    /// Does nothing: kernels do not configure the caches of the host.
    pub(crate) fn cuKernelSetCacheConfig(
        &self,
        kernel: Pointer<CUkern_st>,
        config: CUfunc_cache,
        device: CUdevice,
    ) -> Result {
        self.lock().kernel(kernel)?;
        self.device(device)?;
        known_cache(config)
    }
}

impl State {
    pub(crate) fn kernel(&self, raw: Pointer<CUkern_st>) -> Result<(Id<Kernel>, &Kernel)> {
        let id = Id::from(raw);
        let kernel = self
            .kernels
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        Ok((id, kernel))
    }

    fn resolve_library_kernel(
        &self,
        raw: Pointer<CUkern_st>,
        device: usize,
    ) -> Result<ResolvedKernel> {
        let kernel = self.kernel(raw)?.1;
        let library = self
            .libraries
            .get(kernel.library)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let settings = kernel.settings.get(&device).copied().unwrap_or_default();
        Ok(ResolvedKernel {
            code: Arc::clone(library.code()?),
            index: kernel.index,
            settings,
        })
    }
}
