//! The attributes of the hardware that simulated devices imitate.

use curium_sys::{CUdevice_attribute, CUdevice_attribute as Attribute};

use crate::config::DeviceModel;

/// The attributes of an H100 (80 GB, HBM3, driver 580), from attribute 1 on in the order of their numbers.
#[rustfmt::skip]
const H100: [i32; 147] = [
    1024, 1024, 1024, 64, 2_147_483_647, 65_535, 65_535,
    49_152, 65_536, 32, 2_147_483_647, 65_536, 1_980_000, 512,
    1, 132, 0, 0, 1, 0, 131_072,
    131_072, 65_536, 16_384, 16_384, 16_384, 32_768, 32_768,
    2048, 512, 1, 1, 0, 6, 0,
    2_619_000, 5120, 52_428_800, 2048, 3, 1, 32_768,
    2048, 1, 32_768, 32_768, 8192, 8192, 32_768,
    0, 32, 32_768, 32_768, 2046, 32_768, 131_072,
    65_536, 16_384, 16_384, 16_384, 32_768, 2048, 32_768,
    32_768, 2048, 32_768, 32_768, 2046, 268_435_456, 131_072,
    65_000, 2_097_120, 32_768, 32_768, 9, 0, 32_768,
    1, 1, 1, 233_472, 65_536, 1, 0,
    0, 0, 2, 0, 1, 1, 1,
    0, 0, 0, 1, 1, 232_448, 0,
    1, 0, 0, 1, 1, 0, 0,
    32, 1, 32_768_000, 134_217_728, 1, 1024, 1,
    1, 1, 1, 1, 1, 100, 9,
    1, 1, 1, 1, 1, 1, 4,
    1, 1, 1, 0, -1, 0, 0,
    0, 0, 0, 0, 0, 590_352_606, 381_751_518,
    1, 1, 0, 1, 1, 0, 0,
];

/// The differences of a model from the H100.
type Differences = &'static [(CUdevice_attribute, i32)];

/// A T4 (16 GB, GDDR6).
const T4: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 5),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 40),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_590_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 5_001_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        0,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
        0,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        1024,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        16,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        65_536,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        65_536,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
        0,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
        32,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
        0,
    ),
];

/// An A100 (80 GB, HBM2e, SXM).
const A100: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_410_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_593_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        26_214_400,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        167_936,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        166_912,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
        0,
    ),
];

/// A B200 (180 GB, HBM3e).
const B200: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 148),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_965_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3_996_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 7680),
];

/// A Jetson AGX Orin (64 GB, LPDDR5). Attributes that are not published are those of the H100; the persisting part of the L2 cache has the
/// same share as there, here and below.
const ORIN: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 7),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_300_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_300_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        2_621_440,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        1536,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        16,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        167_936,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        166_912,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
    (Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
        0,
    ),
];

/// A GH200 (480 GB of LPDDR5X at the host, 96 GB of HBM3).
const GH200: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62_914_560),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        39_321_600,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        1,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        1,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        1,
    ),
];

/// A GB10 (128 GB, LPDDR5X, shared with the host).
const GB10: Differences = &[
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 48),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_418_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 8_533_000),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 25_165_824),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        15_728_640,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        1536,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        24,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        102_400,
    ),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        101_376,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        1,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
    (
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        0,
    ),
    (Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0),
];

impl DeviceModel {
    /// All models, the smallest compute capability first.
    pub(crate) const ALL: [Self; 7] = [
        Self::T4,
        Self::A100,
        Self::Orin,
        Self::H100,
        Self::GH200,
        Self::B200,
        Self::GB10,
    ];

    /// Returns the name of the hardware.
    pub(crate) const fn hardware(self) -> &'static str {
        match self {
            Self::T4 => "T4",
            Self::A100 => "A100",
            Self::H100 => "H100",
            Self::B200 => "B200",
            Self::Orin => "Orin",
            Self::GH200 => "GH200",
            Self::GB10 => "GB10",
        }
    }

    /// Returns the name of the device, which marks it as simulated.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::T4 => "Curium Simulator (T4 model)",
            Self::A100 => "Curium Simulator (A100 model)",
            Self::H100 => "Curium Simulator (H100 model)",
            Self::B200 => "Curium Simulator (B200 model)",
            Self::Orin => "Curium Simulator (Orin model)",
            Self::GH200 => "Curium Simulator (GH200 model)",
            Self::GB10 => "Curium Simulator (GB10 model)",
        }
    }

    /// Returns the bytes of memory.
    pub(crate) const fn memory(self) -> u64 {
        match self {
            Self::T4 => 15_655_829_504,
            Self::A100 => 85_097_971_712,
            Self::H100 => 85_017_493_504,
            Self::B200 => 191_503_139_840,
            Self::Orin => 65_893_089_280,
            Self::GH200 => 102_005_473_280,
            Self::GB10 => 122_570 << 20,
        }
    }

    /// Returns `true` if the device shares its memory with the host.
    pub(crate) fn is_integrated(self) -> bool {
        self.figure(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0
    }

    /// Returns an attribute of the hardware, `None` if the model has no such attribute.
    pub(crate) fn attribute(self, attribute: CUdevice_attribute) -> Option<i32> {
        let differences = match self {
            Self::T4 => T4,
            Self::A100 => A100,
            Self::H100 => &[],
            Self::B200 => B200,
            Self::Orin => ORIN,
            Self::GH200 => GH200,
            Self::GB10 => GB10,
        };
        let different = differences.iter().find(|(name, _)| *name == attribute);
        let index = usize::try_from(attribute.0.checked_sub(1)?).ok()?;
        different
            .map(|(_, value)| *value)
            .or_else(|| H100.get(index).copied())
    }

    /// Returns an attribute that every model has.
    pub(crate) fn figure(self, attribute: CUdevice_attribute) -> u32 {
        self.attribute(attribute).unwrap_or_default().unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_values_have_the_indices_of_their_attributes() {
        let figure = |attribute| DeviceModel::H100.figure(attribute);
        assert_eq!(
            figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            32
        );
        assert_eq!(
            figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            132
        );
        assert_eq!(
            figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            9
        );
        assert_eq!(
            figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
            32
        );
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(0)), None);
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(148)), None);
    }

    #[test]
    fn models_differ_as_their_tables_do() {
        let figures = |attribute| DeviceModel::ALL.map(|model| model.figure(attribute));
        assert_eq!(
            figures(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            [7, 8, 8, 9, 9, 10, 12]
        );
        assert_eq!(figures(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE), [32; 7]);
        assert_eq!(
            figures(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
            [0, 0, 0, 1, 1, 1, 1]
        );
        assert_eq!(
            figures(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED),
            [0, 0, 1, 0, 0, 0, 1]
        );
        assert_eq!(
            figures(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
            [0, 0, 0, 0, 1, 0, 1]
        );
    }
}
