//! Context settings.

use std::ops::RangeInclusive;

use curium_sys::{
    CUexecAffinityParam, CUexecAffinityType, CUflushGPUDirectRDMAWritesScope,
    CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUsharedconfig,
};

use super::{Context, ContextFlags};
use crate::Result;
use crate::call;

/// The preferred split of on-chip memory between L1 cache and shared memory. Only a hint; it has no
/// effect on devices where the sizes are fixed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CacheConfig {
    /// No preference.
    NoPreference,
    /// Prefer a larger shared memory.
    PreferShared,
    /// Prefer a larger L1 cache.
    PreferL1,
    /// Prefer L1 cache and shared memory of equal size.
    PreferEqual,
    /// A preference defined by a newer driver.
    Unknown(u32),
}

/// The bank width of shared memory. Current devices have a fixed width, and the setting has no
/// effect.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SharedMemoryConfig {
    /// The device's default.
    Default,
    /// Banks of four bytes.
    FourByteBanks,
    /// Banks of eight bytes.
    EightByteBanks,
    /// A width defined by a newer driver.
    Unknown(u32),
}

/// The range of stream priorities. Lower numbers have greater priority; 0 is the default.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct PriorityRange {
    /// The least priority: the highest number.
    pub least: i32,
    /// The greatest priority: the lowest number.
    pub greatest: i32,
}

/// The scope in which GPUDirect RDMA writes become visible after a flush.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RdmaScope {
    /// The device that owns the memory.
    Owner,
    /// All devices.
    AllDevices,
}

impl Context {
    /// Returns the flags of this context.
    ///
    /// CUDA: `cuCtxGetFlags`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetFlags")]
    #[doc(alias = "cudaGetDeviceFlags")]
    pub fn flags(&self) -> Result<ContextFlags> {
        self.entered(|driver| {
            let mut flags = 0;
            // SAFETY: `flags` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetFlags(&raw mut flags)) }?;
            Ok(ContextFlags::from_bits_retain(flags))
        })
    }

    /// Sets the flags of this context, replacing the previous ones.
    ///
    /// Requires CUDA 12.1. CUDA: `cuCtxSetFlags`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for mutually exclusive flags.
    #[doc(alias = "cuCtxSetFlags")]
    #[doc(alias = "cudaSetDeviceFlags")]
    pub fn set_flags(&self, flags: ContextFlags) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetFlags(flags.bits())) }
                .map_err(|error| error.about(format!("{flags:?}")))
        })
    }

    /// Returns the preferred split between L1 cache and shared memory.
    ///
    /// CUDA: `cuCtxGetCacheConfig`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetCacheConfig")]
    #[doc(alias = "cudaDeviceGetCacheConfig")]
    pub fn cache_config(&self) -> Result<CacheConfig> {
        self.entered(|driver| {
            let mut config = CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE;
            // SAFETY: `config` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetCacheConfig(&raw mut config)) }?;
            Ok(CacheConfig::from_raw(config))
        })
    }

    /// Sets the preferred split between L1 cache and shared memory, for kernels without a
    /// preference of their own.
    ///
    /// CUDA: `cuCtxSetCacheConfig`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a preference that this driver does not support.
    #[doc(alias = "cuCtxSetCacheConfig")]
    #[doc(alias = "cudaDeviceSetCacheConfig")]
    pub fn set_cache_config(&self, config: CacheConfig) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetCacheConfig(config.as_raw())) }
                .map_err(|error| error.about(format!("{config:?}")))
        })
    }

    /// Returns the bank width of shared memory.
    ///
    /// Deprecated by CUDA. CUDA: `cuCtxGetSharedMemConfig`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetSharedMemConfig")]
    #[doc(alias = "cudaDeviceGetSharedMemConfig")]
    pub fn shared_memory_config(&self) -> Result<SharedMemoryConfig> {
        self.entered(|driver| {
            let mut config = CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
            // SAFETY: `config` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetSharedMemConfig(&raw mut config)) }?;
            Ok(SharedMemoryConfig::from_raw(config))
        })
    }

    /// Sets the bank width of shared memory, on devices where it is configurable.
    ///
    /// Deprecated by CUDA. CUDA: `cuCtxSetSharedMemConfig`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a width that this driver does not support.
    #[doc(alias = "cuCtxSetSharedMemConfig")]
    #[doc(alias = "cudaDeviceSetSharedMemConfig")]
    pub fn set_shared_memory_config(&self, config: SharedMemoryConfig) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetSharedMemConfig(config.as_raw())) }
                .map_err(|error| error.about(format!("{config:?}")))
        })
    }

    /// Returns the range of priorities that streams of this context can have.
    ///
    /// CUDA: `cuCtxGetStreamPriorityRange`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    #[doc(alias = "cudaDeviceGetStreamPriorityRange")]
    pub fn stream_priorities(&self) -> Result<PriorityRange> {
        self.entered(|driver| {
            let mut least = 0;
            let mut greatest = 0;
            // SAFETY: `least` and `greatest` are valid for writes, and the context is current.
            unsafe {
                call!(
                    driver,
                    cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)
                )
            }?;
            Ok(PriorityRange { least, greatest })
        })
    }

    /// Returns the number of multiprocessors that this context may use. It is less than the
    /// device's total only if the Multi-Process Service (MPS) limits it.
    ///
    /// CUDA: `cuCtxGetExecAffinity`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetExecAffinity")]
    pub fn affinity(&self) -> Result<u32> {
        self.entered(|driver| {
            let kind = CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT;
            let mut affinity = CUexecAffinityParam {
                type_: kind,
                ..Default::default()
            };
            // SAFETY: `affinity` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetExecAffinity(&raw mut affinity, kind)) }?;
            // SAFETY: the driver has initialized the only field of the union, a plain integer.
            Ok(unsafe { affinity.param.smCount.val })
        })
    }

    /// Resets all persisting lines in the L2 cache to normal.
    ///
    /// CUDA: `cuCtxResetPersistingL2Cache`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxResetPersistingL2Cache")]
    #[doc(alias = "cudaCtxResetPersistingL2Cache")]
    pub fn reset_persisting_l2(&self) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no argument, and the context is current.
            unsafe { call!(driver, cuCtxResetPersistingL2Cache()) }
        })
    }

    /// Waits until GPUDirect RDMA writes to this context's memory are visible in `scope`. The
    /// attribute
    /// [`GPU_DIRECT_RDMA_WRITES_ORDERING`](crate::DeviceAttribute::GPU_DIRECT_RDMA_WRITES_ORDERING)
    /// reports where no flush is needed.
    ///
    /// CUDA: `cuFlushGPUDirectRDMAWrites`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the host does not support it.
    #[doc(alias = "cuFlushGPUDirectRDMAWrites")]
    pub fn flush_rdma_writes(&self, scope: RdmaScope) -> Result<()> {
        let target =
            CUflushGPUDirectRDMAWritesTarget::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuFlushGPUDirectRDMAWrites(target, scope.as_raw())) }
        })
    }
}

