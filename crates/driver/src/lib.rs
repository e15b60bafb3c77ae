//! CUDA devices, contexts, streams, events, modules, libraries and typed kernels over the driver API.
//!
//! Everything begins with a [`Driver`], loaded when the program runs: neither compiling nor starting a program needs CUDA, and
//! one program works with every driver from CUDA 11.8 on. A function that the driver lacks is a typed error.
//!
//! # Contracts
//!
//! - **Handles own their parents.** An event, a stream or a module keeps its context alive, and the context its driver. A handle is
//!   valid for as long as it exists, and all of them may be used from any thread.
//! - **Contexts are neutral.** No operation changes the calling thread's current context, on success, error or panic.
//! - **Work is asynchronous.** Unless its documentation says that it waits, an operation returns when the work is on its stream. An
//!   error of such work is returned by a later call; a call that waits does so all the same.
//! - **Dropping** never panics. A failure is reported to `tracing` and to [`set_drop_observer`]; `close` ends a handle with a
//!   result. Once the process exits, nothing is called any more.
//! - **Forking** a process that has initialised a driver gives a child in which every operation is an error ([`Error::Fork`]) and
//!   dropping does nothing. Start a program of its own instead, or fork first.
//! - **Errors** name the function of the driver that failed, its code, what was asked for, and what a person can do. An error
//!   that [`Error::is_sticky`] ends all use of the device in this process.
//!
//! Launching a kernel is `unsafe`, since only its author knows what it does with its arguments; [`Kernel::declare_safe`] vouches
//! for it once.
//!
//! # Features
//!
//! None is on by default. The crate `curium` enables all of them.
//!
//! - `diagnostics`: core dumps, checkpoints, timelines for trace viewers, and NVTX ranges.
//! - `graphs`: CUDA graphs.
//! - `green-contexts`: contexts that run on a part of a device's multiprocessors and work queues.
//! - `half`: `half::f16` and `half::bf16` as parameters of kernels.
//! - `interop`: OpenGL, EGL and VDPAU resources, and events that processes share.
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
//! // SAFETY: the kernel touches no memory.
//! unsafe { nothing.launch(&stream, LaunchConfig::new(1, 32), ()) }?;
//! stream.synchronize()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::missing_inline_in_public_items)]

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
pub use curium_sys::{CudaVersion, Function};

