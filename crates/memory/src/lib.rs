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
//! None is on by default. The crate `curium` enables all of them.
//!
//! - `diagnostics`: allocation logs that can be replayed, and memory snapshots for viewers.
//! - `graphs`: external semaphores as nodes of CUDA graphs.
//! - `half`: `half::f16` and `half::bf16` in buffers, arrays and textures, and as parameters of kernels.
//! - `interop`: external memory and semaphores, such as those of Vulkan, and memory that processes share.
//! - `textures`: CUDA arrays, textures, surfaces and tensor maps.
//! - `virtual-memory`: virtual memory management, growable vectors and multicast objects.
//!
//! # Example
//!
//! ```
//! use curium_driver::Driver;
//! use curium_memory::DeviceBuffer;
//!
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
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
mod cache;
mod capture_advice;
pub mod copy;
mod decompress;
mod device_box;
mod device_buffer;
mod device_slice;
#[cfg(feature = "virtual-memory")]
mod device_vec;
#[cfg(target_os = "linux")]
mod dma_buf;
#[cfg(feature = "interop")]
pub mod external;
mod fill;
mod foreign_buffer;
mod grid;
mod host_view;
#[cfg(feature = "interop")]
mod ipc_memory;
mod location;
mod mapped_buffer;
mod memory_pool;
#[cfg(feature = "virtual-memory")]
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
#[cfg(feature = "textures")]
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
    Array, ArrayFlags, ArrayFormat, ArrayKind, ArrayMemoryRequirements, ArrayRegion, ArrayShape, MipmappedArray,
    SparseProperties, Texel, TileMapping, TileMemory,
};
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
#[cfg(feature = "interop")]
pub use self::ipc_memory::{IpcMemory, IpcMemoryHandle};
pub use self::location::MemoryLocation;
pub use self::mapped_buffer::MappedBuffer;
pub use self::memory_pool::{MemoryPool, PoolKind, PoolOptions, PoolStatistics, PoolUsage};
#[cfg(feature = "interop")]
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
pub use self::resource::{Arena, CachingOptions, CachingResource, CachingStatistics};
#[cfg(feature = "diagnostics")]
pub use self::snapshot::Snapshot;
pub use self::staging::{Staging, StagingOptions};
#[cfg(feature = "textures")]
pub use self::surface::{Surface, SurfaceObject};
#[cfg(feature = "textures")]
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
