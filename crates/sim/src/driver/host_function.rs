//! Functions of the host that run in stream order.

use std::cell::Cell;
use std::ffi::c_void;

use curium_sys::{CUhostFn, CUhostTaskSyncMode, CUresult, CUstream, CUstream_st, CUstreamCallback};

use crate::argument::Pointer;
use crate::driver::graph::Content;
use crate::driver::{Driver, Result};
use crate::schedule::Work;

/// A function of the host with its argument.
#[derive(Clone)]
pub(crate) struct HostFunction {
    callee: Callee,
    data: *mut c_void,
}

#[derive(Clone, Copy)]
enum Callee {
    Function(unsafe extern "C" fn(*mut c_void)),
    Callback(
        unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
        CUstream,
    ),
}

// SAFETY: the caller that enqueues a host function permits the driver to call it with its argument on another thread: that is its contract.
unsafe impl Send for HostFunction {}
// SAFETY: a shared host function can only be called, which its caller permitted on any thread.
unsafe impl Sync for HostFunction {}

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the calling thread is in a host function, where driver calls are not permitted.
pub(crate) fn is_running_here() -> bool {
    RUNNING.try_with(Cell::get).unwrap_or(false)
}

/// Runs code of the caller in which driver calls are not permitted.
pub(crate) fn run(code: impl FnOnce()) {
    RUNNING.set(true);
    code();
    RUNNING.set(false);
}

impl HostFunction {
    /// Creates a function that takes only its argument.
    pub(crate) fn new(function: CUhostFn, data: *mut c_void) -> Result<Self> {
        let function = function.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        Ok(Self {
            callee: Callee::Function(function),
            data,
        })
    }

    /// Returns the function, unless it is a stream callback, and the argument.
    pub(crate) fn as_raw(&self) -> (CUhostFn, *mut c_void) {
        let function: CUhostFn = match self.callee {
            Callee::Function(function) => Some(function),
            Callee::Callback(..) => None,
        };
        (function, self.data)
    }

    pub(crate) fn call(&self) {
        run(|| match self.callee {
            // SAFETY: the caller that enqueued the function guaranteed that it can be called with this argument.
            Callee::Function(function) => unsafe { function(self.data) },
            // SAFETY: the caller that enqueued the callback guaranteed that it can be called with this argument.
            Callee::Callback(callback, stream) => unsafe {
                callback(stream, CUresult::CUDA_SUCCESS, self.data);
            },
        });
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuLaunchHostFunc(
        &self,
        stream: Pointer<CUstream_st>,
        function: CUhostFn,
        data: Pointer<c_void>,
    ) -> Result {
        let function = HostFunction::new(function, data.as_ptr())?;
        let mut state = self.lock();
        let stream = self.working_stream(&mut state, stream)?;
        self.enqueue(&mut state, stream, Content::Host(function))
    }

    /// Accepts the mode, which affects only latency: the workers wait as before.
    pub(crate) fn cuLaunchHostFunc_v2(
        &self,
        stream: Pointer<CUstream_st>,
        function: CUhostFn,
        data: Pointer<c_void>,
        mode: u32,
    ) -> Result {
        if mode > CUhostTaskSyncMode::CU_HOST_TASK_SPINWAIT.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.cuLaunchHostFunc(stream, function, data)
    }

    pub(crate) fn cuStreamAddCallback(
        &self,
        stream: Pointer<CUstream_st>,
        callback: CUstreamCallback,
        data: Pointer<c_void>,
        flags: u32,
    ) -> Result {
        let callback = callback
            .filter(|_| flags == 0)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let callee = Callee::Callback(callback, stream.as_ptr());
        let mut state = self.lock();
        let stream = self.uncaptured_stream(&mut state, stream)?;
        self.queue(
            &mut state,
            stream,
            Work::Host(HostFunction {
                callee,
                data: data.as_ptr(),
            }),
        );
        Ok(())
    }
}
