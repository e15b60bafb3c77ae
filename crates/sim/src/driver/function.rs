//! The driver's part in functions.

use std::sync::Arc;

use curium_ptx::exec;
use curium_sys::{CUdevice_attribute, CUfunc_st, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::device::Devices;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::function::ResolvedKernel;
use crate::object::kernel::Kernel;
use crate::result::Result;

/// The maximum reported number of registers per thread. PTX declares far more registers than
/// hardware allocates. With this maximum, the registers allow every block size of the device.
const MAX_REGISTERS: u32 = 64;

const MIN_REGISTERS: u32 = 16;

impl Devices<'_> {
    /// Returns the threads of the largest block that a kernel can be launched with.
    pub(crate) fn max_threads(&self, kernel: &exec::Kernel) -> u32 {
        let device =
            self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        kernel
            .max_threads_per_block
            .map_or(device, |threads| threads.min(device))
    }

    /// Returns the maximum dynamic shared memory of a launch of the kernel.
    pub(crate) fn max_dynamic_shared(&self, resolved: &ResolvedKernel) -> Result<u32> {
        let limit = self
            .attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
        let remaining = limit.saturating_sub(resolved.kernel()?.static_shared);
        Ok(resolved.settings.max_dynamic_shared.unwrap_or(remaining))
    }
}

impl State {
    /// Returns the kernel of a handle, with the settings for the first device if it is a library's
    /// kernel. For queries of the code.
    pub(crate) fn resolve_kernel(&self, raw: Pointer<CUfunc_st>) -> Result<ResolvedKernel> {
        self.resolve_kernel_on(raw, 0)
    }

    /// Returns the kernel of a handle of a function or of a library's kernel, whose settings are
    /// those for the device of a context.
    pub(crate) fn resolve_kernel_in(
        &self,
        raw: Pointer<CUfunc_st>,
        context: Id<Context>,
    ) -> Result<ResolvedKernel> {
        self.resolve_kernel_on(raw, self.contexts.valid_context(context)?.device())
    }

    fn resolve_kernel_on(&self, raw: Pointer<CUfunc_st>, device: usize) -> Result<ResolvedKernel> {
        let invalid = CUresult::CUDA_ERROR_INVALID_HANDLE;
        if let Some(kernel) = self.kernels.get(Id::from_number(raw.address())) {
            let code = self
                .libraries
                .get(kernel.library)
                .ok_or(invalid)?
                .code()?
                .clone();
            let settings = kernel.settings.get(&device).copied().unwrap_or_default();
            return Ok(ResolvedKernel {
                code,
                index: kernel.index,
                settings,
            });
        }
        let function = self.functions.get(Id::from(raw)).ok_or(invalid)?;
        let module = self.modules.get(function.module).ok_or(invalid)?;
        let device = self.contexts.valid_context(module.context)?.device();
        let of_library = module
            .library
            .and_then(|library| self.libraries.get(library));
        let kernel =
            of_library.and_then(|library| self.kernels.get(library.kernels()[function.index]));
        let inherited = kernel
            .and_then(|kernel: &Kernel| kernel.settings.get(&device))
            .copied();
        let settings = function.settings.or(inherited.unwrap_or_default());
        Ok(ResolvedKernel {
            code: Arc::clone(&module.code),
            index: function.index,
            settings,
        })
    }
}

/// Returns the reported number of registers per thread.
pub(crate) fn registers(kernel: &exec::Kernel) -> u32 {
    kernel.registers.clamp(MIN_REGISTERS, MAX_REGISTERS)
}
