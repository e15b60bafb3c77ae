//! Settings of a context that are stored and have no other effect.

use curium_sys::{
    CUexecAffinityParam, CUexecAffinityType, CUflushGPUDirectRDMAWritesScope,
    CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUresult, CUsharedconfig,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuCtxGetCacheConfig(&self, config: Pointer<CUfunc_cache>) -> Result {
        let (state, current) = self.enter_current()?;
        config.write(
            state
                .contexts
                .valid_context(state.contexts.owning_context(current))?
                .cache_config(),
        )
    }

    pub(crate) fn cuCtxSetCacheConfig(&self, config: CUfunc_cache) -> Result {
        let (mut state, current) = self.enter_current()?;
        if config.0 > CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let owning_context = state.contexts.owning_context(current);
        state
            .contexts
            .valid_context_mut(owning_context)?
            .set_cache_config(config);
        Ok(())
    }

    /// Returns four bytes, the fixed bank width of this hardware.
    pub(crate) fn cuCtxGetSharedMemConfig(&self, config: Pointer<CUsharedconfig>) -> Result {
        self.require_current()?;
        config.write(CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE)
    }

    pub(crate) fn cuCtxSetSharedMemConfig(&self, config: CUsharedconfig) -> Result {
        drop(self.enter_current()?);
        if config.0 > CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    }

    /// Does nothing, because the simulator has no such cache.
    pub(crate) fn cuCtxResetPersistingL2Cache(&self) -> Result {
        self.enter_current().map(|_| ())
    }

    /// Does nothing: no other device writes to the memory.
    pub(crate) fn cuFlushGPUDirectRDMAWrites(
        &self,
        target: CUflushGPUDirectRDMAWritesTarget,
        scope: CUflushGPUDirectRDMAWritesScope,
    ) -> Result {
        use CUflushGPUDirectRDMAWritesScope as Scope;
        drop(self.enter_current()?);
        let is_known = matches!(
            scope,
            Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
                | Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
        );
        if is_known && target.0 == 0 {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(crate) fn cuCtxGetExecAffinity(
        &self,
        affinity: Pointer<CUexecAffinityParam>,
        kind: CUexecAffinityType,
    ) -> Result {
        self.require_current()?;
        let output = affinity.required()?;
        if kind != CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT {
            return Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
        }
        let mut answer = CUexecAffinityParam {
            type_: kind,
            ..Default::default()
        };
        answer.param.smCount.val = self.devices().multiprocessors();
        output.write(answer)
    }
}
