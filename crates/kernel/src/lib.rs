//! CUDA kernels in safe Rust.
//!
//! A kernel is a function with the attribute [`kernel`](macro@kernel). The build script compiles it
//! with the stable toolchain, and safe code launches it:
//!
//! ```
//! use curium_kernel::prelude::*;
//!
//! /// y = a * x + y
//! #[kernel]
//! pub fn saxpy(t: Thread, a: f32, x: &[f32], mut y: PerThread<f32>) {
//!     if let Some(y) = y.get(&t) {
//!         *y = a.mul_add(x[t.index()], *y);
//!     }
//! }
//! ```
//!
//! # The model
//!
//! **The block is the program.** A kernel whose first parameter is a [`Block`] is code of a whole
//! block: every value in it is the same in all threads, so all threads take the same branches, and
//! a barrier is reached by all of them. Code that differs between threads stands in closures
//! ([`Block::threads`]), which receive their [`Thread`]. Their results reach the code of the block
//! only as [`Registers`], which it cannot read.
//!
//! Memory that a block writes is either *owned in parts*, where each thread has `&mut` access to
//! its own elements, or *shared*, where all threads have `&` access. Only a barrier turns one into
//! the other ([`Synced::synced`]).
//!
//! Code of a warp ([`Block::warps`]) is the same model one level down: [`Warp`] instead of `Block`,
//! [`Lanes`] instead of `Registers`. A kernel whose first parameter is a [`Thread`] is
//! element-wise: it has no barriers. One level up are [`Grid`], the code of a cooperative grid, and
//! [`Cluster`], that of a cluster.
//!
//! | CUDA C++ | Rust |
//! |---|---|
//! | `threadIdx.x` | [`Thread::x`] |
//! | `blockIdx.x` | [`Block::index_x`] |
//! | `blockDim.x` | the type `Block<X, Y, Z>`, with the dimensions in the order of `dim3` |
//! | `blockIdx.x * blockDim.x + threadIdx.x` | [`Thread::index_in_grid`] |
//! | a grid-stride loop | [`Thread::grid_stride`] |
//! | `__shared__ float tile[256]` | a parameter `Shared<[f32; 256]>` |
//! | `extern __shared__ float tile[]` | a parameter `DynamicShared<f32>` |
//! | `__syncthreads()` before and after reads | [`Synced::synced`] |
//! | `__syncthreads()`, `__syncwarp()` between atomic accesses | [`Block::sync`], [`Warp::sync`] |
//! | `__shfl_sync`, `__ballot_sync`, `__reduce_add_sync` | [`Warp::shuffle`], [`Warp::ballot`], [`Warp::reduce`] |
//! | `atomicAdd(p, x)` | [`Atomic::fetch_add`] |
//! | `mma.sync` | [`Warp::mma_bf16`] |
//! | `#pragma unroll` | [`unroll!`] |
//! | `ldmatrix` | [`Fragments::load`] |
//! | `this_grid().sync()` | a parameter `Grid<Block<256>>`, and [`GridShared::synced`] |
//! | `this_cluster().sync()`, `map_shared_rank` | a parameter `Cluster<Block<256>, 2>`, and [`Shared::cluster_synced`](Shared#method.cluster_synced) |
//! | `cuda::barrier` | [`Barrier`] |
//! | `cp.async.bulk.tensor` | [`TmaRing::pipeline`], [`Barrier::load`], [`PerBlockTensor::store`] |
//! | `wgmma.mma_async` | [`TmaRing::multiply`], [`WarpGroup::multiply`] |
//! | `cp.async` | [`Shared::copy_during`](Shared#method.copy_during) |
//!
//! # Outputs
//!
//! A slice `&[T]` is memory that nobody writes during the launch. An output divides memory between
//! threads:
//!
//! | parameter | each of these | owns |
//! |---|---|---|
//! | [`PerThread<T>`](PerThread) | thread of the grid | an element |
//! | [`PerThreadChunk<T, N>`](PerThreadChunk) | thread of the grid | `N` adjacent elements |
//! | [`PerBlock<T>`](PerBlock) | block | an element |
//! | [`PerBlockChunk<T, N>`](PerBlockChunk) | block | `N` adjacent elements, usable like shared memory |
//! | [`PerBlockRow<T>`](PerBlockRow) | block | rows of a matrix, usable like shared memory |
//! | [`PerBlockTile<T, ROWS, COLUMNS>`](PerBlockTile) | block | a tile of a matrix |
//! | [`PerWarpChunk<T, N>`](PerWarpChunk) | warp | `N` adjacent elements |
//! | [`PerWarpTile<T, ROWS, COLUMNS>`](PerWarpTile) | warp | rows of a matrix |
//! | [`PerWarpPlaneTile<T, ROWS, COLUMNS, ACROSS>`](PerWarpPlaneTile) | warp | a tile of a matrix |
//! | [`PerWarpGroupTile<T, COLUMNS>`](PerWarpGroupTile) | warpgroup | a tile of a matrix, for accumulators |
//! | [`PerBlockTensor<Tile>`](PerBlockTensor) | block | a box of a matrix, to which a tile is copied |
//! | [`GridShared<T>`](GridShared) | thread of a cooperative grid | every n-th element; all read all of them between barriers |
//! | [`GridPerBlock<T>`](GridPerBlock) | block of a cooperative grid | an element; all read all of them between barriers |
//! | `&[Atomic<T>]` | | nothing: all threads access it atomically |
//!
//! # Soundness
//!
//! [`soundness`] lists the rules that make safe kernels free of data races, divergent barriers and
//! aliasing, each with its proof.
//!
//! # Features
//!
//! - `host`: on the host, `#[kernel]` also generates typed launchers, for `curium-driver` and
//!   `curium-memory`.

