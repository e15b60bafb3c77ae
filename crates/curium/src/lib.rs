//! The CUDA foundation for Rust.
//!
//! This crate re-exports the layers, which can also be used separately:
//!
//! | module | crate | contents |
//! |---|---|---|
//! | [`sys`] | `curium-sys` | the C ABI, the table of functions, the loader |
//! | [`driver`] | `curium-driver` | devices, contexts, streams, events, modules, libraries, kernels, graphs |
//! | [`memory`] | `curium-memory` | device and pinned buffers, copies, memory resources, arrays and textures |
//! | `driver`, `memory` (feature `interop`) | `curium-interop` | OpenGL, EGL, Vulkan and Direct3D, other processes |
//! | `driver`, `memory` (feature `diagnostics`) | `curium-diagnostics` | timelines, core dumps, checkpoints, allocation logs, snapshots |
//! | `nvrtc` (feature) | `curium-nvrtc` | CUDA C++ compiled and linked at run time |
//! | `blas` (feature `blas`) | `curium-blas` | linear algebra on the device with cuBLAS and cuBLASLt |
//! | `rand` (feature `rand`) | `curium-rand` | random numbers on the device with cuRAND |
//! | `fft` (feature `fft`) | `curium-fft` | Fourier transforms on the device with cuFFT |
//! | `nccl` (feature `nccl`) | `curium-nccl` | several GPUs, processes and machines with NCCL |
//! | `ByValue` (feature `derive`) | `curium-macros` | a derive macro for structs that are passed to kernels by value |
//!
//! Kernels in safe Rust are written with the crate `curium-kernel`, and compiled by
//! `curium-kernel-build` in the build script. This crate does not re-export them: `curium-kernel`
//! is also compiled for the GPU, so a package with kernels depends on it.
//!
//! No CUDA installation is needed to compile or start a program: the driver is loaded by
//! [`Device::first`](driver::Device::first) or [`Driver::load`](driver::Driver::load). One program
//! works with every driver from CUDA 11.8 on.
//!
//! # The book
//!
//! The chapters are in the folder `docs/book/src` of the repository, and `mdbook build docs/book`
//! renders them. `quick-start.md` creates a project, `testing.md` tests it without a GPU, and
//! `from-cudarc.md` and its neighbors list the equivalents of other crates' calls.
//!
//! # Features
//!
//! Each feature adds a crate, except `tracing` and `half`. The feature `full` is on by default.
//!
//! - `full`: `diagnostics` and `interop`.
//! - `diagnostics`: timelines, NVTX ranges, profiler ranges, core dumps, checkpoints, allocation
//!   logs and memory snapshots.
//! - `tracing`: spans of `tracing` in timelines, with `diagnostics`.
//! - `interop`: OpenGL, EGL, Vulkan and Direct3D interoperability, and events and memory shared
//!   between processes.
//! - `derive`: `#[derive(ByValue)]` for structs that are passed to kernels by value.
//! - `half`: `half::f16` and `half::bf16` in buffers, arrays and textures, and as kernel
//!   parameters.
//! - `nvrtc`: CUDA C++ compiled and linked at run time, as `curium::nvrtc`.
//! - `blas`: linear algebra on the device with cuBLAS, as `curium::blas`.
//! - `rand`: random numbers on the device with cuRAND, as `curium::rand`.
//! - `fft`: Fourier transforms on the device with cuFFT, as `curium::fft`.
//! - `nccl`: several GPUs, processes and machines with NCCL, as `curium::nccl`.
//!
//! # Example
//!
//! A kernel in Rust and its launch. The build script compiles the module, and `Kernels` is a struct
//! with its kernels:
//!
//! ```ignore
//! use curium::prelude::*;
//!
//! mod kernels {
//!     use curium_kernel::prelude::*;
//!
//!     /// y = a * x + y
//!     #[kernel]
//!     pub fn saxpy(t: Thread, a: f32, x: &[f32], mut y: PerThread<f32>) {
//!         if let Some(y) = y.get(&t) {
//!             *y += a * x[t.index()];
//!         }
//!     }
//! }
//! curium_kernel::include_kernels!("kernels");
//!
//! /// Returns 2 * x + y.
//! fn saxpy(device: &Device) -> curium::Result<Vec<f32>> {
//!     let stream = device.primary_context()?.stream()?;
//!     let kernels = Kernels::load(device)?;
//!     let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
//!     let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
//!     kernels.saxpy.launch(&stream, y.len(), 2.0, &x, &mut y)?; // safe: borrows and checks its arguments
//!     y.to_vec() // waits for the kernel
//! }
//! ```
//!
//! [`kernels!`] declares kernels in PTX and CUDA C++, whose code is embedded in the program or,
//! with the feature `nvrtc`, compiled at run time.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;

