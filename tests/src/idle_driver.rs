//! A driver whose launches and updates do nothing, so that only the way to them is measured.

use std::ffi::{c_uint, c_void};

use curium_driver::Driver;
use curium_driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUevent, CUfunction, CUgraphExec, CUgraphNode, CUresult, CUstream};
use curium_sim::{Config, Simulator};

/// As many bytes as the simulated device has: valgrind does not give the addresses of a whole device.
const MEMORY: u64 = 1 << 24;

/// Returns a simulator of its own, with `cuLaunchKernel`, `cuGraphLaunch`, `cuGraphExecKernelNodeSetParams_v2`, and what has one stream
/// wait for another, replaced by functions that succeed at once.
///
/// # Panics
///
/// If there is no simulator left.
#[must_use]
pub fn idle_driver() -> Driver {
    let simulator = Simulator::new(Config::new().with_memory_budget(MEMORY)).expect("a simulator can be made");
    let mut api = simulator.api();
    api.cuLaunchKernel = Some(launch_nothing);
    api.cuGraphLaunch = Some(launch_no_graph);
    api.cuGraphExecKernelNodeSetParams_v2 = Some(update_nothing);
    api.cuEventRecord = Some(record_nothing);
    api.cuStreamWaitEvent = Some(wait_for_nothing);
    // SAFETY: the functions are the simulator's, which the driver keeps, but for some that do nothing, which harms nobody.
    unsafe { Driver::from_api_with_owner(api, simulator) }.expect("the simulator initialises")
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

unsafe extern "C" fn wait_for_nothing(_: CUstream, _: CUevent, _: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn update_nothing(_: CUgraphExec, _: CUgraphNode, _: *const CUDA_KERNEL_NODE_PARAMS) -> CUresult {
    CUresult::CUDA_SUCCESS
}
