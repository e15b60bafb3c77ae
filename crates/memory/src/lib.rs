//! Memory for CUDA: device, pinned, mapped and managed buffers, copies, and memory resources.
//!
//! | Task | Type |
//! |---|---|
//! | Device memory, allocated and freed in stream order | [`DeviceBuffer`], [`DeviceBox`], [`PitchedBuffer`] |
//! | A device vector that grows without moving | [`DeviceVec`] |
//! | The elements of any buffer, or a part of them | [`DeviceSlice`], [`DeviceView`], [`DeviceViewMut`], [`PitchedSlice`] |
//! | Host memory that is copied at full speed | [`PinnedBuffer`], [`Registered`] |
//! | Memory that host and devices both access | [`MappedBuffer`], [`UnifiedBuffer`] |
//! | Memory that other code owns | [`BorrowedBuffer`] |
//! | Memory that a handle of a CUDA library uses | [`LibraryMemory`] |
//! | Copies: blocking, asynchronous, scoped, batched | methods of [`DeviceSlice`], [`copy`] |
//! | The source of device memory, limits, statistics | [`Resource`] and its implementations |
//! | Resources across a C interface | [`c_resource`] |
//! | Reserving addresses and mapping memory | [`virtual_memory`] |
//! | Textures, surfaces and tensor maps | [`Texture`], [`Surface`], [`TensorMap`] |
//! | Build a crate on this one | [`extend`] |
//!
//! As `Vec<T>` dereferences to `[T]`, all buffers of elements dereference to [`DeviceSlice`], which
//! has the copies, fills and parts. Only [`PitchedBuffer`], which has rows, does not. Functions
//! take `&DeviceSlice<T>` to read and `&mut DeviceSlice<T>` to write. Operations use the stream of
//! the buffer; `buffer.on(&stream)` and `buffer.on_mut(&stream)` choose another one.
//!
//! Buffers [track their accesses](curium_driver::hazard) across streams, so safe code may use a
//! buffer on any stream. An access on the buffer's own stream costs no driver call, and reads on
//! different streams run concurrently. Writes, and the deallocation, wait for conflicting accesses
//! on the device, not on the host.
//!
//! # The book
//!
//! The chapters of the book are in the folder `docs/book/src` of the repository: `memory.md`
//! compares the kinds of memory and the platforms, `waits.md` explains the waits that hazard
//! tracking inserts.
//!
//! # Element types
//!
//! Lengths are in elements; sizes are in bytes and have `bytes` in their name. The bounds are
//! `bytemuck`'s traits, under the same names (the crate is re-exported as [`bytemuck`]):
//!
//! - [`NoUninit`] for copies to the device: types without padding;
//! - [`AnyBitPattern`] for copies to the host, host views and uninitialized buffers: types that are
//!   valid for every bit pattern, because a kernel may write any bytes;
//! - [`Zeroable`] for zeroed buffers.
//!
//! `bool`, `char`, enums and `NonZero` are not valid for every bit pattern. Such elements can be
//! copied to the device, but not back. Read them as integers ([`DeviceSlice::cast`]) and convert
//! them with `bytemuck::checked`, which reports invalid values.
//!
//! # Constructors
//!
//! Arguments have a fixed order: the stream or the context, then the length or the contents, then
//! flags and options. A constructor with the suffix `_in` takes a [`Resource`] as its last
//! argument, similar to `Vec::new_in` in `std`.
//!
//! # Other crates
//!
//! Memory of Vulkan and other graphics APIs, and memory of other processes, are in the crate
//! `curium-interop`. Logs and replays of allocations, and memory snapshots for viewers, are in the
//! crate `curium-diagnostics`.
//!
//! # Features
//!
//! - `half`, which is off by default: `half::f16` and `half::bf16` in buffers, arrays and textures,
//!   and as kernel parameters.
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
//! target.copy_from_device(&source)?;
//! assert_eq!(target.to_vec()?, [1.0, 2.0, 3.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
mod access;
mod array;
mod borrowed_buffer;
mod cache;
mod capture_advice;
pub mod copy;
mod decompress;
mod device_box;
mod device_buffer;
mod device_slice;
mod device_vec;
#[cfg(target_os = "linux")]
mod dma_buf;
mod element;
mod enqueue;
pub mod extend;
mod fill;
mod host_attachment;
mod host_view;
mod library_memory;
mod location;
mod mapped_buffer;
mod memory_pool;
pub mod multicast;
mod operand;
mod peer_access;
mod pinned_buffer;
mod pitched_buffer;
mod pitched_slice;
mod pointer_info;
mod registered;
mod resource;
#[cfg(windows)]
mod security;
mod size;
mod staging;
mod surface;
mod tensor_map;
mod texture;
mod tracked;
mod transfer;
mod unified_buffer;
pub mod virtual_memory;
mod wait;

