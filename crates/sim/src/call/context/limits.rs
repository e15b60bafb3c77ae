//! Limits of a context.

use curium_sys::{CUdevice_attribute, CUlimit, CUresult, CudaVersion};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::context::MAX_STACK;
use crate::result::Result;

/// The minimum to which smaller values are raised.
const LEAST_PRINTF_BUFFER: usize = 512 << 10;

const LEAST_MALLOC_HEAP: usize = 4 << 20;

const LEAST_PENDING_LAUNCHES: usize = 32;

/// The maximum to which larger values are lowered.
const MAX_PRINTF_BUFFER: usize = 2 << 30;

const MAX_FETCH_GRANULARITY: usize = 128;

const MAX_SYNC_DEPTH: usize = 24;

/// The first compute capability, times ten, whose kernels cannot wait for the kernels that they
/// launch.
const NO_SYNC_DEPTH_SINCE: u32 = 90;

/// The number of units of the persisting cache.
const L2_PARTS: usize = 10;

/// The first driver with shared memory reserved per block.
const BLOCK_MEMORY_SINCE: CudaVersion = CudaVersion::new(13, 4);

impl Call<'_> {
    fn has_sync_depth(&self) -> bool {
        self.devices().compute_capability() < NO_SYNC_DEPTH_SINCE
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuCtxGetLimit(&self, value: Pointer<usize>, limit: CUlimit) -> Result {
        let (state, current) = self.enter_current()?;
        let output = value.required()?;
        let limits = state
            .contexts
            .valid_context(state.contexts.owning_context(current))?
            .limits();
        output.write(match limit {
            CUlimit::CU_LIMIT_STACK_SIZE => limits.stack,
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => limits.printf_buffer,
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => limits.malloc_heap,
            CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH if self.has_sync_depth() => limits.sync_depth,
            CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => limits.pending_launches,
            CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => limits.fetch_granularity,
            CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => limits.persisting_l2,
            CUlimit::CU_LIMIT_SHMEM_SIZE => self.devices().attribute_value(
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            ) as usize,
            CUlimit::CU_LIMIT_CIG_ENABLED => 0,
            other => return Err(self.unknown(other)),
        })
    }

    pub(crate) fn cuCtxSetLimit(&self, limit: CUlimit, value: usize) -> Result {
        let most_l2 = self
            .devices()
            .attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)
            as usize;
        let memory = self.config().memory_budget as usize;
        let (mut state, current) = self.enter_current()?;
        let owning_context = state.contexts.owning_context(current);
        let limits = state
            .contexts
            .valid_context_mut(owning_context)?
            .limits_mut();
        match limit {
            CUlimit::CU_LIMIT_STACK_SIZE => {
                limits.stack = at_most(value, MAX_STACK)?.next_multiple_of(16);
            }
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE if limits.launched.prints => {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE if limits.launched.allocates => {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => {
                limits.printf_buffer = value.clamp(LEAST_PRINTF_BUFFER, MAX_PRINTF_BUFFER);
            }
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => {
                limits.malloc_heap = value
                    .max(LEAST_MALLOC_HEAP)
                    .min(memory.max(LEAST_MALLOC_HEAP));
            }
            CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH if self.has_sync_depth() => {
                limits.sync_depth = at_most(value, MAX_SYNC_DEPTH)?;
            }
            CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => {
                limits.pending_launches = value.max(LEAST_PENDING_LAUNCHES);
            }
            CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => {
                limits.fetch_granularity = at_most(value, MAX_FETCH_GRANULARITY)?;
            }
            CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => {
                limits.persisting_l2 =
                    at_most(value, most_l2)?.next_multiple_of(most_l2 / L2_PARTS);
            }
            CUlimit::CU_LIMIT_SHMEM_SIZE | CUlimit::CU_LIMIT_CIG_ENABLED => {
                return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
            }
            other => return Err(self.unknown(other)),
        }
        Ok(())
    }
}

impl Call<'_> {
    /// Returns the code for a limit that this hardware or driver lacks.
    fn unknown(&self, limit: CUlimit) -> CUresult {
        match limit {
            CUlimit::CU_LIMIT_PER_BLOCK_MEMORY_SIZE
                if self.config().driver_version < BLOCK_MEMORY_SINCE =>
            {
                CUresult::CUDA_ERROR_INVALID_VALUE
            }
            CUlimit(number) if number < CUlimit::CU_LIMIT_MAX.0 => {
                CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT
            }
            _ => CUresult::CUDA_ERROR_INVALID_VALUE,
        }
    }
}

fn at_most(value: usize, most: usize) -> Result<usize> {
    if value <= most {
        Ok(value)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
