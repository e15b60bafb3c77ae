//! Limits of a context.

use curium_sys::{CUlimit, CUresult};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};

/// The limits that a context keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    stack: usize,
    printf_buffer: usize,
    malloc_heap: usize,
    pending_launches: usize,
    fetch_granularity: usize,
    persisting_l2: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stack: 1024,
            printf_buffer: 1 << 20,
            malloc_heap: 8 << 20,
            pending_launches: 2048,
            fetch_granularity: 64,
            persisting_l2: 0,
        }
    }
}

impl Limits {
    fn get(&mut self, limit: CUlimit) -> Result<&mut usize> {
        match limit {
            CUlimit::CU_LIMIT_STACK_SIZE => Ok(&mut self.stack),
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => Ok(&mut self.printf_buffer),
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => Ok(&mut self.malloc_heap),
            CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => Ok(&mut self.pending_launches),
            CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => Ok(&mut self.fetch_granularity),
            CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => Ok(&mut self.persisting_l2),
            CUlimit(number) if number < CUlimit::CU_LIMIT_MAX.0 => Err(CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuCtxGetLimit(&self, value: Pointer<usize>, limit: CUlimit) -> Result {
        let place = value.required()?;
        let (mut state, current) = self.enter_current()?;
        place.write(*state.usable_mut(current)?.limits.get(limit)?)
    }

    pub(crate) fn cuCtxSetLimit(&self, limit: CUlimit, value: usize) -> Result {
        let (mut state, current) = self.enter_current()?;
        let kept = state.usable_mut(current)?.limits.get(limit)?;
        // The stack is kept in steps of 16 bytes.
        *kept = if limit == CUlimit::CU_LIMIT_STACK_SIZE { value.next_multiple_of(16) } else { value };
        Ok(())
    }
}
