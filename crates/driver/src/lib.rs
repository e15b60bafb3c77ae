//! The CUDA driver API: devices, contexts, streams, events, modules, kernels and graphs.
//!
//! [`Driver`] is the entry point. The CUDA driver library is loaded at run time: neither compiling
//! nor starting a program requires CUDA. One program works with every driver from CUDA 11.8 on. A
//! call of a function that the driver lacks returns [`Error::Missing`].
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
//! | Record work once and launch it many times | [`Graph`], [`GraphExec`], [`GraphCache`] |
//! | Use a subset of a device | [`GreenContextOptions`], [`Partition`] |
//! | Observe driver calls | [`observe_calls`], [`CallSpans`], [`LogListener`] |
//! | Observe the waits of hazard tracking | [`observe_hazard_waits`], [`Stream::inserted_waits`] |
//! | Call a function that has no wrapper | [`call!`], [`sys`], `as_raw` and `from_raw` of each object |
//! | Build a crate on this one | [`extend`], [`hazard`] |
//!
//! Device memory and copies are in the crate `curium-memory`, graphics interoperability and
//! interprocess events in `curium-interop`, and core dumps, checkpoints, timelines and profiler
//! ranges in `curium-diagnostics`.
//!
//! # The book
//!
//! The chapters of the book are in the folder `docs/book/src` of the repository: `cuda-cpp.md`
//! explains modules and libraries, `graphs.md` capture and updates, `waits.md` the waits that
//! hazard tracking inserts.
//!
//! # Contracts
//!
//! - **Ownership.** An event, a stream or a module keeps its context alive, and a context keeps its
//!   driver alive. Handles are `Send`, and all except graphs and executable graphs are `Sync`.
//! - **Current context.** No call changes the calling thread's current context, on success, error
//!   or panic. Functions whose purpose is to change it are the exception.
//! - **Asynchronous work.** An operation returns when its work is enqueued, unless it is documented
//!   to wait. A later call reports an error of that work. Synchronizing calls always wait, even
//!   when they report an earlier error.
//! - **Drop.** Dropping never panics. A failure is reported to `tracing` and to
//!   [`set_drop_observer`]. The method `close` destroys a handle and returns the error. Nothing is
//!   called once the process is exiting.
//! - **Fork.** In the child of a process that initialized a driver, every operation returns
//!   [`Error::Fork`], and dropping does nothing. Start a new program instead, or fork first.
//! - **Errors** contain the driver function, its result code, its operands and a hint. An error for
//!   which [`Error::is_sticky`] returns `true` ends all use of the device in this process.
//!
//! Launching a kernel is `unsafe`, because the compiler cannot check what the kernel does with its
//! arguments. [`Kernel::declare_safe`] declares a kernel safe to launch from safe code.
//!
//! # Features
//!
//! - `half`, which is off by default: `half::f16` and `half::bf16` as kernel parameters.
//!
//! # Environment
//!
//! `CURIUM_TRACE` names a file to which every driver call is appended, for trace viewers.
//! `CURIUM_DRIVER_PATH` names the driver library. Both are ignored in processes with elevated
//! privileges.
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
mod base;
mod completion;
mod context;
mod device;
mod device_resource;
mod disk_cache;
mod driver;
mod event;
pub mod extend;
mod global;
mod graph;
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
mod pointer;
mod stream;

pub use curium_sys as sys;
pub use curium_sys::{CudaVersion, Function, PtxVersion};

#[doc(hidden)]
pub use self::base::call::RawHandle;
pub use self::base::call_spans::CallSpans;
pub use self::base::driver::Driver;
pub use self::base::error::{
    ArgumentError, CallError, CudaError, Error, ErrorClass, ForkError, LibraryStatus,
    OutOfMemoryError, PanicError, RecoveryAttempt, Result, Returned, TimeoutError,
};
#[doc(hidden)]
pub use self::base::hook::Observation;
pub use self::base::hook::{Call, CallObserver, ObserverGuard, observe_calls};
pub use self::base::leak::LeakedMemory;
pub use self::base::release::{DropObserver, set_drop_observer};
pub use self::completion::{Completion, Join, Timeout};
pub use self::context::handle_pool::{HandlePool, Poolable, PooledHandle};
pub use self::context::{
    CacheConfig, Context, ContextFlags, ContextKind, ContextOptions, GraphicsQueue, Limit,
    MemoryInfo, PrimaryState, PriorityRange, RawContext, RdmaScope, SharedMemoryConfig,
};
pub use self::device::{
    AtomicForms, AtomicOperation, Clique, CliqueKind, Topology, TopologyDevice,
};
pub use self::device::{
    AttributeKey, ComputeCapability, ComputeMode, DecompressAlgorithms, Device, DeviceAttribute,
    EndpointHandleTypes, Luid, MemoryHandleTypes, Notification, NotificationListener, NumaConfig,
    PeerLink, RdmaFlushOptions, RdmaWritesOrdering,
};
pub use self::device_resource::{
    Multiprocessors, Partition, Partitioning, SplitFlags, WorkQueue, WorkQueueConfig,
    WorkQueueScope,
};
pub use self::disk_cache::{CacheKey, CacheUsage, DiskCache};
pub use self::event::pool::{EventPool, PooledEvent};
pub use self::event::{Event, EventFlags, RecordFlags};
pub use self::global::Global;
pub use self::graph::Graph;
pub use self::graph::capture::CaptureScope;
pub use self::graph::condition::{Condition, ConditionalKind, ConditionalNode};
pub use self::graph::copy::{CopyMemory, CopyPlace, GraphCopy};
pub use self::graph::edge::{Edge, EdgeData, EdgeKind};
pub use self::graph::exec::GraphExec;
pub use self::graph::fill::{FillValue, GraphFill};
pub use self::graph::graph_cache::{GraphCache, GraphCacheCounts, GraphCacheOutcome};
pub use self::graph::identity::DotFlags;
pub use self::graph::instantiate::{InstantiateFlags, InstantiateOptions};
pub use self::graph::memory::{AllocationNode, GraphMemory};
pub use self::graph::node::{
    ChildNode, CopyNode, EventRecordNode, EventWaitNode, FillNode, HostNode, KernelNode,
    MemoryOperationNode, Node, NodeKind, SemaphoreSignalNode, SemaphoreWaitNode, TypedNode,
};
pub use self::graph::replace::{GraphUpdate, UpdateFailure, UpdateFailureReason};
pub use self::graph::semaphore::{GraphSemaphore, SemaphoreOwner};
pub use self::graph::user_object::UserObject;
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
pub use self::kernel::signature::{NodeArgument, NodeArguments};
pub use self::kernel::{
    ArgumentList, Carveout, ClusterScheduling, Kernel, LoadState, OccupancyFlags, SafeKernel,
    SharedMemoryMode, SuggestedSize, Untyped,
};
pub use self::library::Library;
pub use self::linker::{LinkInput, LinkedImage, Linker};
pub use self::log::{LogLevel, LogListener, LogReader};
pub use self::module::{LoadingMode, Module};
pub use self::pointer::DevicePointer;
pub use self::stream::attribute::{
    AccessPolicyWindow, AccessProperty, MemorySyncDomain, MemorySyncDomainMap,
    SynchronizationPolicy,
};
pub use self::stream::hazard_wait::{HazardWait, observe_hazard_waits};
pub use self::stream::memory_operation::{AttachMode, MemoryOperation, Reduction, WaitCondition};
pub use self::stream::pool::{PooledStream, StreamPool};
pub use self::stream::{AsRawStream, Stream, StreamFlags, StreamOptions};
