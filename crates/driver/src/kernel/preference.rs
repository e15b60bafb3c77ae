//! Kernel preferences: shared memory and clusters.

use curium_sys::{CUclusterSchedulingPolicy, CUshared_carveout, CUsharedMemoryMode};

/// The preferred split of on-chip memory between shared memory and L1 cache.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Carveout {
    /// Chosen by the driver.
    Default,
    /// A percentage of the maximum shared memory: 0 for the largest L1 cache, 100 for the smallest.
    Percent(u8),
}

/// The scheduling policy for the clusters of a kernel.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ClusterScheduling {
    /// Chosen by the driver.
    Default,
    /// The blocks of a cluster are spread over the multiprocessors.
    Spread,
    /// The hardware balances the blocks of a cluster over the multiprocessors.
    LoadBalancing,
    /// Blocks are placed near the shared memory of their cluster, on devices of the Rubin
    /// generation. Since 13.3.
    RubinSharedMemoryLocality,
    /// A policy that is not defined here.
    Unknown(u32),
}

/// The policy for the maximum shared memory of a block.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SharedMemoryMode {
    /// As specified by the kernel's attribute.
    Default,
    /// At most the size that every device of the family supports.
    RequirePortable,
    /// At most the size that this device supports.
    AllowNonPortable,
    /// Also more than one multiprocessor has (oversized shared memory).
    AllowOversized,
    /// Oversized shared memory if possible.
    PreferOversized,
    /// A mode that is not defined here.
    Unknown(u32),
}

impl Carveout {
    /// The maximum shared memory.
    pub const MAX_SHARED: Self = Self::Percent(100);
    /// The maximum L1 cache.
    pub const MAX_L1: Self = Self::Percent(0);

    pub(super) fn from_raw(raw: i32) -> Self {
        u8::try_from(raw).map_or(Self::Default, Self::Percent)
    }

    pub(crate) const fn as_raw(self) -> i32 {
        match self {
            Self::Default => CUshared_carveout::CU_SHAREDMEM_CARVEOUT_DEFAULT.0,
            Self::Percent(percent) => percent as i32,
        }
    }
}

impl ClusterScheduling {
    pub(super) fn from_raw(raw: i32) -> Self {
        match CUclusterSchedulingPolicy(raw.cast_unsigned()) {
            CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_DEFAULT => Self::Default,
            CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD => Self::Spread,
            CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING => {
                Self::LoadBalancing
            }
            CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY => {
                Self::RubinSharedMemoryLocality
            }
            CUclusterSchedulingPolicy(other) => Self::Unknown(other),
        }
    }

    pub(crate) const fn as_raw(self) -> CUclusterSchedulingPolicy {
        match self {
            Self::Default => CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
            Self::Spread => CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
            Self::LoadBalancing => {
                CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
            }
            Self::RubinSharedMemoryLocality => {
                CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY
            }
            Self::Unknown(other) => CUclusterSchedulingPolicy(other),
        }
    }
}

impl SharedMemoryMode {
    pub(super) fn from_raw(raw: i32) -> Self {
        match CUsharedMemoryMode(raw.cast_unsigned()) {
            CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_DEFAULT => Self::Default,
            CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE => Self::RequirePortable,
            CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE => Self::AllowNonPortable,
            CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY => {
                Self::AllowOversized
            }
            CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY => {
                Self::PreferOversized
            }
            CUsharedMemoryMode(other) => Self::Unknown(other),
        }
    }

    pub(crate) const fn as_raw(self) -> CUsharedMemoryMode {
        match self {
            Self::Default => CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_DEFAULT,
            Self::RequirePortable => CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE,
            Self::AllowNonPortable => CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE,
            Self::AllowOversized => {
                CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY
            }
            Self::PreferOversized => {
                CUsharedMemoryMode::CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY
            }
            Self::Unknown(other) => CUsharedMemoryMode(other),
        }
    }
}
