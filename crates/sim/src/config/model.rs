//! The attributes of the hardware that simulated devices imitate.

use curium_sys::{CUdevice_attribute, CUdevice_attribute as A};

use crate::config::DeviceModel;

/// The attributes of an H100 (80 GB, HBM3, driver 580), from attribute 1 on in the order of their
/// numbers.
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

/// The hardware of a model.
struct Hardware {
    model: DeviceModel,
    /// The name of the hardware, as users write it.
    hardware: &'static str,
    /// The name of the device, which marks it as simulated.
    name: &'static str,
    memory: u64,
    /// `true` if devices may access each other's memory.
    has_peers: bool,
    /// The differences from the H100.
    differences: &'static [(CUdevice_attribute, i32)],
}

macro_rules! hardware {
    ($model:ident, $hardware:literal, $memory:literal bytes, peers: $has_peers:literal, [$($difference:expr),* $(,)?]) => {
        Hardware {
            model: DeviceModel::$model,
            hardware: $hardware,
            name: concat!("Curium Simulator (", $hardware, " model)"),
            memory: $memory,
            has_peers: $has_peers,
            differences: &[$($difference),*],
        }
    };
}

/// All models, the smallest compute capability first.
///
/// Attributes that are not published are those of the H100. The persisting part of the L2 cache of
/// a Jetson, a GB10 and the models of compute capability 12.0 has the same share as there.
#[rustfmt::skip]
const ALL: [Hardware; 15] = [
    // A T4 (16 GB, GDDR6).
    hardware!(T4, "T4", 15_655_829_504 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 5),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 40),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_590_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 5_001_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0),
        (A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 65_536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 65_536),
        (A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    // An A100 (80 GB, HBM2e, SXM).
    hardware!(A100, "A100", 85_097_971_712 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_410_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_593_000),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 26_214_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167_936),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166_912),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    // A GeForce RTX 3090 (24 GB, GDDR6X).
    hardware!(Rtx3090, "RTX 3090", 25_447_170_048 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 6),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 82),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_695_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 9_751_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 384),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 6_291_456),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 4_325_376),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    ]),
    // An A10 (24 GB, GDDR6).
    hardware!(A10, "A10", 23_835_508_736 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 6),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 72),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_695_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 6_251_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 384),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 6_291_456),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 4_325_376),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    // A Jetson AGX Orin (64 GB, LPDDR5).
    hardware!(Orin, "Orin", 65_893_089_280 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 7),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_300_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_300_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 2_621_440),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167_936),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166_912),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
        (A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    // A GeForce RTX 4090 (24 GB, GDDR6X).
    hardware!(Rtx4090, "RTX 4090", 25_393_692_672 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 128),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_520_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 10_501_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 384),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 75_497_472),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 51_904_512),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    ]),
    // An L4 (24 GB, GDDR6).
    hardware!(L4, "L4", 23_580_639_232 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 58),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_040_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 6_251_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 192),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50_331_648),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 34_603_008),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    // An L40S (48 GB, GDDR6).
    hardware!(L40S, "L40S", 47_810_936_832 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 142),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_520_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 9_001_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 384),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 100_663_296),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 69_206_016),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0),
    ]),
    hardware!(H100, "H100", 85_017_493_504 bytes, peers: true, []),
    // A GH200 (480 GB of LPDDR5X at the host, 96 GB of HBM3).
    hardware!(GH200, "GH200", 102_005_473_280 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62_914_560),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 39_321_600),
        (A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 1),
        (A::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1),
    ]),
    // A B200 (180 GB, HBM3e).
    hardware!(B200, "B200", 191_503_139_840 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 148),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_965_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3_996_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 7680),
    ]),
    // A Jetson AGX Thor (128 GB, LPDDR5X, shared with the host).
    hardware!(Thor, "Thor", 131_880_132_608 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 11),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 20),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_575_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 4_266_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 33_554_432),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 20_971_520),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 1),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
    ]),
    // A GeForce RTX 5090 (32 GB, GDDR7).
    hardware!(Rtx5090, "RTX 5090", 33_680_457_728 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 170),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_407_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 14_001_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 512),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 100_663_296),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 62_914_560),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    ]),
    // An RTX PRO 6000 Blackwell (96 GB, GDDR7).
    hardware!(RtxPro6000, "RTX PRO 6000", 101_972_000_768 bytes, peers: true, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 188),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_617_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 14_001_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 512),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 134_217_728),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 83_886_080),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
    ]),
    // A GB10 (128 GB, LPDDR5X, shared with the host).
    hardware!(GB10, "GB10", 128_523_960_320 bytes, peers: false, [
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12),
        (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 48),
        (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2_418_000),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 8_533_000),
        (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256),
        (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 25_165_824),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 15_728_640),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102_400),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101_376),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1),
        (A::CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
        (A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1),
        (A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 1),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
        (A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0),
    ]),
];

