//! Settings of a context.

use std::ops::RangeInclusive;

use curium_sys::{
    CUexecAffinityParam, CUexecAffinityType, CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget,
    CUfunc_cache, CUsharedconfig,
};

use super::{Context, ContextFlags};
use crate::Result;
use crate::call;

/// What the memory that L1 cache and shared memory have in common is preferred for. Only a hint, and without effect where each has
/// its own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CacheConfig {
    /// No preference.
    NoPreference,
    /// More shared memory.
    PreferShared,
    /// More L1 cache.
    PreferL1,
    /// As much of the one as of the other.
    PreferEqual,
    /// A preference of a newer driver.
    Unknown(u32),
}

/// The bank width of shared memory. Current devices have one width, and the setting has no effect.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SharedMemoryConfig {
    /// The device's default.
    Default,
    /// Four bytes.
    FourByteBanks,
    /// Eight bytes.
    EightByteBanks,
    /// A width of a newer driver.
    Unknown(u32),
}

/// The priorities that streams can have. Lower numbers go first; 0 is the default.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct PriorityRange {
    /// The priority that comes last: the highest number.
    pub least: i32,
    /// The priority that goes first: the lowest number.
    pub greatest: i32,
}

/// The observers that see GPUDirect RDMA writes after a flush.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RdmaScope {
    /// The device that was written to.
    Owner,
    /// Every device of the machine.
    AllDevices,
}

impl Context {
    /// Returns the flags of this context.
    ///
    /// CUDA: `cuCtxGetFlags`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetFlags")]
    #[inline]
    pub fn flags(&self) -> Result<ContextFlags> {
        self.entered(|driver| {
            let mut flags = 0;
            // SAFETY: `flags` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetFlags(&raw mut flags)) }?;
            Ok(ContextFlags::from_bits_retain(flags))
        })
    }