pub use bytemuck;

pub use self::access::MemoryAccess;
pub use self::array::{
    Array, ArrayFlags, ArrayFormat, ArrayKind, ArrayMemoryRequirements, ArrayRegion, ArrayShape,
    MipmappedArray, SparseProperties, Texel, TileMapping, TileMemory,
};
pub use self::borrowed_buffer::BorrowedBuffer;
pub use self::decompress::{Compression, DecompressBatch};
pub use self::device_box::DeviceBox;
pub use self::device_buffer::DeviceBuffer;
pub use self::device_slice::{
    DeviceChunks, DeviceChunksMut, DeviceSlice, DeviceView, DeviceViewMut,
};
pub use self::device_vec::DeviceVec;
#[cfg(target_os = "linux")]
pub use self::dma_buf::export_dma_buf;
pub use self::element::{AnyBitPattern, NoUninit, Zeroable};
pub use self::host_view::{HostView, HostViewMut};
pub use self::library_memory::LibraryMemory;
pub use self::location::MemoryLocation;
pub use self::mapped_buffer::MappedBuffer;
pub use self::memory_pool::{
    MemoryPool, PoolKind, PoolMemory, PoolOptions, PoolPointerHandle, PoolStatistics, PoolUsage,
};
pub use self::pinned_buffer::{PinnedBuffer, PinnedFlags};
pub use self::pitched_buffer::PitchedBuffer;
pub use self::pitched_slice::{
    Extent, HostPitchedSlice, HostPitchedSliceMut, Pitch, PitchedSlice, PitchedSliceMut,
};
pub use self::pointer_info::{
    MemoryType, PointerInfo, PointerSharing, address_range, set_sync_memops,
};
pub use self::registered::{RegisterFlags, Registered, RegisteredRef};
pub use self::resource::arena::Arena;
pub use self::resource::caching::{CachingOptions, CachingResource, CachingStatistics};
pub use self::resource::failure_callback::FailureCallback;
pub use self::resource::leak_tracker::{LeakTracker, LiveAllocation};
pub use self::resource::limited::LimitedResource;
pub use self::resource::managed::Managed;
pub use self::resource::pinned::Pinned;
pub use self::resource::pinned_cache::{PinnedCache, PinnedCacheOptions};
pub use self::resource::reclaiming::{
    ReclaimerGuard, Reclaiming, RecoveryStatistics, RecoveryStep, RecoveryStepStatistics,
};
pub use self::resource::statistics::{AllocationCounts, Statistics};
pub use self::resource::sync_alloc::SyncAlloc;
pub use self::resource::{Resource, SegmentChange, SegmentChangeKind, StreamOrdered};
pub use self::staging::{Staging, StagingOptions};
pub use self::surface::{Surface, SurfaceObject};
pub use self::tensor_map::{
    Im2col, Im2colWide, Im2colWideMode, TensorAllocationClass, TensorDataType, TensorFill,
    TensorInterleave, TensorL2Promotion, TensorLayout, TensorMap, TensorRead, TensorSwizzle,
    TensorView, TensorViewMut, TensorWrite,
};
pub use self::texture::{
    AddressMode, FilterMode, Pitch2d, Texture, TextureFlags, TextureObject, TextureOptions,
    TextureShape, TextureView,
};
pub use self::unified_buffer::{MemoryAdvice, RangeAttributes, UnifiedBuffer};
pub use self::virtual_memory::{AddressRange, Mapping, PhysicalMemory};

pub mod c_resource {
    //! Resources across a C interface: exports a [`Resource`](crate::Resource) to C, or wraps one
    //! that C implements.

    pub use crate::resource::table::{
        AllocateFunction, DeallocateFunction, ExternalResource, ResourceTable,
    };
}

pub mod unified {
    //! Batched operations on ranges of managed memory.

    pub use crate::unified_buffer::{discard, discard_and_prefetch, prefetch};
}
