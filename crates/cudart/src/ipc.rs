//! Memory and events of other processes.

use std::ffi::{c_uint, c_void};

use curium_sys::{CUevent, CUipcEventHandle, CUipcMemHandle};

use crate::memory::{address, pointer};
use crate::state::{enter, put};
use crate::{cu, forward, runtime};

runtime! {
    fn cudaIpcGetMemHandle(place: *mut CUipcMemHandle, memory: *mut c_void) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuIpcGetMemHandle(place, address(memory))) }
    }

    fn cudaIpcOpenMemHandle(place: *mut *mut c_void, handle: CUipcMemHandle, flags: c_uint) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuIpcOpenMemHandle_v2(&raw mut found, handle, flags)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaIpcCloseMemHandle(memory: *mut c_void) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuIpcCloseMemHandle(address(memory))) }
    }
}

forward! {
    unsafe fn cudaIpcGetEventHandle(place: *mut CUipcEventHandle, event: CUevent) = cuIpcGetEventHandle;

    unsafe fn cudaIpcOpenEventHandle(place: *mut CUevent, handle: CUipcEventHandle) = cuIpcOpenEventHandle;
}