pub use self::base::call_spans::CallSpans;
#[doc(hidden)]
pub use self::base::capture_guard::{NOT_WHILE_CAPTURING, PASS_THE_SCOPE, refuse_wait};
#[doc(hidden)]
pub use self::base::capture_mode::{with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible};
pub use self::base::error::{
    ArgumentError, CallError, Error, ErrorClass, ForkError, OutOfMemoryError, PanicError, RecoveryAttempt, Result,
    Returned,
};
#[doc(hidden)]
pub use self::base::exclusive::{Exclusive, ExclusiveGuard};
#[doc(hidden)]
pub use self::base::hook::Observation;
pub use self::base::hook::{Call, CallObserver, CallObserverGuard, observe_calls};
pub use self::base::leak::LeakedMemory;
#[doc(hidden)]
pub use self::base::leak::leak;
#[doc(hidden)]
pub use self::base::release::contain;
pub use self::base::release::{DropObserver, dropping, is_exiting, release, report, set_drop_observer};
#[cfg(feature = "diagnostics")]
pub use self::checkpoint::{CheckpointProcess, Checkpointed, Locked, ProcessState, Running};
pub use self::completion::Completion;
#[doc(hidden)]
pub use self::completion::drop_on_completion;
pub use self::context::handle_pool::{HandlePool, Poolable, PooledHandle};
pub use self::context::{
    CacheConfig, Context, ContextFlags, ContextKind, ContextOptions, GraphicsQueue, Limit, MemoryInfo, PrimaryState,
    PriorityRange, RawContext, RdmaScope, SharedMemoryConfig,
};
#[cfg(all(unix, feature = "diagnostics"))]
pub use self::core_dump::{CoreDump, CoreDumpFlags, CoreDumpListener, CoreDumpNotice};
pub use self::device::{AtomicForms, AtomicOperation, Clique, CliqueKind, Topology, TopologyDevice};
pub use self::device::{
    AttributeKey, ComputeCapability, ComputeMode, DecompressAlgorithms, Device, DeviceAttribute, EndpointHandleTypes,
    Luid, MemoryHandleTypes, Notification, NotificationListener, NumaConfig, PeerLink, RdmaFlushOptions,
    RdmaWritesOrdering,
};
#[cfg(feature = "green-contexts")]
pub use self::device_resource::{
    Multiprocessors, Partition, Partitioning, SplitFlags, WorkQueue, WorkQueueConfig, WorkQueueScope,
};
pub use self::disk_cache::{CacheKey, CacheUsage, DiskCache};
pub use self::driver::Driver;
#[cfg(feature = "interop")]
pub use self::event::IpcEventHandle;
pub use self::event::{Event, EventFlags, EventPool, PooledEvent, RecordFlags};
pub use self::global::Global;
#[cfg(feature = "graphs")]
pub use self::graph::{
    AllocationNode, CaptureScope, ChildNode, Condition, ConditionalKind, ConditionalNode, CopyMemory, CopyNode,
    CopyPlace, DotFlags, Edge, EdgeData, EdgeKind, EventRecordNode, EventWaitNode, FillNode, FillValue, Graph,
    GraphCache, GraphCacheCounts, GraphCacheOutcome, GraphCopy, GraphExec, GraphFill, GraphMemory, GraphSemaphore,
    GraphUpdate, HostNode, InstantiateFlags, InstantiateOptions, KernelNode, MemoryOperationNode, Node, NodeKind,
    SemaphoreOwner, SemaphoreSignalNode, SemaphoreWaitNode, TypedNode, UpdateFailure, UpdateFailureReason, UserObject,
};
#[cfg(feature = "interop")]
pub use self::graphics::{
    EglConsumer, EglFrame, EglLocation, EglProducer, GlDevices, GraphicsAccess, GraphicsFlags, GraphicsResource,
    MappedGraphics,
};
#[cfg(feature = "green-contexts")]
pub use self::green_context::{GreenContextFlags, GreenContextOptions};
pub use self::host_function::{HostFunction, HostFunctionWait};
pub use self::image::{Image, ImageKind, KernelParameter};
pub use self::jit::{HostSymbol, JitCacheMode, JitFallback, JitOptions, JitReport, JitTarget, LtoOptions};
pub use self::kernel::launch::{ClusterPortability, Dimensions, EventTrigger, LaunchAttributes, LaunchConfig};
pub use self::kernel::signature::{Argument, Arguments, ByValue, Parameter, Signature};
#[cfg(feature = "graphs")]
pub use self::kernel::signature::{NodeArgument, NodeArguments};
pub use self::kernel::{
    ArgumentList, Carveout, ClusterScheduling, Kernel, LoadState, OccupancyFlags, SafeKernel, SharedMemoryMode,
    SuggestedSize, Untyped,
};
pub use self::library::Library;
pub use self::linker::{LinkInput, LinkedImage, Linker};
pub use self::log::{LogLevel, LogListener, LogReader};
pub use self::module::{LoadingMode, Module};
#[cfg(feature = "diagnostics")]
pub use self::nvtx::{NvtxRange, nvtx_mark};
pub use self::pointer::DevicePointer;
pub use self::profiler::Profiling;
#[doc(hidden)]
pub use self::stream::WeakStream;
pub use self::stream::{
    AccessPolicyWindow, AccessProperty, AttachMode, MemoryOperation, MemorySyncDomain, MemorySyncDomainMap,
    PooledStream, Reduction, Stream, StreamFlags, StreamOptions, StreamPool, SynchronizationPolicy, WaitCondition,
};
#[cfg(feature = "diagnostics")]
pub use self::trace::Trace;