#[cfg(feature = "blas")]
pub use curium_blas as blas;
#[cfg(not(feature = "nvrtc"))]
pub use curium_driver::kernels;
pub use curium_driver::{CudaError, Error, Result, sys};
#[cfg(feature = "fft")]
pub use curium_fft as fft;
#[cfg(feature = "derive")]
pub use curium_macros::ByValue;
pub use curium_memory::bytemuck;
#[cfg(feature = "nccl")]
pub use curium_nccl as nccl;
#[cfg(feature = "nvrtc")]
pub use curium_nvrtc as nvrtc;
#[cfg(feature = "nvrtc")]
pub use curium_nvrtc::kernels;
#[cfg(feature = "rand")]
pub use curium_rand as rand;

pub use self::error::find_error;

pub mod driver {
    //! The driver layer: `curium-driver`, with the features `diagnostics` and `interop` also what
    //! extends it in `curium-diagnostics` and `curium-interop`.

    #[cfg(feature = "tracing")]
    pub use curium_diagnostics::TraceLayer;
    #[cfg(feature = "diagnostics")]
    pub use curium_diagnostics::{
        CheckpointProcess, Checkpointed, Cupti, Locked, NvtxRange, ProcessState, Profiling,
        Running, Timeline, Trace, TraceActivities, TraceAggregate, TraceError, TraceItem,
        TraceItemKind, TraceOptions, TraceRow, nvtx_mark,
    };
    #[cfg(all(unix, feature = "diagnostics"))]
    pub use curium_diagnostics::{CoreDump, CoreDumpFlags, CoreDumpListener, CoreDumpNotice};
    pub use curium_driver::*;
    #[cfg(feature = "interop")]
    pub use curium_interop::{
        EglConsumer, EglFrame, EglLocation, EglProducer, GlDevices, GraphicsAccess, GraphicsFlags,
        GraphicsResource, IpcEventHandle, MappedGraphics, event_from_egl_sync,
    };
}

pub mod memory {
    //! The memory layer: `curium-memory`, with the features `diagnostics` and `interop` also what
    //! extends it in `curium-diagnostics` and `curium-interop`.

    #[cfg(feature = "interop")]
    pub use curium_interop::{IpcMemory, IpcMemoryHandle, external};
    pub use curium_memory::*;

    #[cfg(feature = "diagnostics")]
    pub mod diagnostics {
        //! Allocation logs, their replay, and memory snapshots.
        //!
        //! - [`AllocationRecorder`] is a [`Resource`](crate::memory::Resource) that records every
        //!   allocation.
        //! - [`AllocationLog`] parses, analyzes and replays such a log.
        //! - [`Snapshot`] writes a file for PyTorch's memory viewer.

        pub use curium_diagnostics::{
            AllocationEvent, AllocationLog, AllocationRecorder, CacheSample, CallSite, EventKind,
            ParseLogError, Replay, Snapshot, UsageSample,
        };
    }
}

pub mod prelude {
    //! The most commonly used items.

    pub use curium_driver::{
        ArgumentList, ByValue, Context, CudaError, Device, DevicePointer, Driver, Error, Event,
        EventFlags, Graph, Kernel, LaunchConfig, Library, Module, SafeKernel, Stream, StreamFlags,
        StreamOptions,
    };
    #[cfg(feature = "derive")]
    pub use curium_macros::ByValue;
    pub use curium_memory::{
        DeviceBuffer, DeviceSlice, PinnedBuffer, PinnedFlags, UnifiedBuffer, copy,
    };
    #[cfg(feature = "nvrtc")]
    pub use curium_nvrtc::Compile;
}
