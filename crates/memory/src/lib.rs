//! Memory for CUDA: device, pinned, mapped and managed buffers, copies, and memory resources.
//!
//! | Task | Type |
//! |---|---|
//! | Device memory, allocated and freed in stream order | [`DeviceBuffer`], [`DeviceBox`], [`PitchedBuffer`] |
//! | A device vector that grows without moving | [`DeviceVec`] |
//! | A part of a buffer, for kernels and copies | [`DeviceSlice`], [`DeviceSliceMut`], [`PitchedSlice`] |
//! | Host memory that the device copies at full speed | [`PinnedBuffer`], [`Registered`] |
//! | Memory that host and devices both access | [`MappedBuffer`], [`UnifiedBuffer`] |
//! | Memory that other code owns | [`BorrowedBuffer`], [`external`] |
//! | Copies: blocking, asynchronous, scoped, batched | methods of the buffers, [`copy`] |
//! | The source of device memory, limits, statistics | [`Resource`] and its implementations |
//! | Reserving addresses and mapping memory | [`virtual_memory`] |
//! | Textures, surfaces and tensor maps | [`Texture`], [`Surface`], [`TensorMap`] |
//!
//! Buffers [track their accesses](curium_driver::hazard) across streams, so safe code may use a buffer on any stream. A use on the buffer's
//! own stream costs no driver call, and readers run concurrently. Writers, and the deallocation, wait for earlier accesses on the device,
//! not on the host.
//!
//! # Element types
//!
//! Lengths are in elements; sizes are in bytes and have `bytes` in their name. The bounds are `bytemuck`'s traits:
//!
//! - [`NoUninit`] for copies to the device: types without padding;
//! - [`AnyBitPattern`] for copies to the host, host views and uninitialized buffers: types that are valid for every bit pattern, because a
//!   kernel may write any bytes;
//! - [`Zeroable`] for zeroed buffers.
//!
//! `bool`, `char`, enums and `NonZero` are not valid for every bit pattern. Such elements can be copied to the device, but not back: read
//! them as integers ([`DeviceSlice::cast`]) and convert them with `bytemuck::checked`, which reports invalid values.
//!
//! # Constructors
//!
//! Arguments come in one order: the stream or the context, then the length or the contents, then flags and options. A constructor with the
//! suffix `_in` takes a [`Resource`] as its last argument, as in `std`.
//!
//! # Features
//!
//! None is on by default; the crate `curium` turns on all of them.
//!
//! - `caching`: memory of the driver, kept and handed out again: the fastest way to allocate.
//! - `decompression`: compressed data is read by the device's decompression engine.
//! - `diagnostics`: a log of allocations that can be replayed, and snapshots of memory for viewers.
//! - `external`: memory and semaphores of other interfaces, such as Vulkan.
//! - `graphs`: semaphores of other interfaces as nodes of graphs.
//! - `ipc`: memory and events that several processes share.
//! - `multicast`: memory that one store reaches on several devices.
//! - `pools`: pools of the driver: their limits, their statistics, and who may use them.
//! - `tensor-maps`: descriptions of tensors for bulk copies by kernels.
//! - `textures`: arrays, textures and surfaces.
//! - `virtual-memory`: addresses and memory apart, and vectors that grow in place.
//!
//! # Example
//!
//! ```
//! use curium_driver::Driver;
//! use curium_memory::DeviceBuffer;
//!
//! # let simulator = curium_sim::Simulator::new(curium_sim::Config::new())?;
//! # // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
//! # let driver = unsafe { Driver::from_api(simulator.api()) }?;
//! # /*
//! let driver = Driver::load()?;
//! # */
//! let stream = driver.device(0)?.primary_context()?.stream()?;
//! let source = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
//! let mut target = DeviceBuffer::zeroed(&stream, 3)?;
//! target.copy_from_device(&source)?;
//! assert_eq!(target.to_vec()?, [1.0, 2.0, 3.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
#[cfg(feature = "diagnostics")]
mod allocation_log;
#[cfg(feature = "textures")]
mod array;
mod borrowed_buffer;
#[cfg(feature = "caching")]
mod cache;
mod capture_advice;
pub mod copy;
#[cfg(feature = "decompression")]
mod decompress;
mod device_box;
mod device_buffer;
mod device_slice;
#[cfg(feature = "virtual-memory")]
mod device_vec;
#[cfg(target_os = "linux")]
mod dma_buf;
#[cfg(feature = "external")]
pub mod external;
mod fill;
mod host_view;
#[cfg(feature = "ipc")]
mod ipc_memory;
mod location;
mod mapped_buffer;
#[cfg(feature = "pools")]
mod memory_pool;
#[cfg(feature = "multicast")]
pub mod multicast;
mod pinned_buffer;
mod pitched_buffer;
mod pitched_slice;
mod pointer_info;
mod registered;
mod resource;
mod size;
#[cfg(feature = "diagnostics")]
mod snapshot;
mod staging;
#[cfg(feature = "textures")]
mod surface;
#[cfg(feature = "tensor-maps")]
mod tensor_map;
#[cfg(feature = "textures")]
mod texture;
mod tracked;
mod unified_buffer;
#[cfg(feature = "virtual-memory")]
pub mod virtual_memory;
mod wait;

