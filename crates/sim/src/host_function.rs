//! Functions of the host that run in stream order.

use std::cell::Cell;
use std::ffi::c_void;

use curium_sys::{CUhostFn, CUresult, CUstream};

use crate::result::Result;

/// A function of the host with its argument.
#[derive(Clone)]
pub(crate) struct HostFunction {
    pub(crate) callee: Callee,
    pub(crate) data: *mut c_void,
}

#[derive(Clone, Copy)]
pub(crate) enum Callee {
    Function(unsafe extern "C" fn(*mut c_void)),
    Callback(
        unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
        CUstream,
    ),
}

// SAFETY: the caller that enqueues a host function permits the driver to call it with its argument
// on another thread: that is its contract.
unsafe impl Send for HostFunction {}

// SAFETY: a shared host function can only be called, which its caller permitted on any thread.
unsafe impl Sync for HostFunction {}

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the calling thread is in a host function, where driver calls are not
/// permitted.
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
            // SAFETY: the caller that enqueued the function guaranteed that it can be called with
            // this argument.
            Callee::Function(function) => unsafe { function(self.data) },
            // SAFETY: the caller that enqueued the callback guaranteed that it can be called with
            // this argument.
            Callee::Callback(callback, stream) => unsafe {
                callback(stream, CUresult::CUDA_SUCCESS, self.data);
            },
        });
    }
}
