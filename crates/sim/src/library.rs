//! The simulator as libraries use it: the current device, memory, streams, and the operations on
//! them.

use std::sync::Arc;

use curium_sys::{CUresult, CUstream, CUstream_st, Function};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::Driver;
use crate::library_operation::LibraryOperation;
use crate::slot;

impl LibraryOperation {
    /// Enqueues the operation on a stream of a simulator, or adds it to the graph that the stream
    /// captures.
    ///
    /// # Safety
    ///
    /// As for a kernel: the memory is valid for the declared accesses, and lives until the
    /// operation has run.
    ///
    /// # Errors
    ///
    /// The code that `cuLaunchKernel` would return; `CUDA_ERROR_INVALID_HANDLE` if no simulator has
    /// the stream.
    pub unsafe fn enqueue(self, stream: CUstream) -> Result<(), CUresult> {
        stream_driver(stream)?.enqueue_operation(self, handle(stream))
    }

    /// Enqueues the operation, and waits until the stream has completed all its work.
    ///
    /// # Safety
    ///
    /// As for [`LibraryOperation::enqueue`].
    ///
    /// # Errors
    ///
    /// The code that `cuLaunchKernel` or `cuStreamSynchronize` would return; the latter fails for a
    /// stream that captures.
    pub unsafe fn enqueue_and_wait(self, stream: CUstream) -> Result<(), CUresult> {
        let driver = stream_driver(stream)?;
        driver.enqueue_operation(self, handle(stream))?;
        driver.admit(Function::cuStreamSynchronize)?;
        Call::new(&driver).cuStreamSynchronize(handle(stream))
    }
}

/// Returns the number of the device whose context is current on the calling thread, and the address
/// of that device's simulator, which differs between simulators. If no context is current, this is
/// the first device of the only simulator, as for the CUDA runtime; `None` if there are several
/// simulators.
#[must_use]
pub fn current_device() -> Option<(i32, usize)> {
    #[cfg(feature = "export")]
    crate::export::initialize();
    let current = slot::drivers()
        .find_map(|driver| Some((driver.current_device()?, Arc::as_ptr(&driver).addr())));
    current.or_else(|| {
        let mut drivers = slot::drivers();
        let only = drivers.next().filter(|_| drivers.next().is_none())?;
        Some((0, Arc::as_ptr(&only).addr()))
    })
}

/// Calls `call` with the primary context of a device current: the device with this number of the
/// simulator with this address, as [`current_device`] returns them. A library whose objects belong
/// to a device needs it for the default streams.
///
/// The context is retained until it is reset if it is not active, as the CUDA runtime does.
///
/// # Errors
///
/// `CUDA_ERROR_DEINITIALIZED` if the simulator has ended; `CUDA_ERROR_INVALID_DEVICE` if it has no
/// such device.
pub fn with_device<T>(device: (i32, usize), call: impl FnOnce() -> T) -> Result<T, CUresult> {
    let (device, simulator) = device;
    let driver = slot::drivers().find(|driver| Arc::as_ptr(driver).addr() == simulator);
    let driver = driver.ok_or(CUresult::CUDA_ERROR_DEINITIALIZED)?;
    Call::new(&driver).with_primary(device, call)
}

/// Allocates device memory in the context that is current on the calling thread, as `cuMemAlloc`
/// does.
///
/// # Errors
///
/// The code that `cuMemAlloc` would return; `CUDA_ERROR_INVALID_CONTEXT` if no context is current.
pub fn allocate(bytes: usize) -> Result<u64, CUresult> {
    let driver = slot::drivers().find(|driver| driver.current_device().is_some());
    let mut address = 0;
    // SAFETY: the address is a local variable, which outlives the call.
    let output = unsafe { Pointer::from_raw(&raw mut address) };
    let driver = driver.ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
    Call::new(&driver).cuMemAlloc_v2(output, bytes)?;
    Ok(address)
}

/// Frees device memory of the simulator whose context is current on the calling thread, as
/// `cuMemFree` does.
///
/// # Safety
///
/// No work uses the memory.
///
/// # Errors
///
/// The code that `cuMemFree` would return; `CUDA_ERROR_INVALID_CONTEXT` if no context is current.
pub unsafe fn free(address: u64) -> Result<(), CUresult> {
    let driver = slot::drivers().find(|driver| driver.current_device().is_some());
    let driver = driver.ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
    Call::new(&driver).cuMemFree_v2(address)
}

/// Returns the number of a stream of a simulator, which `cuStreamGetId` returns. Captures are not
/// affected.
///
/// # Errors
///
/// `CUDA_ERROR_INVALID_HANDLE` if no simulator has the stream.
pub fn stream_number(stream: CUstream) -> Result<u64, CUresult> {
    let stream_state = stream_driver(stream)?.stream_state(handle(stream))?;
    Ok(stream_state.number)
}

/// Returns `true` if a stream of a simulator is being captured. Captures are not affected.
///
/// # Errors
///
/// `CUDA_ERROR_INVALID_HANDLE` if no simulator has the stream.
pub fn is_stream_captured(stream: CUstream) -> Result<bool, CUresult> {
    let stream_state = stream_driver(stream)?.stream_state(handle(stream))?;
    Ok(stream_state.is_captured)
}

/// Returns the simulator that has a stream.
fn stream_driver(stream: CUstream) -> Result<Arc<Driver>, CUresult> {
    slot::drivers()
        .find(|driver| driver.has_stream(handle(stream)))
        .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
}

fn handle(stream: CUstream) -> Pointer<CUstream_st> {
    // SAFETY: a stream is a handle, which is only compared.
    unsafe { Pointer::from_raw(stream) }
}