#![cfg_attr(any(target_arch = "nvptx64", not(feature = "host")), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    target_arch = "nvptx64",
    allow(
        improper_ctypes,
        reason = "the compiler of kernels defines the functions"
    )
)]

extern crate self as curium_kernel;

mod address;
mod atomic;
mod block;
mod blocks;
mod by_value;
mod cache;
mod cluster;
mod elements;
mod fp8;
mod fragment;
mod grid;
mod half;
mod halo;
#[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
pub mod host;
mod integer;
mod intrinsics;
mod launch;
mod math;
mod matrix;
mod mbarrier;
mod mma;
mod operand;
mod output;
#[cfg(target_arch = "nvptx64")]
mod panic;
mod parameter;
mod pipeline;
mod print;
mod random;
mod reduce;
mod registers;
mod ring;
mod scope;
mod shared;
mod small_float;
pub mod soundness;
mod synced;
mod table;
mod texture;
mod thread;
mod tile;
mod tma;
mod unroll;
mod vector;
mod warp;
mod warpgroup;

pub use bytemuck::AnyBitPattern;
pub use curium_macros::{KernelByValue as ByValue, kernel, ptx};

pub use crate::atomic::{
    Atomic, AtomicInteger, AtomicNumber, BlockScope, ClusterScope, DeviceScope, GridScope,
    MemoryScope, SystemScope,
};
pub use crate::block::Block;
pub use crate::blocks::{BlockOperand, BlockValues};
pub use crate::by_value::ByValue;
pub use crate::cache::{LoadPolicy, LoadWith, StorePolicy, StoreWith};
pub use crate::cluster::{AtLeastClusterScope, Cluster, ClusterType, ClusterView};
pub use crate::elements::Elements;
pub use crate::fp8::{E4m3, E4m3x2, E5m2, E5m2x2};
pub use crate::fragment::{FragmentTile, Fragments};
pub use crate::grid::{Grid, GridPerBlock, GridShared};
pub use crate::half::{Bf16, Bf16x2, F16, F16x2};
pub use crate::halo::{Border, HaloCells, HaloRow, HaloTile};
pub use crate::integer::{
    Divisor, MulHigh, add_saturating, dot4_i8, dot4_u8, extract_bits_i32, extract_bits_u32,
    find_nth_set, funnel_shift_left, funnel_shift_right, insert_bits, logic3, mul24_low_i32,
    mul24_low_u32, permute_bytes, sub_saturating, sum_abs_diff_i32, sum_abs_diff_u32,
};
pub use crate::math::{FastMath, Float, Rounded, Rounding};
pub use crate::matrix::Matrix;
pub use crate::mbarrier::{Arrived, Barrier, Mbarrier};
pub use crate::mma::{pack_bf16, pack_f16, unpack_bf16, unpack_f16};
pub use crate::operand::{LaneOperand, ThreadOperand, WarpOperand};
pub use crate::output::{
    BlockRow, PerBlock, PerBlockChunk, PerBlockRow, PerBlockTile, PerThread, PerThreadChunk,
    PerWarpChunk, PerWarpPlaneTile, PerWarpTile, Position, WarpChunk, WarpPlaneTile, WarpTile,
};
pub use crate::pipeline::{Slot, Stages};
pub use crate::print::print;
pub use crate::random::Philox;
pub use crate::reduce::{Scratch, Shuffle};
pub use crate::registers::Registers;
pub use crate::ring::RingSlot;
pub use crate::shared::{Counters, DynamicShared, Pairs, Shared, SharedType};
pub use crate::synced::Synced;
pub use crate::texture::{
    Component, Sample, Surface2D, Texture1D, Texture1DArray, Texture2D, Texture2DArray, Texture3D,
    TextureCube,
};
pub use crate::thread::{SingleThread, Thread};
pub use crate::tile::Tile;
pub use crate::tma::{
    BoxTile, GridConstant, LoadTarget, Loaded, PerBlockTensor, RingStage, SwizzledTile, TensorBox,
    TensorElement, TensorMap, TensorMapBytes, TensorTile, TmaRing,
};
pub use crate::vector::{F32x2, F32x4, F64x2, U32x2, U32x4};
pub use crate::warp::{Lane, Lanes, PerWarp, Warp};
pub use crate::warpgroup::{
    Accumulators, Columns, PerWarpGroupTile, Products, WarpGroup, WarpGroupFragments,
    WarpGroupOperand, Width,
};

