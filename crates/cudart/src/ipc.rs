//! Memory and events of other processes.

use std::ffi::{c_uint, c_void};

use curium_sys::{CUevent, CUipcEventHandle, CUipcMemHandle};

use crate::memory::{address, pointer};
use crate::state::{Out, enter};
use crate::{cu, forward, runtime};

runtime! {
    fn cudaIpcOpenMemHandle(memory: Out<*mut c_void>, handle: CUipcMemHandle, flags: c_uint) {
        enter()?;
        let mut opened = 0;
        // SAFETY: `opened` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuIpcOpenMemHandle_v2(&raw mut opened, handle, flags)) }?;
        memory.write(pointer(opened))
    }
}

forward! {
    unsafe fn cudaIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent)
        = cuIpcGetEventHandle(handle, event);

    unsafe fn cudaIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle)
        = cuIpcOpenEventHandle(event, handle);

    unsafe fn cudaIpcGetMemHandle(handle: *mut CUipcMemHandle, memory: *mut c_void)
        = cuIpcGetMemHandle(handle, address(memory));

    unsafe fn cudaIpcCloseMemHandle(memory: *mut c_void) = cuIpcCloseMemHandle(address(memory));
}
