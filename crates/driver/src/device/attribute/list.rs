//! The list of attributes.

use std::marker::PhantomData;

use curium_sys::CUdevice_attribute;

use super::DeviceAttribute;
use super::value::{
    ComputeMode, DecompressAlgorithms, EndpointHandleTypes, MemoryHandleTypes, NumaConfig, RdmaFlushOptions,
    RdmaWritesOrdering,
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

            /// Every attribute that this version of Curium knows, in the order of their numbers, each with its value as the driver
            /// gives it.
            pub const ALL: &'static [DeviceAttribute<i32>] = &[$(
                DeviceAttribute { raw: CUdevice_attribute::$raw, name: stringify!($name), value: PhantomData },
            )*];
        }
    };
}

attributes! {
    /// The most threads in a block.
    MAX_THREADS_PER_BLOCK: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    /// The most threads of a block along x.
    MAX_BLOCK_DIM_X: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X;
    /// The most threads of a block along y.
    MAX_BLOCK_DIM_Y: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y;
    /// The most threads of a block along z.
    MAX_BLOCK_DIM_Z: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z;
    /// The most blocks of a grid along x.
    MAX_GRID_DIM_X: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X;
    /// The most blocks of a grid along y.
    MAX_GRID_DIM_Y: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y;
    /// The most blocks of a grid along z.
    MAX_GRID_DIM_Z: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    /// Shared memory that a block can have without opting in to more, in bytes.
    MAX_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
    /// Constant memory for a module's `__constant__` variables, in bytes.
    TOTAL_CONSTANT_MEMORY: usize = CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY;
    /// Threads in a warp.
    WARP_SIZE: u32 = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    /// The largest pitch of a copy, in bytes.
    MAX_PITCH: usize = CU_DEVICE_ATTRIBUTE_MAX_PITCH;
    /// 32-bit registers that a block can have.
    MAX_REGISTERS_PER_BLOCK: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
    /// The typical clock rate of the multiprocessors, in kHz.
    CLOCK_RATE: u32 = CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    /// The alignment of texture addresses in bytes.
    TEXTURE_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
    /// `true` if copies can run beside kernels. [`ASYNC_ENGINE_COUNT`](Self::ASYNC_ENGINE_COUNT) says how many.
    GPU_OVERLAP: bool = CU_DEVICE_ATTRIBUTE_GPU_OVERLAP;
    /// Multiprocessors.
    MULTIPROCESSOR_COUNT: u32 = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    /// `true` if a kernel that runs for too long is stopped.
    KERNEL_EXEC_TIMEOUT: bool = CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
    /// `true` if the device shares its memory with the host.
    INTEGRATED: bool = CU_DEVICE_ATTRIBUTE_INTEGRATED;
    /// `true` if host memory can be mapped for the device.
    CAN_MAP_HOST_MEMORY: bool = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
    /// The processes that may have contexts.
    COMPUTE_MODE: ComputeMode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
    /// The widest 1D texture, in elements.
    MAXIMUM_TEXTURE1D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH;
    /// The widest 2D texture, in elements.
    MAXIMUM_TEXTURE2D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH;
    /// The highest 2D texture, in elements.
    MAXIMUM_TEXTURE2D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT;
    /// The widest 3D texture, in elements.
    MAXIMUM_TEXTURE3D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH;
    /// The highest 3D texture, in elements.
    MAXIMUM_TEXTURE3D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT;
    /// The deepest 3D texture, in elements.
    MAXIMUM_TEXTURE3D_DEPTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH;
    /// The widest layered 2D texture, in elements.
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH;
    /// The highest layered 2D texture, in elements.
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT;
    /// The most layers of a 2D texture.
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS;
    /// The alignment of surface addresses in bytes.
    SURFACE_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT;
    /// `true` if several kernels of one context can run at once.
    CONCURRENT_KERNELS: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS;
    /// `true` if memory errors are corrected.
    ECC_ENABLED: bool = CU_DEVICE_ATTRIBUTE_ECC_ENABLED;
    /// The number of the PCI bus.
    PCI_BUS_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_BUS_ID;
    /// The number of the device on its PCI bus.
    PCI_DEVICE_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID;
    /// `true` if the driver is in Windows' TCC mode.
    TCC_DRIVER: bool = CU_DEVICE_ATTRIBUTE_TCC_DRIVER;
    /// The highest clock rate of the memory, in kHz.
    MEMORY_CLOCK_RATE: u32 = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
    /// The width of the memory bus, in bits.
    GLOBAL_MEMORY_BUS_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
    /// The L2 cache, in bytes.
    L2_CACHE_SIZE: usize = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    /// The most threads on a multiprocessor.
    MAX_THREADS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    /// Engines that copy beside kernels.
    ASYNC_ENGINE_COUNT: u32 = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
    /// `true` if device and host share one address space.
    UNIFIED_ADDRESSING: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
    /// The widest layered 1D texture, in elements.
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH;
    /// The most layers of a 1D texture.
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS;
    /// `true` if 2D textures can be gathered. CUDA has deprecated it.
    CAN_TEX2D_GATHER: bool = CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER;
    /// The widest 2D texture that can be gathered, in elements.
    MAXIMUM_TEXTURE2D_GATHER_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH;
    /// The highest 2D texture that can be gathered, in elements.
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT;
    /// The widest 3D texture of the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE;
    /// The highest 3D texture of the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE;
    /// The deepest 3D texture of the alternate shape, in elements.
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE;
    /// The number of the PCI domain.
    PCI_DOMAIN_ID: u32 = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
    /// The alignment of texture pitches in bytes.
    TEXTURE_PITCH_ALIGNMENT: usize = CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT;
    /// The largest side of a cube map texture, in elements.
    MAXIMUM_TEXTURECUBEMAP_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH;
    /// The largest side of a layered cube map texture, in elements.
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH;
    /// The most layers of a cube map texture.
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS;
    /// The widest 1D surface, in elements.
    MAXIMUM_SURFACE1D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH;
    /// The widest 2D surface, in elements.
    MAXIMUM_SURFACE2D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH;
    /// The highest 2D surface, in elements.
    MAXIMUM_SURFACE2D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT;
    /// The widest 3D surface, in elements.
    MAXIMUM_SURFACE3D_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH;
    /// The highest 3D surface, in elements.
    MAXIMUM_SURFACE3D_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT;
    /// The deepest 3D surface, in elements.
    MAXIMUM_SURFACE3D_DEPTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH;
    /// The widest layered 1D surface, in elements.
    MAXIMUM_SURFACE1D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH;
    /// The most layers of a 1D surface.
    MAXIMUM_SURFACE1D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS;
    /// The widest layered 2D surface, in elements.
    MAXIMUM_SURFACE2D_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH;
    /// The highest layered 2D surface, in elements.
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT;
    /// The most layers of a 2D surface.
    MAXIMUM_SURFACE2D_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS;
    /// The largest side of a cube map surface, in elements.
    MAXIMUM_SURFACECUBEMAP_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH;
    /// The largest side of a layered cube map surface, in elements.
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH;
    /// The most layers of a cube map surface.
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS;
    /// The widest 1D texture over linear memory, in elements. CUDA has deprecated it in favour of
    /// [`Device::linear_texture_width`](crate::Device::linear_texture_width).
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
    /// The widest 2D texture over linear memory, in elements.
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH;
    /// The highest 2D texture over linear memory, in elements.
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT;
    /// The largest pitch of a 2D texture over linear memory, in bytes.
    MAXIMUM_TEXTURE2D_LINEAR_PITCH: usize = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH;
    /// The widest 2D texture with mipmaps, in elements.
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH;
    /// The highest 2D texture with mipmaps, in elements.
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT;
    /// The generation of the architecture. [`Device::compute_capability`](crate::Device::compute_capability) gives both parts.
    COMPUTE_CAPABILITY_MAJOR: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    /// The variant within the generation of the architecture.
    COMPUTE_CAPABILITY_MINOR: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    /// The widest 1D texture with mipmaps, in elements.
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH;
    /// `true` if streams can have priorities.
    STREAM_PRIORITIES_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
    /// `true` if the L1 cache holds global memory.
    GLOBAL_L1_CACHE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED;
    /// `true` if the L1 cache holds local memory.
    LOCAL_L1_CACHE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED;
    /// Shared memory of a multiprocessor, in bytes.
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    /// 32-bit registers of a multiprocessor.
    MAX_REGISTERS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    /// `true` if managed memory can be allocated.
    MANAGED_MEMORY: bool = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    /// `true` if the device shares its board with others.
    MULTI_GPU_BOARD: bool = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD;
    /// A number that the devices of one board have in common.
    MULTI_GPU_BOARD_GROUP_ID: u32 = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID;
    /// `true` if every atomic operation works over the link to the host.
    HOST_NATIVE_ATOMIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED;
    /// The ratio of single-precision to double-precision performance.
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: u32 = CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
    /// `true` if the device can access pageable host memory as it is.
    PAGEABLE_MEMORY_ACCESS: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    /// `true` if host and device can access managed memory at the same time.
    CONCURRENT_MANAGED_ACCESS: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    /// `true` if a kernel can be interrupted for another.
    COMPUTE_PREEMPTION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED;
    /// `true` if registered host memory has the same address on the device.
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
    /// `true` if memory operations of the first interface work on streams. CUDA has deprecated it.
    CAN_USE_STREAM_MEM_OPS_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1;
    /// `true` if the first interface has memory operations on 64 bits. CUDA has deprecated it.
    CAN_USE_64_BIT_STREAM_MEM_OPS_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1;
    /// `true` if the first interface can wait for a NOR. CUDA has deprecated it.
    CAN_USE_STREAM_WAIT_VALUE_NOR_V1: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1;
    /// `true` if cooperative kernels can be launched.
    COOPERATIVE_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
    /// `true` if one cooperative kernel can be launched on several devices. CUDA has deprecated it.
    COOPERATIVE_MULTI_DEVICE_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH;
    /// Shared memory that a block can have after opting in, in bytes.
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: usize = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    /// `true` if a stream can flush remote writes.
    CAN_FLUSH_REMOTE_WRITES: bool = CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
    /// `true` if host memory can be registered.
    HOST_REGISTER_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED;
    /// `true` if the device reads the host's page tables for pageable memory.
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
    /// `true` if the host can access managed memory on the device without moving it.
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: bool = CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
    /// `true` if addresses and memory can be managed apart (`cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`).
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if memory can be shared by a file descriptor.
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    /// `true` if memory can be shared by an NT handle of Windows.
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED;
    /// `true` if memory can be shared by a global handle of Windows.
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED;
    /// The most blocks on a multiprocessor.
    MAX_BLOCKS_PER_MULTIPROCESSOR: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
    /// `true` if memory can be compressed.
    GENERIC_COMPRESSION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED;
    /// The most L2 cache that can be set aside for persisting accesses, in bytes.
    MAX_PERSISTING_L2_CACHE_SIZE: usize = CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE;
    /// The largest window of an access policy, in bytes.
    MAX_ACCESS_POLICY_WINDOW_SIZE: usize = CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    /// `true` if memory of `cuMemCreate` can be reached by GPUDirect RDMA.
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    /// Shared memory of each block that the driver keeps for itself, in bytes.
    RESERVED_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
    /// `true` if arrays can be sparse.
    SPARSE_CUDA_ARRAY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED;
    /// `true` if host memory can be registered for reading only.
    READ_ONLY_HOST_REGISTER_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
    /// `true` if timeline semaphores of graphics interfaces can be imported.
    TIMELINE_SEMAPHORE_INTEROP_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED;
    /// `true` if stream-ordered allocation and memory pools work.
    MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    /// `true` if other devices can reach the memory by GPUDirect RDMA.
    GPU_DIRECT_RDMA_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED;
    /// The supported ways to flush GPUDirect RDMA writes.
    GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: RdmaFlushOptions = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
    /// The observers that see GPUDirect RDMA writes without a flush.
    GPU_DIRECT_RDMA_WRITES_ORDERING: RdmaWritesOrdering = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING;
    /// The handles that memory pools can be shared by.
    MEMPOOL_SUPPORTED_HANDLE_TYPES: MemoryHandleTypes = CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES;
    /// `true` if blocks can be launched in clusters.
    CLUSTER_LAUNCH: bool = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
    /// `true` if arrays can be made before they have memory.
    DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
    /// `true` if memory operations on streams work on 64 bits.
    CAN_USE_64_BIT_STREAM_MEM_OPS: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS;
    /// `true` if a stream can wait for a NOR.
    CAN_USE_STREAM_WAIT_VALUE_NOR: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR;
    /// `true` if memory can be shared by a dma-buf.
    DMA_BUF_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
    /// `true` if events can be shared between processes.
    IPC_EVENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
    /// Domains that memory synchronization can be confined to.
    MEM_SYNC_DOMAIN_COUNT: u32 = CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT;
    /// `true` if kernels can copy by tensor maps.
    TENSOR_MAP_ACCESS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED;
    /// `true` if memory can be shared by a fabric handle.
    HANDLE_TYPE_FABRIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED;
    /// `true` if function pointers mean the same on every device and the host.
    UNIFIED_FUNCTION_POINTERS: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS;
    /// The NUMA configuration of the memory.
    NUMA_CONFIG: NumaConfig = CU_DEVICE_ATTRIBUTE_NUMA_CONFIG;
    /// The NUMA node of the device's memory, if it is one.
    NUMA_ID: Option<u32> = CU_DEVICE_ATTRIBUTE_NUMA_ID;
    /// `true` if memory can be written and reduced on several devices at once by the switch.
    MULTICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED;
    /// `true` if contexts are shared through the multi-process service.
    MPS_ENABLED: bool = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
    /// The NUMA node of the host that is closest, if the host has them.
    HOST_NUMA_ID: Option<u32> = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    /// `true` if contexts can share the device's queues with Direct3D 12.
    D3D12_CIG_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED;
    /// The formats that the decompression engine reads.
    MEM_DECOMPRESS_ALGORITHM_MASK: DecompressAlgorithms = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK;
    /// The most that one decompression can yield, in bytes.
    MEM_DECOMPRESS_MAXIMUM_LENGTH: usize = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH;
    /// `true` if contexts can share the device's queues with Vulkan.
    VULKAN_CIG_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED;
    /// PCI's number of the device in the upper 16 bits, of the vendor in the lower.
    GPU_PCI_DEVICE_ID: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID;
    /// PCI's number of the subsystem in the upper 16 bits, of its vendor in the lower.
    GPU_PCI_SUBSYSTEM_ID: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID;
    /// `true` if memory of a NUMA node of the host can be made with `cuMemCreate` and mapped.
    HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if memory pools can be on a NUMA node of the host.
    HOST_NUMA_MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED;
    /// `true` if memory of a NUMA node of the host can be shared with other machines.
    HOST_NUMA_MULTINODE_IPC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED;
    /// `true` if memory pools can be on the host.
    HOST_MEMORY_POOLS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED;
    /// `true` if memory of the host can be made with `cuMemCreate` and mapped.
    HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    /// `true` if pinned host memory can be shared by a dma-buf.
    HOST_ALLOC_DMA_BUF_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED;
    /// `true` if only some atomic operations work over the link to the host.
    /// [`Device::host_atomics`](crate::Device::host_atomics) says which.
    ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
    /// `true` if memory operations on streams can reduce atomically.
    ATOMIC_REDUCTION_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED;
    /// Parts of the device that are closer to some of its memory.
    LOCALITY_DOMAIN_COUNT: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT;
    /// Shared memory of a block of oversized shared memory, in bytes.
    MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK: usize = CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK;
    /// `true` if streams can share the device's queues with Direct3D 12.
    D3D12_CIG_STREAMS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED;
    /// `true` if a dma-buf of device memory can be mapped by the host.
    DMA_BUF_MMAP_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED;
    /// `true` if logical endpoints for one device work.
    LOGICAL_ENDPOINT_UNICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED;
    /// `true` if logical endpoints for several devices work.
    LOGICAL_ENDPOINT_MULTICAST_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED;
    /// `true` if operations through logical endpoints can be counted.
    LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED;
    /// `true` if a device can use a logical endpoint of its own.
    LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED;
    /// Multiprocessors in each part that [`LOCALITY_DOMAIN_COUNT`](Self::LOCALITY_DOMAIN_COUNT) counts.
    LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT;
    /// The handles that logical endpoints can be shared by.
    LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES: EndpointHandleTypes = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES;
    /// `true` if streams can share the device's queues with Vulkan.
    VULKAN_CIG_STREAMS_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED;
    /// The least contiguous memory that a tensor map of the large class needs, in bytes; `i32::MAX` where the class makes no
    /// difference.
    TENSOR_MAP_LARGE_TENSOR_MIN_SIZE: usize = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE;
    /// `true` if GPUDirect RDMA reaches memory that is confined to a part of the device.
    GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED;
}
