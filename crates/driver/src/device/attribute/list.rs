//! The list of attributes.

use std::marker::PhantomData;

use curium_sys::CUdevice_attribute;

use super::DeviceAttribute;
use super::value::{
    ComputeMode, DecompressAlgorithms, EndpointHandleTypes, MemoryHandleTypes, NumaConfig,
    RdmaFlushOptions, RdmaWritesOrdering,
};

macro_rules! attributes {
    ($($(#[doc = $doc:literal])+ $name:ident: $ty:ty = $raw:ident;)*) => {
        impl DeviceAttribute {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nCUDA: `", stringify!($raw), "`.")]
                pub const $name: DeviceAttribute<$ty> =
                    DeviceAttribute { raw: CUdevice_attribute::$raw, name: stringify!($name), value: PhantomData };
            )*

            /// Every attribute that this version of Curium defines, in ascending order, each with
            /// its value as a raw integer.
            pub const ALL: &'static [DeviceAttribute<i32>] = &[$(
                DeviceAttribute { raw: CUdevice_attribute::$raw, name: stringify!($name), value: PhantomData },
            )*];
        }
    };
}

attributes! {
    /// The maximum number of threads per block.
    MAX_THREADS_PER_BLOCK: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    /// The maximum x dimension of a block, in threads.
    MAX_BLOCK_DIM_X: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X;
    /// The maximum y dimension of a block, in threads.
    MAX_BLOCK_DIM_Y: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y;
    /// The maximum z dimension of a block, in threads.
    MAX_BLOCK_DIM_Z: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z;
    /// The maximum x dimension of a grid, in blocks.
    MAX_GRID_DIM_X: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X;
    /// The maximum y dimension of a grid, in blocks.
    MAX_GRID_DIM_Y: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y;
    /// The maximum z dimension of a grid, in blocks.
    MAX_GRID_DIM_Z: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    /// The maximum shared memory per block without opting in to more, in bytes.
    MAX_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
    /// The constant memory available for `__constant__` variables of a module, in bytes.
    TOTAL_CONSTANT_MEMORY: usize = CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY;
    /// The warp size in threads.
    WARP_SIZE: u32 = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    /// The maximum pitch of a memory copy, in bytes.
    MAX_PITCH: usize = CU_DEVICE_ATTRIBUTE_MAX_PITCH;
    /// The maximum number of 32-bit registers per block.
    MAX_REGISTERS_PER_BLOCK: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
    /// The typical clock rate of the multiprocessors, in kHz.
    CLOCK_RATE: u32 = CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    /// The alignment requirement of textures, in bytes.
    TEXTURE_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
    /// `true` if the device can copy memory while it runs a kernel. See
    /// [`ASYNC_ENGINE_COUNT`](Self::ASYNC_ENGINE_COUNT).
    GPU_OVERLAP: bool = CU_DEVICE_ATTRIBUTE_GPU_OVERLAP;
    /// The number of multiprocessors.
    MULTIPROCESSOR_COUNT: u32 = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    /// `true` if kernels have a run-time limit.
    KERNEL_EXEC_TIMEOUT: bool = CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
    /// `true` if the device shares its memory with the host.
    INTEGRATED: bool = CU_DEVICE_ATTRIBUTE_INTEGRATED;
    /// `true` if host memory can be mapped into the device's address space.
    CAN_MAP_HOST_MEMORY: bool = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
    /// The compute mode: which processes may create contexts.
    COMPUTE_MODE: ComputeMode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
    /// The maximum width of a 1D texture, in elements.
    MAXIMUM_TEXTURE1D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH;
    /// The maximum width of a 2D texture, in elements.
    MAXIMUM_TEXTURE2D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH;
    /// The maximum height of a 2D texture, in elements.
    MAXIMUM_TEXTURE2D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT;
    /// The maximum width of a 3D texture, in elements.
    MAXIMUM_TEXTURE3D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH;
    /// The maximum height of a 3D texture, in elements.
    MAXIMUM_TEXTURE3D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT;
    /// The maximum depth of a 3D texture, in elements.
    MAXIMUM_TEXTURE3D_DEPTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH;
    /// The maximum width of a layered 2D texture, in elements.
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH;
    /// The maximum height of a layered 2D texture, in elements.
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT;
    /// The maximum number of layers of a 2D texture.
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS;
    /// The alignment requirement of surfaces, in bytes.
    SURFACE_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT;
    /// `true` if the device can run several kernels of one context concurrently.
    CONCURRENT_KERNELS: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS;
    /// `true` if ECC is enabled.
    ECC_ENABLED: bool = CU_DEVICE_ATTRIBUTE_ECC_ENABLED;
    /// The PCI bus identifier of the device.
    PCI_BUS_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_BUS_ID;
    /// The PCI device (slot) identifier of the device.
    PCI_DEVICE_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID;
    /// `true` if the device uses the TCC driver model of Windows.
    TCC_DRIVER: bool = CU_DEVICE_ATTRIBUTE_TCC_DRIVER;
    /// The peak memory clock rate, in kHz.
    MEMORY_CLOCK_RATE: u32 = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
    /// The width of the global memory bus, in bits.
    GLOBAL_MEMORY_BUS_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
    /// The size of the L2 cache, in bytes.
    L2_CACHE_SIZE: usize = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    /// The maximum number of resident threads per multiprocessor.
    MAX_THREADS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    /// The number of asynchronous copy engines.
    ASYNC_ENGINE_COUNT: u32 = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
    /// `true` if the device and the host share a unified address space.
    UNIFIED_ADDRESSING: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
    /// The maximum width of a layered 1D texture, in elements.
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH;
    /// The maximum number of layers of a 1D texture.
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS;
    /// `true` if the device supports `tex2Dgather`. Deprecated by CUDA.
    CAN_TEX2D_GATHER: bool = CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER;
    /// The maximum width of a 2D texture for `tex2Dgather`, in elements.
    MAXIMUM_TEXTURE2D_GATHER_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH;
    /// The maximum height of a 2D texture for `tex2Dgather`, in elements.
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT;
    /// The maximum width of a 3D texture in the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE;
    /// The maximum height of a 3D texture in the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE;
    /// The maximum depth of a 3D texture in the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE;
    /// The PCI domain identifier of the device.
    PCI_DOMAIN_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
    /// The pitch alignment requirement of textures over linear memory, in bytes.
    TEXTURE_PITCH_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT;
    /// The maximum width and height of a cubemap texture, in elements.
    MAXIMUM_TEXTURECUBEMAP_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH;
    /// The maximum width and height of a layered cubemap texture, in elements.
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH;
    /// The maximum number of layers of a cubemap texture.
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS;
    /// The maximum width of a 1D surface, in elements.
    MAXIMUM_SURFACE1D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH;
    /// The maximum width of a 2D surface, in elements.
    MAXIMUM_SURFACE2D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH;
    /// The maximum height of a 2D surface, in elements.
    MAXIMUM_SURFACE2D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT;
    /// The maximum width of a 3D surface, in elements.
    MAXIMUM_SURFACE3D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH;
    /// The maximum height of a 3D surface, in elements.
    MAXIMUM_SURFACE3D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT;
    /// The maximum depth of a 3D surface, in elements.
    MAXIMUM_SURFACE3D_DEPTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH;
    /// The maximum width of a layered 1D surface, in elements.
    MAXIMUM_SURFACE1D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH;
    /// The maximum number of layers of a 1D surface.
    MAXIMUM_SURFACE1D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS;
    /// The maximum width of a layered 2D surface, in elements.
    MAXIMUM_SURFACE2D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH;
    /// The maximum height of a layered 2D surface, in elements.
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT;
    /// The maximum number of layers of a 2D surface.
    MAXIMUM_SURFACE2D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS;
    /// The maximum width and height of a cubemap surface, in elements.
    MAXIMUM_SURFACECUBEMAP_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH;
    /// The maximum width and height of a layered cubemap surface, in elements.
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH;
    /// The maximum number of layers of a cubemap surface.
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS;
    /// The maximum width of a 1D texture over linear memory, in elements. Deprecated by CUDA in
    /// favor of [`Device::linear_texture_width`](crate::Device::linear_texture_width).
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
    /// The maximum width of a 2D texture over linear memory, in elements.
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH;
    /// The maximum height of a 2D texture over linear memory, in elements.
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT;
    /// The maximum pitch of a 2D texture over linear memory, in bytes.
    MAXIMUM_TEXTURE2D_LINEAR_PITCH: usize = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH;
    /// The maximum width of a 2D mipmapped texture, in elements.
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH;
    /// The maximum height of a 2D mipmapped texture, in elements.
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT;
    /// The major compute capability.
    /// [`Device::compute_capability`](crate::Device::compute_capability) gives both parts.
    COMPUTE_CAPABILITY_MAJOR: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    /// The minor compute capability.
    COMPUTE_CAPABILITY_MINOR: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    /// The maximum width of a 1D mipmapped texture, in elements.
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH;
    /// `true` if the device supports stream priorities.
    STREAM_PRIORITIES_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
    /// `true` if the device caches global memory in L1.
    GLOBAL_L1_CACHE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED;
    /// `true` if the device caches local memory in L1.
    LOCAL_L1_CACHE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED;
    /// The maximum shared memory per multiprocessor, in bytes.
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    /// The maximum number of 32-bit registers per multiprocessor.
    MAX_REGISTERS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    /// `true` if managed memory can be allocated.
    MANAGED_MEMORY: bool = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    /// `true` if the device is on a multi-GPU board.
    MULTI_GPU_BOARD: bool = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD;
    /// An identifier shared by all devices on the same multi-GPU board.
    MULTI_GPU_BOARD_GROUP_ID: u32 = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID;
    /// `true` if the link to the host supports native atomic operations.
    HOST_NATIVE_ATOMIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED;
    /// The ratio of single-precision to double-precision performance.
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: u32 = CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
    /// `true` if the device can access pageable host memory coherently without `cuMemHostRegister`.
    PAGEABLE_MEMORY_ACCESS: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    /// `true` if the host and the device can access managed memory concurrently.
    CONCURRENT_MANAGED_ACCESS: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    /// `true` if the device supports compute preemption.
    COMPUTE_PREEMPTION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED;
    /// `true` if the device can access registered host memory at its host address.
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
    /// `true` if the first version of the stream memory operations is supported. Deprecated by
    /// CUDA.
    CAN_USE_STREAM_MEM_OPS_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1;
    /// `true` if the first version of the stream memory operations supports 64-bit values.
    /// Deprecated by CUDA.
    CAN_USE_64_BIT_STREAM_MEM_OPS_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1;
    /// `true` if the first version of the stream memory operations supports the NOR wait condition.
    /// Deprecated by CUDA.
    CAN_USE_STREAM_WAIT_VALUE_NOR_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1;
    /// `true` if the device supports cooperative launches.
    COOPERATIVE_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
    /// `true` if the device supports multi-device cooperative launches. Deprecated by CUDA.
    COOPERATIVE_MULTI_DEVICE_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH;
    /// The maximum shared memory per block after opting in, in bytes.
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    /// `true` if stream memory operations can flush outstanding remote writes.
    CAN_FLUSH_REMOTE_WRITES: bool = CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
    /// `true` if host memory can be registered.
    HOST_REGISTER_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED;
    /// `true` if the device accesses pageable memory through the host's page tables.
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
    /// `true` if the host can access managed memory on the device without migration.
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: bool = CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
    /// `true` if the device supports virtual memory management (`cuMemAddressReserve`,
    /// `cuMemCreate`, `cuMemMap`).
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if memory can be exported as a POSIX file descriptor.
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    /// `true` if memory can be exported as a Windows NT handle.
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED;
    /// `true` if memory can be exported as a global (KMT) Windows handle.
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED;
    /// The maximum number of resident blocks per multiprocessor.
    MAX_BLOCKS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
    /// `true` if the device supports compressible memory.
    GENERIC_COMPRESSION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED;
    /// The maximum size of the L2 cache set aside for persisting accesses, in bytes.
    MAX_PERSISTING_L2_CACHE_SIZE: usize = CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE;
    /// The maximum size of an access policy window, in bytes.
    MAX_ACCESS_POLICY_WINDOW_SIZE: usize = CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    /// `true` if memory allocated with `cuMemCreate` supports GPUDirect RDMA.
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    /// The shared memory per block that the driver reserves, in bytes.
    RESERVED_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
    /// `true` if the device supports sparse arrays.
    SPARSE_CUDA_ARRAY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED;
    /// `true` if host memory can be registered as read-only.
    READ_ONLY_HOST_REGISTER_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
    /// `true` if external timeline semaphores can be imported.
    TIMELINE_SEMAPHORE_INTEROP_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED;
    /// `true` if the device supports stream-ordered allocation and memory pools.
    MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    /// `true` if the device supports GPUDirect RDMA.
    GPU_DIRECT_RDMA_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED;
    /// The supported ways to flush GPUDirect RDMA writes.
    GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: RdmaFlushOptions = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
    /// The scope in which GPUDirect RDMA writes are visible without a flush.
    GPU_DIRECT_RDMA_WRITES_ORDERING: RdmaWritesOrdering = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING;
    /// The handle types supported by memory pools for interprocess sharing.
    MEMPOOL_SUPPORTED_HANDLE_TYPES: MemoryHandleTypes = CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES;
    /// `true` if the device supports thread block clusters.
    CLUSTER_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
    /// `true` if arrays can be created without memory and mapped later.
    DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
    /// `true` if stream memory operations support 64-bit values.
    CAN_USE_64_BIT_STREAM_MEM_OPS: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS;
    /// `true` if stream memory operations support the NOR wait condition.
    CAN_USE_STREAM_WAIT_VALUE_NOR: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR;
    /// `true` if memory can be exported as a dma-buf.
    DMA_BUF_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
    /// `true` if the device supports interprocess events.
    IPC_EVENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
    /// The number of memory synchronization domains.
    MEM_SYNC_DOMAIN_COUNT: u32 = CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT;
    /// `true` if kernels can access tensors through tensor maps.
    TENSOR_MAP_ACCESS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED;
    /// `true` if memory can be exported as a fabric handle.
    HANDLE_TYPE_FABRIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED;
    /// `true` if the device supports unified function pointers.
    UNIFIED_FUNCTION_POINTERS: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS;
    /// The NUMA configuration of the memory.
    NUMA_CONFIG: NumaConfig = CU_DEVICE_ATTRIBUTE_NUMA_CONFIG;
    /// The NUMA node of the device's memory, if the memory is a NUMA node.
    NUMA_ID: Option<u32> = CU_DEVICE_ATTRIBUTE_NUMA_ID;
    /// `true` if the device supports multicast objects and their reductions on the NVLink switch.
    MULTICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED;
    /// `true` if contexts are created under the Multi-Process Service (MPS).
    MPS_ENABLED: bool = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
    /// The host NUMA node closest to the device, if the host has NUMA nodes.
    HOST_NUMA_ID: Option<u32> = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    /// `true` if contexts can run in graphics (CIG) mode with Direct3D 12.
    D3D12_CIG_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED;
    /// The algorithms supported by the decompression engine.
    MEM_DECOMPRESS_ALGORITHM_MASK: DecompressAlgorithms = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK;
    /// The maximum output of one decompression operation, in bytes.
    MEM_DECOMPRESS_MAXIMUM_LENGTH: usize = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH;
    /// `true` if contexts can run in graphics (CIG) mode with Vulkan.
    VULKAN_CIG_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED;
    /// The PCI device identifier in the upper 16 bits and the PCI vendor identifier in the lower 16
    /// bits.
    GPU_PCI_DEVICE_ID: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID;
    /// The PCI subsystem identifier in the upper 16 bits and the subsystem vendor identifier in the
    /// lower 16 bits.
    GPU_PCI_SUBSYSTEM_ID: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID;
    /// `true` if virtual memory management supports memory on a host NUMA node.
    HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if memory pools can be located on a host NUMA node.
    HOST_NUMA_MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED;
    /// `true` if memory on a host NUMA node can be shared between nodes (multi-node IPC).
    HOST_NUMA_MULTINODE_IPC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED;
    /// `true` if memory pools can be located on the host.
    HOST_MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED;
    /// `true` if virtual memory management supports host memory.
    HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if pinned host memory can be exported as a dma-buf.
    HOST_ALLOC_DMA_BUF_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED;
    /// `true` if the link to the host supports only some native atomic operations.
    /// [`Device::host_atomics`](crate::Device::host_atomics) returns them.
    ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
    /// `true` if stream memory operations support atomic reductions.
    ATOMIC_REDUCTION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED;
    /// The number of locality domains of the device: parts that are closer to some of its memory.
    LOCALITY_DOMAIN_COUNT: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT;
    /// The maximum oversized shared memory per block, in bytes.
    MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK;
    /// `true` if streams can run in graphics (CIG) mode with Direct3D 12.
    D3D12_CIG_STREAMS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED;
    /// `true` if the host can map a dma-buf of device memory.
    DMA_BUF_MMAP_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED;
    /// `true` if the device supports unicast logical endpoints.
    LOGICAL_ENDPOINT_UNICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED;
    /// `true` if the device supports multicast logical endpoints.
    LOGICAL_ENDPOINT_MULTICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED;
    /// `true` if logical endpoints support counted operations.
    LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED;
    /// `true` if a device can access its own unicast logical endpoint.
    LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED;
    /// The number of multiprocessors in each locality domain. See
    /// [`LOCALITY_DOMAIN_COUNT`](Self::LOCALITY_DOMAIN_COUNT).
    LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT;
    /// The handle types that logical endpoints can be exported as.
    LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES: EndpointHandleTypes = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES;
    /// `true` if streams can run in graphics (CIG) mode with Vulkan.
    VULKAN_CIG_STREAMS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED;
    /// The minimum contiguous memory for a tensor map of the large class, in bytes; `i32::MAX`
    /// where the class makes no difference.
    TENSOR_MAP_LARGE_TENSOR_MIN_SIZE: usize = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE;
    /// `true` if GPUDirect RDMA supports memory that is confined to a locality domain.
    GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED;
}