impl DeviceModel {
    /// Returns all models, the smallest compute capability first.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|hardware| hardware.model)
    }

    /// Returns the name of the hardware, such as `RTX 4090`.
    #[must_use]
    pub fn hardware(self) -> &'static str {
        self.data().hardware
    }

    /// Returns the name of the device, which marks it as simulated.
    pub(crate) fn name(self) -> &'static str {
        self.data().name
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub const fn memory(self) -> u64 {
        self.data().memory
    }

    /// Returns `true` if devices of the model may access each other's memory.
    pub(crate) fn has_peers(self) -> bool {
        self.data().has_peers
    }

    /// Returns an attribute of the hardware, `None` if the simulator has no such attribute.
    #[must_use]
    pub fn attribute(self, attribute: CUdevice_attribute) -> Option<i32> {
        let differences = self.data().differences;
        let different = differences.iter().find(|(name, _)| *name == attribute);
        let index = usize::try_from(attribute.0.checked_sub(1)?).ok()?;
        different
            .map(|(_, value)| *value)
            .or_else(|| H100.get(index).copied())
    }

    /// Returns an attribute that every model has.
    pub(crate) fn attribute_value(self, attribute: CUdevice_attribute) -> u32 {
        self.attribute(attribute).unwrap_or_default().unsigned_abs()
    }

    const fn data(self) -> &'static Hardware {
        let mut index = 0;
        while ALL[index].model as usize != self as usize {
            index += 1;
        }
        &ALL[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_indexed_by_attribute() {
        let model = DeviceModel::H100;
        assert_eq!(
            model.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            32
        );
        assert_eq!(
            model.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            132
        );
        assert_eq!(
            model.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            9
        );
        assert_eq!(
            model.attribute_value(
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR
            ),
            32
        );
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(0)), None);
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(148)), None);
    }

    /// Returns the models whose value of an attribute is not zero.
    fn models_with(attribute: CUdevice_attribute) -> Vec<&'static str> {
        DeviceModel::all()
            .filter(|model| model.attribute_value(attribute) != 0)
            .map(DeviceModel::hardware)
            .collect()
    }

    #[test]
    fn models_differ_as_their_tables_do() {
        assert_eq!(
            models_with(A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
            [
                "H100",
                "GH200",
                "B200",
                "Thor",
                "RTX 5090",
                "RTX PRO 6000",
                "GB10"
            ]
        );
        assert_eq!(
            models_with(A::CU_DEVICE_ATTRIBUTE_INTEGRATED),
            ["Orin", "Thor", "GB10"]
        );
        assert_eq!(
            models_with(A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
            ["GH200", "Thor", "GB10"]
        );
    }

    /// The limits of each compute capability in the CUDA C++ programming guide, table "Technical
    /// Specifications per Compute Capability": threads and blocks of a multiprocessor, and KiB of
    /// shared memory of a multiprocessor.
    #[test]
    fn models_have_their_compute_capability_limits() {
        for model in DeviceModel::all() {
            let major = model.attribute_value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
            let minor = model.attribute_value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
            let expected = match (major, minor) {
                (7, 5) => [1024, 16, 64],
                (8, 0) => [2048, 32, 164],
                (8, 6) => [1536, 16, 100],
                (8, 7) => [1536, 16, 164],
                (8, 9) => [1536, 24, 100],
                (9, 0) | (10, 0) => [2048, 32, 228],
                (11, 0) => [1536, 24, 228],
                (12, _) => [1536, 24, 100],
                other => panic!("{model:?} has compute capability {other:?}"),
            };
            let limits = [
                model.attribute_value(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
                model.attribute_value(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                model.attribute_value(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
                    >> 10,
            ];
            assert_eq!(limits, expected, "{model:?}");
            assert_eq!(model.attribute_value(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
        }
    }

    #[test]
    fn models_are_ordered_by_compute_capability() {
        assert!(DeviceModel::all().is_sorted_by_key(|model| {
            let major = model.attribute_value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
            let minor = model.attribute_value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
            (major, minor)
        }));
    }
}
