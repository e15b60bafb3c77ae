//! The driver's part in kernels of libraries.

use std::sync::Arc;

use curium_sys::{CUkern_st, CUresult};

use crate::argument::Pointer;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::function::ResolvedKernel;
use crate::object::kernel::Kernel;
use crate::result::Result;

impl State {
    pub(crate) fn kernel(&self, raw: Pointer<CUkern_st>) -> Result<(Id<Kernel>, &Kernel)> {
        let id = Id::from(raw);
        let kernel = self
            .kernels
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        Ok((id, kernel))
    }

    pub(crate) fn resolve_library_kernel(
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