/// Items that the macros use. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    /// Macros by paths that no macro of a user's crate can shadow.
    pub use core::primitive::usize;
    pub use core::{assert, compile_error, concat, env, include, include_str, stringify};

    #[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
    pub use crate::host::{
        Call, HostKernel, HostScope, is_same_table, launch, load_library, select_image,
    };
    pub use crate::intrinsics::only_on_the_device;
    pub use crate::launch::Launch;
    pub use crate::parameter::Parameter;
    pub use crate::scope::Scope;
    pub use crate::shared::{SharedStatic, StaticShared};
    pub use crate::table::KernelTable;
}

/// Code for the host, which `#[kernel]` generates.
#[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __host {
    ($($code:tt)*) => { $($code)* };
}

/// Code for the host, which `#[kernel]` generates.
#[cfg(not(all(feature = "host", not(target_arch = "nvptx64"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __host {
    ($($code:tt)*) => {};
}

/// Implements the driver's `ByValue` for a type with that of this crate, which has all of its
/// requirements.
#[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __driver_by_value {
    ($name:ident) => {
        // SAFETY: the type is `ByValue` of this crate.
        #[automatically_derived]
        unsafe impl $crate::host::ByValue for $name {
            const SIZE_OF_FIELDS: $crate::__private::usize =
                <$name as $crate::ByValue>::SIZE_OF_FIELDS;
        }
    };
}

/// Implements nothing without the driver.
#[cfg(not(all(feature = "host", not(target_arch = "nvptx64"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __driver_by_value {
    ($name:ident) => {};
}

/// Reports that kernels cannot be launched without the feature.
#[cfg(not(any(feature = "host", target_arch = "nvptx64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels {
    ($($code:tt)*) => {
        $crate::__private::compile_error!(
            "kernels are launched with the feature `host` of `curium-kernel`: `cargo add curium-kernel --features host`"
        );
    };
}

/// Declares the struct `Kernels`, with a field for each kernel of a module that the build script
/// compiled.
///
/// `include_kernels!("kernels")` declares the kernels of the module `kernels`, which is in the
/// scope of the macro. `Kernels` is public, and `Kernels::load` loads the code on a device.
///
/// It does not compile if
///
/// - the feature `host` of this crate is off;
/// - the package has no `build.rs`, or its `main` does not call
///   `curium_kernel_build::Kernels::module(FILE, NAME).compile()` for the module;
/// - the kernels do not compile for the device.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        $crate::__private::include!($crate::__private::env!(
            $crate::__private::concat!("CURIUM_KERNELS_FILE_", $name),
            $crate::__private::concat!(
                "no build script compiles the module `",
                $name,
                "`: `main` of build.rs needs `curium_kernel_build::Kernels::module(\"src/main.rs\", \"",
                $name,
                "\").compile();`, with the file that contains the module"
            )
        ));
    };
}

/// Everything that most kernels need.
pub mod prelude {
    pub use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

    #[doc(no_inline)]
    pub use crate::{
        Accumulators, AnyBitPattern, Atomic, Block, BlockScope, BlockValues, BoxTile, ByValue,
        Cluster, ClusterScope, Counters, DeviceScope, DynamicShared, Elements, F32x2, F32x4, F64x2,
        FastMath, Float, Grid, GridPerBlock, GridShared, Lane, Lanes, Matrix, Mbarrier, PerBlock,
        PerBlockChunk, PerBlockRow, PerBlockTensor, PerBlockTile, PerThread, PerThreadChunk,
        PerWarp, PerWarpChunk, PerWarpGroupTile, PerWarpPlaneTile, PerWarpTile, Position,
        Registers, Scratch, Shared, SwizzledTile, Synced, SystemScope, TensorMap, Thread, Tile,
        TmaRing, U32x2, U32x4, Warp, WarpGroup, WarpGroupFragments, kernel, ptx, unroll,
    };
}
