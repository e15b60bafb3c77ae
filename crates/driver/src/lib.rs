//! The CUDA driver API: devices, contexts, streams, events, modules, kernels and graphs.
//!
//! [`Driver`] is the entry point. The CUDA driver library is loaded at run time: neither compiling nor starting a
//! program requires CUDA. One program works with every driver from CUDA 11.8 on. A call of a function that the driver
//! lacks returns [`Error::Missing`].
//!
//! # Map
//!
//! | Task | Items |
//! |---|---|
//! | Load the driver | [`Driver::load`], [`Driver::from_provider`] |
//! | Select a device and query it | [`Driver::device`], [`Device::attribute`], [`DeviceAttribute`], [`ComputeCapability`] |
//! | Create a context | [`Device::primary_context`], [`Device::create_context`], [`ContextOptions`] |
//! | Order work | [`Stream`], [`Event`], [`Stream::wait_event`], [`StreamPool`], [`EventPool`] |
//! | Wait on the host, or `await` | [`Stream::synchronize`], [`Event::synchronize`], [`Stream::completion`] |
//! | Run host code in stream order | [`Stream::launch_host_function`] |
//! | Load code | [`Library`], [`Module`], [`Image`], [`JitOptions`] |
//! | Link code and cache it on disk | [`Linker`], [`DiskCache`] |
//! | Declare and launch kernels | [`kernels!`], [`Kernel`], [`SafeKernel`], [`LaunchConfig`], [`LaunchAttributes`] |
//! | Choose a block size | [`Kernel::suggested_config`], [`Kernel::suggested_size`] |
//! | Read and write `__device__` variables | [`Global`] |
//! | Measure time | [`Event::elapsed_since`] |
//! | Connect devices | [`Context::enable_peer_access`], [`Driver::topology`], [`PeerLink`] |
//! | Handle errors | [`Error`], [`CudaError`], [`ErrorClass`], [`Returned`], [`set_drop_observer`] |
//! | Observe driver calls | [`observe_calls`], [`CallSpans`], [`LogListener`] |
//! | Call a function that has no wrapper | [`call!`], [`sys`], `as_raw` and `from_raw` of each object |
//! | Build a crate on this one | [`extend`], [`hazard`] |
//!
//! With features: `Graph`, `GraphCache` (`graphs`); `GreenContextOptions` (`green-contexts`); `GraphicsResource`,
//! `IpcEventHandle` (`interop`); `CoreDump`, `CheckpointProcess`, `Trace`, `NvtxRange` (`diagnostics`). Device memory
//! and copies are in the crate `curium-memory`.
//!
//! # The book
//!
//! The chapters of the book are in the folder `docs/book/src` of the repository: `cuda-cpp.md` explains modules and
//! libraries, `graphs.md` capture and updates, `waits.md` the waits that hazard tracking inserts.
//!
//! # Contracts
//!
//! - **Ownership.** An event, a stream or a module keeps its context alive, and a context keeps its driver alive.
//!   Handles are `Send`, and all except graphs and executable graphs are `Sync`.
//! - **Current context.** No call changes the calling thread's current context, on success, error or panic. Functions
//!   whose purpose is to change it are the exception.
//! - **Asynchronous work.** An operation returns when its work is enqueued, unless it is documented to wait. A later
//!   call reports an error of that work. Synchronizing calls always wait, even when they report an earlier error.
//! - **Drop.** Dropping never panics. A failure is reported to `tracing` and to [`set_drop_observer`]. The method
//!   `close` destroys a handle and returns the error. Nothing is called once the process is exiting.
//! - **Fork.** In the child of a process that initialized a driver, every operation returns [`Error::Fork`], and
//!   dropping does nothing. Start a new program instead, or fork first.
//! - **Errors** contain the driver function, its result code, its operands and a hint. An error for which
//!   [`Error::is_sticky`] returns `true` ends all use of the device in this process.
//!
//! Launching a kernel is `unsafe`, because the compiler cannot check what the kernel does with its arguments.
//! [`Kernel::declare_safe`] declares a kernel safe to launch from safe code.
//!
//! # Features
//!
//! None is on by default. The crate `curium` enables all of them.
//!
//! - `diagnostics`: core dumps, checkpoints, timelines for trace viewers, and NVTX ranges.
//! - `graphs`: CUDA graphs.
//! - `green-contexts`: contexts that use a subset of a device's multiprocessors and work queues.
//! - `half`: `half::f16` and `half::bf16` as kernel parameters.
//! - `interop`: OpenGL, EGL and VDPAU resources, and interprocess events.
//!
//! # Example
//!
//! ```
//! use curium_driver::{Driver, LaunchConfig, Library};
//!
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
//! # /*
//! let driver = Driver::load()?;
//! # */
//! let device = driver.device(0)?;
//! let context = device.primary_context()?;
//! let stream = context.stream()?;
//!
//! let library = Library::from_ptx(&device, ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }")?;
//! let nothing = library.kernel::<()>("nothing")?;
//! // SAFETY: the kernel accesses no memory.
//! unsafe { nothing.launch(&stream, LaunchConfig::new(1, 32), ()) }?;
//! stream.synchronize()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "diagnostics",
        feature = "graphs",
        feature = "green-contexts",
        feature = "interop"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "links to items of other features; they are checked with all features"
    )
)]

