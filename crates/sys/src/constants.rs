//! Constants that the header defines as casts, which bindgen cannot evaluate.

use core::ffi::c_void;
use core::ptr;

use crate::{CUdevice, CUstream};

/// The legacy default stream, which synchronizes with every blocking stream of its context.
pub const CU_STREAM_LEGACY: CUstream = ptr::without_provenance_mut(1);
/// The per-thread default stream of the calling thread.
pub const CU_STREAM_PER_THREAD: CUstream = ptr::without_provenance_mut(2);

/// The CPU, in place of a device.
pub const CU_DEVICE_CPU: CUdevice = -1;
/// No device.
pub const CU_DEVICE_INVALID: CUdevice = -2;

/// Terminates the `extra` argument of `cuLaunchKernel`.
pub const CU_LAUNCH_PARAM_END: *mut c_void = ptr::null_mut();
/// Precedes the address of the argument buffer in `extra`.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
/// Precedes the address of the argument buffer's size, a `usize`, in `extra`.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
