//! Logs of errors.

use std::ffi::{c_char, c_uint, c_void};

use curium_sys::{CUlogIterator, CUlogsCallback, CUlogsCallbackHandle};

use crate::forward_without_context;

forward_without_context! {
    unsafe fn cudaLogsCurrent(iterator: *mut CUlogIterator, flags: c_uint)
        = cuLogsCurrent(iterator, flags);

    unsafe fn cudaLogsDumpToFile(iterator: *mut CUlogIterator, path: *const c_char, flags: c_uint)
        = cuLogsDumpToFile(iterator, path, flags);

    unsafe fn cudaLogsDumpToMemory(
        iterator: *mut CUlogIterator,
        buffer: *mut c_char,
        size: *mut usize,
        flags: c_uint,
    ) = cuLogsDumpToMemory(iterator, buffer, size, flags);

    unsafe fn cudaLogsRegisterCallback(
        function: CUlogsCallback,
        data: *mut c_void,
        callback: *mut CUlogsCallbackHandle,
    ) = cuLogsRegisterCallback(function, data, callback);

    unsafe fn cudaLogsUnregisterCallback(callback: CUlogsCallbackHandle)
        = cuLogsUnregisterCallback(callback);
}
