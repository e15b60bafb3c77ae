//! The C functions for kernels of libraries.

use std::ffi::c_char;

use curium_sys::{
    CUdevice, CUfunc_cache, CUfunction, CUfunction_attribute, CUkern_st, CUlibrary, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::function::known_cache;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
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
        let module = state.library_module(library, context)?;
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
        let device = self.devices().device(device)?;
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
        let device = self.devices().device(device)?;
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
        self.devices().device(device)?;
        known_cache(config)
    }
}