pub use bytemuck::{AnyBitPattern, NoUninit, Zeroable};

pub use self::access::MemoryAccess;
#[cfg(feature = "diagnostics")]
pub use self::allocation_log::{
    AllocationEvent, AllocationLog, CacheSample, EventKind, ParseLogError, Replay, Site, UsageSample,
};
#[cfg(feature = "textures")]
pub use self::array::{
    Array, ArrayFlags, ArrayFormat, ArrayKind, ArrayMemoryRequirements, ArrayRegion, ArrayShape, Half, MipmappedArray,
    SparseProperties, Texel, TileMapping, TileMemory,
};
pub use self::borrowed_buffer::BorrowedBuffer;
#[cfg(feature = "decompression")]
pub use self::decompress::{Compression, DecompressBatch};
pub use self::device_box::DeviceBox;
pub use self::device_buffer::DeviceBuffer;
pub use self::device_slice::{
    AsDeviceSlice, AsDeviceSliceMut, DeviceChunks, DeviceChunksMut, DeviceSlice, DeviceSliceMut,
};
#[cfg(feature = "virtual-memory")]
pub use self::device_vec::DeviceVec;
#[cfg(target_os = "linux")]
pub use self::dma_buf::export_dma_buf;
pub use self::host_view::{HostView, HostViewMut};
#[cfg(feature = "ipc")]
pub use self::ipc_memory::{IpcMemory, IpcMemoryHandle};
pub use self::location::MemoryLocation;
pub use self::mapped_buffer::MappedBuffer;
#[cfg(feature = "pools")]
pub use self::memory_pool::{MemoryPool, PoolKind, PoolOptions, PoolStatistics, PoolUsage};
#[cfg(all(feature = "ipc", feature = "pools"))]
pub use self::memory_pool::{PoolMemory, PoolPointerHandle};
pub use self::pinned_buffer::{PinnedBuffer, PinnedFlags};
pub use self::pitched_buffer::PitchedBuffer;
pub use self::pitched_slice::{Extent, HostPitchedSlice, HostPitchedSliceMut, Pitch, PitchedSlice, PitchedSliceMut};
pub use self::pointer_info::{MemoryType, PointerInfo, PointerSharing, address_range, set_sync_memops};
pub use self::registered::{RegisterFlags, Registered, RegisteredRef};
pub use self::resource::{
    AllocateFunction, AllocationCounts, DeallocateFunction, ExternalResource, FailureCallback, LeakTracker,
    LimitedResource, LiveAllocation, Managed, Pinned, ReclaimerGuard, Reclaiming, RecoveryStatistics, RecoveryStep,
    RecoveryStepStatistics, Resource, ResourceTable, Statistics, StreamOrdered, SyncAlloc,
};
#[cfg(feature = "diagnostics")]
pub use self::resource::{AllocationRecorder, SegmentChange};
#[cfg(feature = "caching")]
pub use self::resource::{Arena, CachingOptions, CachingResource, CachingStatistics};
#[cfg(feature = "diagnostics")]
pub use self::snapshot::Snapshot;
pub use self::staging::{Staging, StagingOptions};
#[cfg(feature = "textures")]
pub use self::surface::{Surface, SurfaceObject};
#[cfg(feature = "tensor-maps")]
pub use self::tensor_map::{
    Im2col, Im2colWide, Im2colWideMode, TensorAllocationClass, TensorDataType, TensorFill, TensorInterleave,
    TensorL2Promotion, TensorLayout, TensorMap, TensorRead, TensorSwizzle, TensorView, TensorViewMut, TensorWrite,
};
#[cfg(feature = "textures")]
pub use self::texture::{
    AddressMode, FilterMode, Pitch2d, Texture, TextureFlags, TextureObject, TextureOptions, TextureView,
};
pub use self::unified_buffer::{MemoryAdvice, RangeAttributes, UnifiedBuffer};
#[cfg(feature = "virtual-memory")]
pub use self::virtual_memory::{AddressRange, Mapping, PhysicalMemory};

pub mod unified {
    //! Many ranges of managed memory in one call.

    pub use crate::unified_buffer::{discard, discard_and_prefetch, prefetch};
}