impl PriorityRange {
    /// Clamps `priority` to the range, as the driver does when it creates a stream.
    #[must_use]
    pub fn clamp(self, priority: i32) -> i32 {
        priority.max(self.greatest).min(self.least)
    }

    /// Returns the priorities, from the greatest to the least.
    #[must_use]
    pub const fn numbers(self) -> RangeInclusive<i32> {
        self.greatest..=self.least
    }
}

impl CacheConfig {
    /// Converts a raw CUDA value.
    #[must_use]
    pub const fn from_raw(raw: CUfunc_cache) -> Self {
        match raw {
            CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE => Self::NoPreference,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED => Self::PreferShared,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_L1 => Self::PreferL1,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL => Self::PreferEqual,
            CUfunc_cache(other) => Self::Unknown(other),
        }
    }

    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn as_raw(self) -> CUfunc_cache {
        match self {
            Self::NoPreference => CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE,
            Self::PreferShared => CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED,
            Self::PreferL1 => CUfunc_cache::CU_FUNC_CACHE_PREFER_L1,
            Self::PreferEqual => CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL,
            Self::Unknown(other) => CUfunc_cache(other),
        }
    }
}

impl SharedMemoryConfig {
    /// Converts a raw CUDA value.
    #[must_use]
    pub const fn from_raw(raw: CUsharedconfig) -> Self {
        match raw {
            CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE => Self::Default,
            CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE => Self::FourByteBanks,
            CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE => Self::EightByteBanks,
            CUsharedconfig(other) => Self::Unknown(other),
        }
    }

    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn as_raw(self) -> CUsharedconfig {
        match self {
            Self::Default => CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE,
            Self::FourByteBanks => CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE,
            Self::EightByteBanks => CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE,
            Self::Unknown(other) => CUsharedconfig(other),
        }
    }
}

impl RdmaScope {
    const fn as_raw(self) -> CUflushGPUDirectRDMAWritesScope {
        match self {
            Self::Owner => {
                CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
            }
            Self::AllDevices => {
                CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
            }
        }
    }
}
