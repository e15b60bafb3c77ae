//! The limits of a context.

use curium_sys::{CUlimit, CUresult};

use super::Context;
use crate::call;
use crate::{Error, Result};

/// A limit of a context. Each limit has its own unit and rules.
///
/// Most drivers round a value, or raise it to a minimum. [`Context::limit`] returns the value in
/// effect.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Limit {
    /// The stack size of each thread, in bytes; rounded up to a multiple of 16. The driver raises
    /// it for a kernel that is known to need more. Setting it waits for all work submitted to the
    /// device.
    StackSize,
    /// The size of the device-side `printf` FIFO, in bytes. It is fixed by the first launch of a
    /// kernel that calls `printf`: setting it later returns `CUDA_ERROR_INVALID_VALUE`, even for
    /// the same value.
    PrintfBuffer,
    /// The size of the device-side `malloc` heap, in bytes. It is fixed by the first launch of a
    /// kernel that calls `malloc` or `free`: setting it later returns `CUDA_ERROR_INVALID_VALUE`,
    /// even for the same value.
    MallocHeap,
    /// The maximum nesting depth at which kernels can synchronize with the kernels that they
    /// launched, up to 24. Exists below compute capability 9.0.
    SyncDepth,
    /// The maximum number of outstanding launches from the device. A higher limit reserves more
    /// device memory.
    PendingLaunches,
    /// The maximum L2 fetch granularity, from 0 to 128 bytes. Only a hint.
    L2FetchGranularity,
    /// The size of the L2 cache set aside for persisting accesses, in bytes, up to
    /// [`MAX_PERSISTING_L2_CACHE_SIZE`](crate::DeviceAttribute::MAX_PERSISTING_L2_CACHE_SIZE). With
    /// the driver of CUDA 13.0, setting it waits for submitted work, which CUDA does not document.
    PersistingL2,
    /// The maximum shared memory per block, in bytes. Read-only.
    SharedMemory,
    /// 1 if the context runs in graphics (CIG) mode, 0 otherwise. Read-only.
    CigEnabled,
    /// 1 if a kernel that needs more shared memory than is available in graphics (CIG) mode runs
    /// anyway, 0 if it fails.
    CigSharedMemoryFallback,
    /// The memory per block, in bytes. Requires CUDA 13.4.
    BlockMemory,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 11] = [
        Self::StackSize,
        Self::PrintfBuffer,
        Self::MallocHeap,
        Self::SyncDepth,
        Self::PendingLaunches,
        Self::L2FetchGranularity,
        Self::PersistingL2,
        Self::SharedMemory,
        Self::CigEnabled,
        Self::CigSharedMemoryFallback,
        Self::BlockMemory,
    ];

    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn as_raw(self) -> CUlimit {
        match self {
            Self::StackSize => CUlimit::CU_LIMIT_STACK_SIZE,
            Self::PrintfBuffer => CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE,
            Self::MallocHeap => CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE,
            Self::SyncDepth => CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
            Self::PendingLaunches => CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
            Self::L2FetchGranularity => CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
            Self::PersistingL2 => CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
            Self::SharedMemory => CUlimit::CU_LIMIT_SHMEM_SIZE,
            Self::CigEnabled => CUlimit::CU_LIMIT_CIG_ENABLED,
            Self::CigSharedMemoryFallback => CUlimit::CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED,
            Self::BlockMemory => CUlimit::CU_LIMIT_PER_BLOCK_MEMORY_SIZE,
        }
    }

    /// Returns a hint for a value that the driver rejected in `context`.
    #[cold]
    fn advice(self, code: CUresult, context: &Context) -> Option<&'static str> {
        match (self, code) {
            (Self::PrintfBuffer | Self::MallocHeap, CUresult::CUDA_ERROR_INVALID_VALUE) => {
                Some("set it before the first launch of a kernel that uses it")
            }
            (Self::L2FetchGranularity, CUresult::CUDA_ERROR_INVALID_VALUE) => {
                Some("the maximum is 128 bytes")
            }
            (Self::PersistingL2, CUresult::CUDA_ERROR_INVALID_VALUE) => {
                Some("the maximum is the device attribute MAX_PERSISTING_L2_CACHE_SIZE")
            }
            (Self::SyncDepth, CUresult::CUDA_ERROR_INVALID_VALUE) => Some("the maximum is 24"),
            (Self::SyncDepth, CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT)
                if context.lacks_sync_depth() =>
            {
                Some("devices of compute capability 9.0 and later have no such limit")
            }
            (Self::SharedMemory | Self::CigEnabled, CUresult::CUDA_ERROR_NOT_PERMITTED) => {
                Some("the limit is read-only")
            }
            _ => None,
        }
    }
}

impl Context {
    /// Returns the value of a limit, in the unit of that limit.
    ///
    /// CUDA: `cuCtxGetLimit`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_UNSUPPORTED_LIMIT` if the device does not support the limit,
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not.
    #[doc(alias = "cuCtxGetLimit")]
    #[doc(alias = "cudaDeviceGetLimit")]
    pub fn limit(&self, limit: Limit) -> Result<usize> {
        self.entered(|driver| {
            let mut value = 0;
            // SAFETY: `value` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetLimit(&raw mut value, limit.as_raw())) }
                .map_err(|error| self.refused(error.about(format!("{limit:?}")), limit))?;
            Ok(value)
        })
    }

    /// Sets a limit, in the unit of that limit, for subsequent work.
    ///
    /// CUDA documents a wait for submitted work for [`Limit::StackSize`] only.
    ///
    /// CUDA: `cuCtxSetLimit`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_UNSUPPORTED_LIMIT` if the device does not support the limit,
    /// `CUDA_ERROR_INVALID_VALUE` if the value is out of range or set too late,
    /// `CUDA_ERROR_NOT_PERMITTED` if the limit is read-only, `CUDA_ERROR_OUT_OF_MEMORY` if there is
    /// not enough memory.
    #[doc(alias = "cuCtxSetLimit")]
    #[doc(alias = "cudaDeviceSetLimit")]
    pub fn set_limit(&self, limit: Limit, value: usize) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetLimit(limit.as_raw(), value)) }
                .map_err(|error| self.refused(error.about(format!("{limit:?} of {value}")), limit))
        })
    }

    /// Returns `true` if the device lacks [`Limit::SyncDepth`].
    fn lacks_sync_depth(&self) -> bool {
        self.device()
            .compute_capability()
            .is_ok_and(|capability| capability.major >= 9)
    }

    #[cold]
    fn refused(&self, error: Error, limit: Limit) -> Error {
        error.advised(|call| limit.advice(call.code, self).map(Into::into))
    }
}
