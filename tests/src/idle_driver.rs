//! A driver whose launches and updates do nothing, so that a benchmark measures only the code
//! around them.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use curium_driver::sys::{
    Api, CUDA_KERNEL_NODE_PARAMS, CUcontext, CUctx_st, CUdeviceptr, CUevent, CUfunction,
    CUgraphExec, CUgraphNode, CUresult, CUstream, CUstreamCaptureStatus,
};
use curium_driver::{Context, Driver};
use curium_sim::{Config, Simulator};

/// The device memory in bytes: valgrind cannot reserve the address range of a whole device.
const MEMORY: u64 = 1 << 24;

/// The context that is current on every thread, or null before [`assume_current`].
static CURRENT: AtomicPtr<CUctx_st> = AtomicPtr::new(ptr::null_mut());

/// The simulator's own `cuCtxGetCurrent`.
static GET_CURRENT: OnceLock<unsafe extern "C" fn(*mut CUcontext) -> CUresult> = OnceLock::new();

/// Returns a new simulator with `cuLaunchKernel`, `cuGraphLaunch`,
/// `cuGraphExecKernelNodeSetParams_v2`, `cuMemcpyHtoDAsync_v2`, `cuStreamIsCapturing` and the
/// functions for stream waits replaced by functions that return success.
///
/// # Panics
///
/// Panics if no further simulator can be created.
#[must_use]
pub fn idle_driver() -> Driver {
    idle(|_| ())
}

/// Returns an idle driver whose `cuCtxGetCurrent` returns the context of [`assume_current`]. A
/// process can have only one.
///
/// # Panics
///
/// Panics if no further simulator can be created.
#[must_use]
pub fn idle_driver_that_assumes_a_context() -> Driver {
    idle(|api| {
        if let Some(get) = api.cuCtxGetCurrent.replace(get_current) {
            assert!(
                GET_CURRENT.set(get).is_ok(),
                "the idle driver was created twice"
            );
        }
    })
}

fn idle(change: impl FnOnce(&mut Api)) -> Driver {
    let simulator = Simulator::new(Config::new().with_memory_budget(MEMORY))
        .expect("failed to create a simulator");
    let mut api = simulator.api();
    api.cuLaunchKernel = Some(launch_nothing);
    api.cuGraphLaunch = Some(launch_no_graph);
    api.cuGraphExecKernelNodeSetParams_v2 = Some(update_nothing);
    api.cuEventRecord = Some(record_nothing);
    api.cuStreamWaitEvent = Some(wait_for_nothing);
    api.cuStreamIsCapturing = Some(is_not_capturing);
    api.cuMemcpyHtoDAsync_v2 = Some(copy_nothing);
    change(&mut api);
    // SAFETY: the functions are the simulator's, which the driver keeps loaded, except for some
    // that do nothing.
    unsafe { Driver::from_api_with_owner(api, simulator) }.expect("the simulator initializes")
}

/// Makes `cuCtxGetCurrent` of the driver that assumes a context return `context` on every thread,
/// without the simulator's look-up.
pub fn assume_current(context: &Context) {
    CURRENT.store(context.as_raw(), Relaxed);
}

unsafe extern "C" fn get_current(output: *mut CUcontext) -> CUresult {
    let current = CURRENT.load(Relaxed);
    if current.is_null() {
        let Some(get) = GET_CURRENT.get() else {
            return CUresult::CUDA_ERROR_NOT_INITIALIZED;
        };
        // SAFETY: as the caller guarantees.
        return unsafe { get(output) };
    }
    // SAFETY: the wrapper under test passes an output for the context.
    unsafe { output.write(current) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn launch_nothing(
    _: CUfunction,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: CUstream,
    _: *mut *mut c_void,
    _: *mut *mut c_void,
) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn launch_no_graph(_: CUgraphExec, _: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn record_nothing(_: CUevent, _: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

/// The caller has initialized the status to that of a stream that is not being captured.
unsafe extern "C" fn is_not_capturing(_: CUstream, _: *mut CUstreamCaptureStatus) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn copy_nothing(
    _: CUdeviceptr,
    _: *const c_void,
    _: usize,
    _: CUstream,
) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn wait_for_nothing(_: CUstream, _: CUevent, _: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn update_nothing(
    _: CUgraphExec,
    _: CUgraphNode,
    _: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    CUresult::CUDA_SUCCESS
}
