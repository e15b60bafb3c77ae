//! CUDA device and pinned memory: stream-ordered buffers that safe code may use on any stream, and copies.
//!
//! - [`DeviceBuffer`] is memory of the device, allocated and freed in the order of a stream. Who uses it on which stream is known
//!   (see [`curium_driver::hazard`]), so that it may be passed to a kernel or copied on any stream without waits by hand: a use on
//!   the buffer's own stream costs no driver call, readers do not wait for each other, and a writer or the end of the buffer waits
//!   for all of them, on the device.
//! - [`DeviceSlice`] and [`DeviceSliceMut`] are views of such memory: kernels and copies take them like buffers.
//! - [`PinnedBuffer`] is memory of the host that the device copies at full speed, [`MappedBuffer`] what kernels use in place, and
//!   [`UnifiedBuffer`] what migrates between host and devices. Slices of the host are lent by them once the device is done.
//! - [`copy`] has copies in every form, and says which to take.
//! - [`DeviceVec`] is memory of the device that grows in place: its elements never move.
//! - [`virtual_memory`] reserves addresses and maps memory behind them.
//! - A [`Resource`] is where device memory comes from: [`StreamOrdered`] is the device's current pool, [`SyncAlloc`] is memory of no
//!   pool.
//!
//! Lengths are in elements, and sizes called `bytes` in bytes. What may be copied is bounded with `bytemuck`'s traits:
//! [`NoUninit`] for elements that go to the device, and [`AnyBitPattern`] for those that come back, since a kernel may leave any
//! bytes behind.
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
//! target.copy_from_buffer(&source)?;
//! assert_eq!(target.to_vec()?, [1.0, 2.0, 3.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::missing_inline_in_public_items)]

mod access;
#[cfg(feature = "diagnostics")]
mod allocation_log;
#[cfg(feature = "textures")]
mod array;
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
mod foreign_buffer;
mod grid;
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
mod unified_box;
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
pub use self::foreign_buffer::ForeignBuffer;
pub use self::grid::{Extent, Grid, GridMut, HostGrid, HostGridMut, Pitch};
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
pub use self::pointer_info::{MemoryKind, PointerInfo, PointerSharing, address_range, set_synchronous_copies};
pub use self::registered::{RegisterFlags, Registered, RegisteredRef};
pub use self::resource::{
    AllocateFunction, AllocationCounts, DeallocateFunction, FailureCallback, ForeignResource, LeakTracker,
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
    Im2col, Im2colWide, TensorAllocationClass, TensorDataType, TensorFill, TensorInterleave, TensorL2Promotion,
    TensorLayout, TensorMap, TensorRead, TensorSwizzle, TensorView, TensorViewMut, TensorWrite, WideMode,
};
#[cfg(feature = "textures")]
pub use self::texture::{
    AddressMode, FilterMode, Texture, TextureFlags, TextureObject, TextureOptions, TexturePlane, TextureView,
};
pub use self::unified_box::UnifiedBox;
pub use self::unified_buffer::{MemoryAdvice, RangeAttributes, UnifiedBuffer};
#[cfg(feature = "virtual-memory")]
pub use self::virtual_memory::{AddressRange, Mapping, PhysicalMemory};

pub mod unified {
    //! Many ranges of managed memory in one call.

    pub use crate::unified_buffer::{discard, discard_and_prefetch, prefetch};
}