    /// Sets the flags of this context, in place of those before.
    ///
    /// Needs CUDA 12.1. CUDA: `cuCtxSetFlags`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for flags that exclude each other.
    #[doc(alias = "cuCtxSetFlags")]
    #[inline]
    pub fn set_flags(&self, flags: ContextFlags) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetFlags(flags.bits())) }.map_err(|error| error.about(format!("{flags:?}")))
        })
    }

    /// Returns the preferred division between L1 cache and shared memory.
    ///
    /// CUDA: `cuCtxGetCacheConfig`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetCacheConfig")]
    #[inline]
    pub fn cache_config(&self) -> Result<CacheConfig> {
        self.entered(|driver| {
            let mut config = CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE;
            // SAFETY: `config` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetCacheConfig(&raw mut config)) }?;
            Ok(CacheConfig::from_raw(config))
        })
    }

    /// Sets what the memory of L1 cache and shared memory is preferred for, where a kernel has no preference of its own.
    ///
    /// CUDA: `cuCtxSetCacheConfig`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a preference that this driver does not know.
    #[doc(alias = "cuCtxSetCacheConfig")]
    #[inline]
    pub fn set_cache_config(&self, config: CacheConfig) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetCacheConfig(config.as_raw())) }
                .map_err(|error| error.about(format!("{config:?}")))
        })
    }

    /// Returns the bank width of shared memory.
    ///
    /// CUDA: `cuCtxGetSharedMemConfig`, which CUDA has deprecated.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetSharedMemConfig")]
    #[inline]
    pub fn shared_memory_config(&self) -> Result<SharedMemoryConfig> {
        self.entered(|driver| {
            let mut config = CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
            // SAFETY: `config` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetSharedMemConfig(&raw mut config)) }?;
            Ok(SharedMemoryConfig::from_raw(config))
        })
    }

    /// Sets how wide the banks of shared memory are, where the device gives the choice.
    ///
    /// CUDA: `cuCtxSetSharedMemConfig`, which CUDA has deprecated.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a width that this driver does not know.
    #[doc(alias = "cuCtxSetSharedMemConfig")]
    #[inline]
    pub fn set_shared_memory_config(&self, config: SharedMemoryConfig) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuCtxSetSharedMemConfig(config.as_raw())) }
                .map_err(|error| error.about(format!("{config:?}")))
        })
    }

    /// Returns the priorities that streams of this context can have.
    ///
    /// CUDA: `cuCtxGetStreamPriorityRange`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    #[inline]
    pub fn stream_priorities(&self) -> Result<PriorityRange> {
        self.entered(|driver| {
            let (mut least, mut greatest) = (0, 0);
            // SAFETY: `least` and `greatest` are valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)) }?;
            Ok(PriorityRange { least, greatest })
        })
    }

    /// Returns the number of multiprocessors this context may use: all of the device's, unless the multi-process service confines it.
    ///
    /// CUDA: `cuCtxGetExecAffinity`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetExecAffinity")]
    #[inline]
    pub fn affinity(&self) -> Result<u32> {
        self.entered(|driver| {
            let kind = CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT;
            let mut affinity = CUexecAffinityParam { type_: kind, ..Default::default() };
            // SAFETY: `affinity` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetExecAffinity(&raw mut affinity, kind)) }?;
            // SAFETY: the driver has filled in the only field that there is, which is a plain number.
            Ok(unsafe { affinity.param.smCount.val })
        })
    }

    /// Makes all lines of the L2 cache that were set aside for persisting accesses ordinary ones.
    ///
    /// CUDA: `cuCtxResetPersistingL2Cache`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxResetPersistingL2Cache")]
    #[inline]
    pub fn reset_persisting_l2(&self) -> Result<()> {
        self.entered(|driver| {
            // SAFETY: the call takes no argument, and the context is current.
            unsafe { call!(driver, cuCtxResetPersistingL2Cache()) }
        })
    }

    /// Waits until writes to this context's memory by GPUDirect RDMA are seen in `scope`. The attribute
    /// [`GPU_DIRECT_RDMA_WRITES_ORDERING`](crate::DeviceAttribute::GPU_DIRECT_RDMA_WRITES_ORDERING) says where that is needless.
    ///
    /// CUDA: `cuFlushGPUDirectRDMAWrites`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where the host cannot do it.
    #[doc(alias = "cuFlushGPUDirectRDMAWrites")]
    #[inline]
    pub fn flush_rdma_writes(&self, scope: RdmaScope) -> Result<()> {
        let target = CUflushGPUDirectRDMAWritesTarget::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
        self.entered(|driver| {
            // SAFETY: the call takes no pointer, and the context is current.
            unsafe { call!(driver, cuFlushGPUDirectRDMAWrites(target, scope.as_raw())) }
        })
    }
}

impl PriorityRange {
    /// Returns the priority in the range that is closest to `priority`: what a stream gets that is made with it.
    #[must_use]
    #[inline]
    pub fn clamp(self, priority: i32) -> i32 {
        priority.max(self.greatest).min(self.least)
    }

    /// Returns the priorities, from the one that goes first.
    #[must_use]
    #[inline]
    pub const fn numbers(self) -> RangeInclusive<i32> {
        self.greatest..=self.least
    }
}

impl CacheConfig {
    /// Returns the preference of a number of the driver.
    #[must_use]
    #[inline]
    pub const fn from_raw(raw: CUfunc_cache) -> Self {
        match raw {
            CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE => Self::NoPreference,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED => Self::PreferShared,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_L1 => Self::PreferL1,
            CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL => Self::PreferEqual,
            CUfunc_cache(other) => Self::Unknown(other),
        }
    }

    /// Returns the driver's number.
    #[must_use]
    #[inline]
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
    /// Returns the width of a number of the driver.
    #[must_use]
    #[inline]
    pub const fn from_raw(raw: CUsharedconfig) -> Self {
        match raw {
            CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE => Self::Default,
            CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE => Self::FourByteBanks,
            CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE => Self::EightByteBanks,
            CUsharedconfig(other) => Self::Unknown(other),
        }
    }

    /// Returns the driver's number.
    #[must_use]
    #[inline]
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
    #[inline]
    const fn as_raw(self) -> CUflushGPUDirectRDMAWritesScope {
        match self {
            Self::Owner => CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER,
            Self::AllDevices => CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES,
        }
    }
}
