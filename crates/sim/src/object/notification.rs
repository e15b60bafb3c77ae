//! Device notifications, which tests trigger here.

use std::ffi::c_void;

use curium_sys::{CUasyncCallbackEntry_st, CUasyncCallbackHandle, CUasyncNotificationInfo};

use crate::handle::{Kind, Object};

/// A callback for the notifications of a device.
pub(crate) struct Listener {
    pub(crate) device: usize,
    pub(crate) callback:
        unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle),
    pub(crate) data: *mut c_void,
}

// SAFETY: the caller that registers a callback permits the driver to call it with its argument on
// another thread: that is its contract.
unsafe impl Send for Listener {}

impl Object for Listener {
    type Raw = CUasyncCallbackEntry_st;
    const KIND: Kind = Kind::Listener;
}
