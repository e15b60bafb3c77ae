//! The C functions for functions.

use std::ffi::c_char;

use curium_sys::{
    CUdevice_attribute, CUfunc_cache, CUfunc_st, CUfunction_attribute, CUfunctionLoadingState,
    CUmodule, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::function::registers;
use crate::handle::Id;
use crate::image::Code;
use crate::object::function::ResolvedKernel;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuFuncGetAttribute(
        &self,
        value: Pointer<i32>,
        attribute: CUfunction_attribute,
        function: Pointer<CUfunc_st>,
    ) -> Result {
        let output = value.required()?;
        let resolved = self.lock().resolve_kernel(function)?;
        output.write(self.function_attribute(&resolved, attribute)?)
    }

    pub(crate) fn cuFuncSetAttribute(
        &self,
        function: Pointer<CUfunc_st>,
        attribute: CUfunction_attribute,
        value: i32,
    ) -> Result {
        let mut state = self.lock();
        let mut resolved = state.resolve_kernel(function)?;
        self.set_function_attribute(&mut resolved, attribute, value)?;
        if let Some(function) = state.functions.get_mut(Id::from(function)) {
            function.settings = resolved.settings;
        }
        Ok(())
    }

    pub(crate) fn cuFuncGetParamInfo(
        &self,
        function: Pointer<CUfunc_st>,
        parameter: usize,
        offset: Pointer<usize>,
        size: Pointer<usize>,
    ) -> Result {
        self.lock()
            .resolve_kernel(function.required()?)?
            .write_parameter(parameter, offset, size)
    }

    pub(crate) fn cuFuncGetParamCount(
        &self,
        function: Pointer<CUfunc_st>,
        count: Pointer<usize>,
    ) -> Result {
        let resolved = self.lock().resolve_kernel(function)?;
        count.write(resolved.kernel()?.params.len())
    }

    pub(crate) fn cuFuncGetName(
        &self,
        name: Pointer<*const c_char>,
        function: Pointer<CUfunc_st>,
    ) -> Result {
        let output = name.required()?;
        let resolved = self.lock().resolve_kernel(function.required()?)?;
        // The module keeps the name for as long as the handle is valid.
        output.write(resolved.code.names[resolved.index].as_ptr())
    }

    pub(crate) fn cuFuncGetModule(
        &self,
        module: Pointer<CUmodule>,
        function: Pointer<CUfunc_st>,
    ) -> Result {
        let output = module.required()?;
        let state = self.lock();
        let function = state
            .functions
            .get(Id::from(function.required()?))
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        output.write(function.module.as_raw())
    }

    pub(crate) fn cuFuncLoad(&self, function: Pointer<CUfunc_st>) -> Result {
        self.lock().resolve_kernel(function).map(|_| ())
    }

    pub(crate) fn cuFuncIsLoaded(
        &self,
        loading: Pointer<CUfunctionLoadingState>,
        function: Pointer<CUfunc_st>,
    ) -> Result {
        let loading = loading.required()?;
        self.lock().resolve_kernel(function)?;
        loading.write(CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED)
    }

    /// Does nothing: kernels do not configure the caches of the host.
    pub(crate) fn cuFuncSetCacheConfig(
        &self,
        function: Pointer<CUfunc_st>,
        config: CUfunc_cache,
    ) -> Result {
        self.lock().resolve_kernel(function)?;
        known_cache(config)
    }
}

/// Checks that a preference for the cache is one, which has no effect.
pub(crate) fn known_cache(config: CUfunc_cache) -> Result {
    if config.0 > CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}

impl Call<'_> {
    pub(crate) fn function_attribute(
        &self,
        resolved: &ResolvedKernel,
        attribute: CUfunction_attribute,
    ) -> Result<i32> {
        use CUfunction_attribute as Attribute;

        let kernel = resolved.kernel()?;
        let settings = resolved.settings;
        let number = match attribute {
            Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => {
                self.devices().max_threads(kernel)
            }
            Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => kernel.static_shared,
            Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => constant_bytes(&resolved.code),
            Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.local_size,
            Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS => registers(kernel),
            Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION => resolved.code.target,
            Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION => self.devices().compute_capability(),
            Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                self.devices().max_dynamic_shared(resolved)?
            }
            Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
                return Ok(settings.carveout.unwrap_or(-1));
            }
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => {
                return Ok(settings.required_cluster[0]);
            }
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => {
                return Ok(settings.required_cluster[1]);
            }
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
                return Ok(settings.required_cluster[2]);
            }
            Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
                u32::from(settings.allows_large_clusters)
            }
            Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA
            | Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => 0,
            Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
                return Ok(settings.cluster_scheduling);
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        Ok(number.cast_signed())
    }

    pub(crate) fn set_function_attribute(
        &self,
        resolved: &mut ResolvedKernel,
        attribute: CUfunction_attribute,
        value: i32,
    ) -> Result {
        use CUfunction_attribute as Attribute;

        let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
        let static_shared = resolved.kernel()?.static_shared;
        let most = self.devices().attribute_value(
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        );
        match attribute {
            Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let bytes = u32::try_from(value)
                    .ok()
                    .filter(|bytes| *bytes <= most.saturating_sub(static_shared));
                resolved.settings.max_dynamic_shared = Some(bytes.ok_or(invalid)?);
            }
            Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
                if (-1..=100).contains(&value) =>
            {
                resolved.settings.carveout = Some(value);
            }
            Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
                resolved.settings.allows_large_clusters = value != 0;
            }
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
            | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
            | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH
                if value >= 0 =>
            {
                if resolved.kernel()?.required_cluster.is_some() {
                    return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
                }
                let first = Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
                resolved.settings.required_cluster[(attribute.0 - first) as usize] = value;
            }
            Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
                if (0..=2).contains(&value) =>
            {
                resolved.settings.cluster_scheduling = value;
            }
            _ => return Err(invalid),
        }
        Ok(())
    }
}

fn constant_bytes(code: &Code) -> u32 {
    let constants = code
        .program
        .globals()
        .iter()
        .filter(|global| global.constant);
    constants.map(|global| global.size as u32).sum()
}
