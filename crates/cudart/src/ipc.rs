//! Memory and events of other processes.

use std::ffi::{c_uint, c_void};

use curium_sys::{CUevent, CUipcEventHandle, CUipcMemHandle};

use crate::memory::{address, pointer};
use crate::state::{enter, put};
use crate::{cu, forward, runtime};

runtime! {
    fn cudaIpcGetMemHandle(place: *mut CUipcMemHandle, memory: *mut c_void) {
        enter()?;
        cu!(cuIpcGetMemHandle(place, address(memory)))
    }

    fn cudaIpcOpenMemHandle(place: *mut *mut c_void, handle: CUipcMemHandle, flags: c_uint) {
        enter()?;
        let mut found = 0;
        cu!(cuIpcOpenMemHandle_v2(&raw mut found, handle, flags))?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }

    fn cudaIpcCloseMemHandle(memory: *mut c_void) {
        enter()?;
        cu!(cuIpcCloseMemHandle(address(memory)))
    }
}

forward! {
    fn cudaIpcGetEventHandle(place: *mut CUipcEventHandle, event: CUevent) = cuIpcGetEventHandle;

    fn cudaIpcOpenEventHandle(place: *mut CUevent, handle: CUipcEventHandle) = cuIpcOpenEventHandle;
}
