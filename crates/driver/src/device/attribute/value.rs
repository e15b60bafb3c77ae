//! The value types of device attributes.

use bitflags::bitflags;
use curium_sys::{
    CUGPUDirectRDMAWritesOrdering, CUcomputemode, CUdeviceNumaConfig,
    CUflushGPUDirectRDMAWritesOptions, CUlogicalEndpointIpcHandleType, CUmemAllocationHandleType,
    CUmemDecompressAlgorithm,
};

use super::AttributeValue;

/// The compute mode of a device: which processes may create contexts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ComputeMode {
    /// Any number of processes.
    Default,
    /// No process.
    Prohibited,
    /// One process at a time.
    ExclusiveProcess,
    /// A mode defined by a newer driver.
    Unknown(u32),
}

/// The NUMA configuration of a device's memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum NumaConfig {
    /// The device's memory is not a host NUMA node.
    None,
    /// The device's memory is a host NUMA node.
    Node,
    /// A configuration defined by a newer driver.
    Unknown(u32),
}

/// The scope in which GPUDirect RDMA writes to a device's memory are visible, in order, without a
/// flush.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RdmaWritesOrdering {
    /// None: a flush is required.
    None,
    /// The device that owns the memory.
    Owner,
    /// All devices.
    AllDevices,
    /// A scope defined by a newer driver.
    Unknown(u32),
}

bitflags! {
    /// The supported ways to flush GPUDirect RDMA writes.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct RdmaFlushOptions: u32 {
        /// A flush by the host: [`Context::flush_rdma_writes`](crate::Context::flush_rdma_writes).
        const HOST = CUflushGPUDirectRDMAWritesOptions::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST.0;
        /// A flush by a stream memory operation.
        const MEMORY_OPERATIONS = CUflushGPUDirectRDMAWritesOptions::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_MEMOPS.0;
        /// Options defined by newer drivers.
        const _ = !0;
    }

    /// The handle types for sharing memory between processes.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct MemoryHandleTypes: u32 {
        /// A POSIX file descriptor.
        const POSIX_FILE_DESCRIPTOR = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;
        /// A Windows NT handle.
        const WIN32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32.0;
        /// A global (KMT) Windows handle.
        const WIN32_KMT = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32_KMT.0;
        /// A fabric handle, which other nodes of the same fabric can import.
        const FABRIC = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC.0;
        /// Types defined by newer drivers.
        const _ = !0;
    }

    /// The handle types for sharing logical endpoints.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct EndpointHandleTypes: u32 {
        /// A fabric handle, which other nodes of the same fabric can import.
        const FABRIC = CUlogicalEndpointIpcHandleType::CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC.0;
        /// Types defined by newer drivers.
        const _ = !0;
    }

    /// The algorithms that a device's decompression engine supports.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct DecompressAlgorithms: u32 {
        /// Deflate.
        const DEFLATE = CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE.0;
        /// Snappy.
        const SNAPPY = CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY.0;
        /// LZ4.
        const LZ4 = CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_LZ4.0;
        /// Algorithms defined by newer drivers.
        const _ = !0;
    }
}

impl AttributeValue for i32 {
    fn from_raw(raw: i32) -> Self {
        raw
    }
}

impl AttributeValue for u32 {
    fn from_raw(raw: i32) -> Self {
        raw.cast_unsigned()
    }
}

impl AttributeValue for usize {
    fn from_raw(raw: i32) -> Self {
        Self::try_from(raw).unwrap_or_default()
    }
}

impl AttributeValue for bool {
    fn from_raw(raw: i32) -> Self {
        raw != 0
    }
}

/// An identifier that is -1 in the driver if it does not exist.
impl AttributeValue for Option<u32> {
    fn from_raw(raw: i32) -> Self {
        u32::try_from(raw).ok()
    }
}

impl AttributeValue for ComputeMode {
    fn from_raw(raw: i32) -> Self {
        match CUcomputemode(raw.cast_unsigned()) {
            CUcomputemode::CU_COMPUTEMODE_DEFAULT => Self::Default,
            CUcomputemode::CU_COMPUTEMODE_PROHIBITED => Self::Prohibited,
            CUcomputemode::CU_COMPUTEMODE_EXCLUSIVE_PROCESS => Self::ExclusiveProcess,
            CUcomputemode(other) => Self::Unknown(other),
        }
    }
}

impl AttributeValue for NumaConfig {
    fn from_raw(raw: i32) -> Self {
        match CUdeviceNumaConfig(raw.cast_unsigned()) {
            CUdeviceNumaConfig::CU_DEVICE_NUMA_CONFIG_NONE => Self::None,
            CUdeviceNumaConfig::CU_DEVICE_NUMA_CONFIG_NUMA_NODE => Self::Node,
            CUdeviceNumaConfig(other) => Self::Unknown(other),
        }
    }
}

impl AttributeValue for RdmaWritesOrdering {
    fn from_raw(raw: i32) -> Self {
        match CUGPUDirectRDMAWritesOrdering(raw.cast_unsigned()) {
            CUGPUDirectRDMAWritesOrdering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE => Self::None,
            CUGPUDirectRDMAWritesOrdering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER => Self::Owner,
            CUGPUDirectRDMAWritesOrdering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES => {
                Self::AllDevices
            }
            CUGPUDirectRDMAWritesOrdering(other) => Self::Unknown(other),
        }
    }
}

macro_rules! from_bits {
    ($($flags:ty)*) => {
        $(
            impl AttributeValue for $flags {
                fn from_raw(raw: i32) -> Self {
                    Self::from_bits_retain(raw.cast_unsigned())
                }
            }
        )*
    };
}

from_bits! { RdmaFlushOptions MemoryHandleTypes EndpointHandleTypes DecompressAlgorithms }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_preserved() {
        assert_eq!(ComputeMode::from_raw(9), ComputeMode::Unknown(9));
        assert_eq!(NumaConfig::from_raw(9), NumaConfig::Unknown(9));
        assert_eq!(
            RdmaWritesOrdering::from_raw(300),
            RdmaWritesOrdering::Unknown(300)
        );
        assert_eq!(MemoryHandleTypes::from_raw(0x109).bits(), 0x109);
    }

    #[test]
    fn negative_identifier_is_none() {
        assert_eq!(Option::<u32>::from_raw(-1), None);
        assert_eq!(Option::<u32>::from_raw(0), Some(0));
    }

    #[test]
    fn count_uses_all_bits_and_size_is_never_negative() {
        assert_eq!(u32::from_raw(-2), 0xffff_fffe);
        assert_eq!(usize::from_raw(-2), 0);
    }
}