mod base;
#[cfg(feature = "diagnostics")]
mod checkpoint;
mod completion;
mod context;
#[cfg(all(unix, feature = "diagnostics"))]
mod core_dump;
mod device;
#[cfg(feature = "green-contexts")]
mod device_resource;
mod disk_cache;
mod driver;
mod event;
pub mod extend;
mod global;
#[cfg(feature = "graphs")]
mod graph;
#[cfg(feature = "interop")]
mod graphics;
#[cfg(feature = "green-contexts")]
mod green_context;
pub mod hazard;
mod host_function;
mod image;
mod jit;
mod kernel;
mod kernels_macro;
mod library;
mod linker;
mod log;
mod module;
#[cfg(feature = "diagnostics")]
mod nvtx;
mod pointer;
mod profiler;
mod stream;
#[cfg(feature = "diagnostics")]
mod trace;

pub use curium_sys as sys;
pub use curium_sys::{CudaVersion, Function, PtxVersion};

#[doc(hidden)]
pub use self::base::call::RawHandle;
pub use self::base::call_spans::CallSpans;
pub use self::base::error::{
    ArgumentError, CallError, CudaError, Error, ErrorClass, ForkError, LibraryStatus,
    OutOfMemoryError, PanicError, RecoveryAttempt, Result, Returned,
};
#[doc(hidden)]
pub use self::base::hook::Observation;
pub use self::base::hook::{Call, CallObserver, CallObserverGuard, observe_calls};
pub use self::base::leak::LeakedMemory;
pub use self::base::release::{DropObserver, set_drop_observer};
#[cfg(feature = "diagnostics")]
pub use self::checkpoint::{CheckpointProcess, Checkpointed, Locked, ProcessState, Running};
pub use self::completion::Completion;
pub use self::context::handle_pool::{HandlePool, Poolable, PooledHandle};
pub use self::context::{
    CacheConfig, Context, ContextFlags, ContextKind, ContextOptions, GraphicsQueue, Limit,
    MemoryInfo, PrimaryState, PriorityRange, RawContext, RdmaScope, SharedMemoryConfig,
};
#[cfg(all(unix, feature = "diagnostics"))]
pub use self::core_dump::{CoreDump, CoreDumpFlags, CoreDumpListener, CoreDumpNotice};
pub use self::device::{
    AtomicForms, AtomicOperation, Clique, CliqueKind, Topology, TopologyDevice,
};
pub use self::device::{
    AttributeKey, ComputeCapability, ComputeMode, DecompressAlgorithms, Device, DeviceAttribute,
    EndpointHandleTypes, Luid, MemoryHandleTypes, Notification, NotificationListener, NumaConfig,
    PeerLink, RdmaFlushOptions, RdmaWritesOrdering,
};
#[cfg(feature = "green-contexts")]
pub use self::device_resource::{
    Multiprocessors, Partition, Partitioning, SplitFlags, WorkQueue, WorkQueueConfig,
    WorkQueueScope,
};
pub use self::disk_cache::{CacheKey, CacheUsage, DiskCache};
pub use self::driver::Driver;
#[cfg(feature = "interop")]
pub use self::event::IpcEventHandle;
pub use self::event::{Event, EventFlags, EventPool, PooledEvent, RecordFlags};
pub use self::global::Global;
#[cfg(feature = "graphs")]
pub use self::graph::{
    AllocationNode, CaptureScope, ChildNode, Condition, ConditionalKind, ConditionalNode,
    CopyMemory, CopyNode, CopyPlace, DotFlags, Edge, EdgeData, EdgeKind, EventRecordNode,
    EventWaitNode, FillNode, FillValue, Graph, GraphCache, GraphCacheCounts, GraphCacheOutcome,
    GraphCopy, GraphExec, GraphFill, GraphMemory, GraphSemaphore, GraphUpdate, HostNode,
    InstantiateFlags, InstantiateOptions, KernelNode, MemoryOperationNode, Node, NodeKind,
    SemaphoreOwner, SemaphoreSignalNode, SemaphoreWaitNode, TypedNode, UpdateFailure,
    UpdateFailureReason, UserObject,
};
#[cfg(feature = "interop")]
pub use self::graphics::{
    EglConsumer, EglFrame, EglLocation, EglProducer, GlDevices, GraphicsAccess, GraphicsFlags,
    GraphicsResource, MappedGraphics,
};
#[cfg(feature = "green-contexts")]
pub use self::green_context::{GreenContextFlags, GreenContextOptions};
pub use self::host_function::{HostFunction, HostFunctionWait};
pub use self::image::{Image, ImageKind, KernelParameter};
pub use self::jit::{
    HostSymbol, JitCacheMode, JitFallback, JitOptions, JitReport, JitTarget, LtoOptions,
};
pub use self::kernel::launch::{
    ClusterPortability, Dimensions, EventTrigger, LaunchAttributes, LaunchConfig,
};
pub use self::kernel::signature::{Argument, Arguments, ByValue, Parameter, Signature};
#[cfg(feature = "graphs")]
pub use self::kernel::signature::{NodeArgument, NodeArguments};
pub use self::kernel::{
    ArgumentList, Carveout, ClusterScheduling, Kernel, LoadState, OccupancyFlags, SafeKernel,
    SharedMemoryMode, SuggestedSize, Untyped,
};
pub use self::library::Library;
pub use self::linker::{LinkInput, LinkedImage, Linker};
pub use self::log::{LogLevel, LogListener, LogReader};
pub use self::module::{LoadingMode, Module};
#[cfg(feature = "diagnostics")]
pub use self::nvtx::{NvtxRange, nvtx_mark};
pub use self::pointer::DevicePointer;
pub use self::profiler::Profiling;
pub use self::stream::{
    AccessPolicyWindow, AccessProperty, AsRawStream, AttachMode, MemoryOperation, MemorySyncDomain,
    MemorySyncDomainMap, PooledStream, Reduction, Stream, StreamFlags, StreamOptions, StreamPool,
    SynchronizationPolicy, WaitCondition,
};
#[cfg(feature = "diagnostics")]
pub use self::trace::Trace;
