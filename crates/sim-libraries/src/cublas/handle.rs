//! Handles: a stream, the pointer mode, and the workspace.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, LazyLock};

use curium_sys::CUstream;
use curium_sys::cublas::{
    Api, cublasAtomicsMode_t, cublasHandle_t, cublasMath_t, cublasPointerMode_t, cublasStatus_t,
    cudaStream_t, libraryPropertyType_t,
};
use parking_lot::{Mutex, MutexGuard};

use super::{INVALID, Result, code};
use crate::own_memory::OwnMemory;

/// The version that the library reports.
const VERSION: [c_int; 3] = [13, 10, 0];

/// The state of a handle.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    /// The address of the stream's handle.
    stream: usize,
    pub(super) pointer_mode: cublasPointerMode_t,
    math_mode: cublasMath_t,
    atomics_mode: cublasAtomicsMode_t,
    /// The address and the size in bytes of the caller's workspace; the size is 0 if there is none.
    workspace: (u64, usize),
    /// The workspace of the handle itself, which it allocates when it first needs one.
    default_workspace: Option<Arc<OwnMemory>>,
}

/// The live handles by their numbers, which are not reused.
#[derive(Default)]
struct Handles {
    live: HashMap<usize, Handle>,
    last: usize,
}

static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(Mutex::default);

/// The size of a workspace that the handle allocates.
const DEFAULT_WORKSPACE_BYTES: usize = 256;

/// Handles are multiples of this, as addresses would be.
const STEP: usize = 64;

impl Handle {
    /// Returns the address and the size in bytes of the workspace that an operation writes.
    pub(super) fn workspace(&self) -> (u64, usize) {
        match &self.default_workspace {
            Some(memory) if self.workspace.1 == 0 => memory.range(),
            _ => self.workspace,
        }
    }

    pub(super) fn stream(&self) -> CUstream {
        ptr::without_provenance_mut(self.stream)
    }
}

fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock()
}

/// Returns the state of a handle.
pub(super) fn look_up(handle: cublasHandle_t) -> Result<Handle> {
    handles()
        .live
        .get(&handle.addr())
        .cloned()
        .ok_or(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED)
}

/// Returns the state of a handle for an operation, which may need a workspace.
pub(super) fn look_up_for_operation(handle: cublasHandle_t) -> Result<Handle> {
    let mut handles = handles();
    let state = handles
        .live
        .get_mut(&handle.addr())
        .ok_or(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED)?;
    if state.workspace.1 == 0 && state.default_workspace.is_none() {
        state.default_workspace = OwnMemory::new(DEFAULT_WORKSPACE_BYTES).map(Arc::new);
    }
    Ok(state.clone())
}

fn change(handle: cublasHandle_t, change: impl FnOnce(&mut Handle)) -> Result {
    let mut handles = handles();
    handles
        .live
        .get_mut(&handle.addr())
        .map(change)
        .ok_or(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED)
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn write<T>(output: *mut T, value: T) -> Result {
    if output.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees that the output is valid for writes.
    unsafe { output.write(value) };
    Ok(())
}

unsafe extern "C" fn create(handle: *mut cublasHandle_t) -> cublasStatus_t {
    if handle.is_null() {
        return INVALID;
    }
    let mut handles = handles();
    handles.last += STEP;
    let number = handles.last;
    let state = Handle {
        stream: 0,
        pointer_mode: cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST,
        math_mode: cublasMath_t::CUBLAS_DEFAULT_MATH,
        atomics_mode: cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED,
        workspace: (0, 0),
        default_workspace: None,
    };
    handles.live.insert(number, state);
    // SAFETY: by the contract of the C function, `handle` is null or valid for writes.
    code(unsafe { write(handle, ptr::without_provenance_mut(number)) })
}

unsafe extern "C" fn destroy(handle: cublasHandle_t) -> cublasStatus_t {
    let removed = handles().live.remove(&handle.addr());
    if removed.is_some() {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS
    } else {
        cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED
    }
}

unsafe extern "C" fn get_version(handle: cublasHandle_t, version: *mut c_int) -> cublasStatus_t {
    let number = VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2];
    // SAFETY: by the contract of the C function, `version` is null or valid for writes.
    code(look_up(handle).and_then(|_| unsafe { write(version, number) }))
}

unsafe extern "C" fn get_property(
    property: libraryPropertyType_t,
    value: *mut c_int,
) -> cublasStatus_t {
    let Some(number) = VERSION.get(property.0 as usize) else {
        return INVALID;
    };
    // SAFETY: by the contract of the C function, `value` is null or valid for writes.
    code(unsafe { write(value, *number) })
}

/// Returns the version of the CUDA runtime that the library was built with.
unsafe extern "C" fn get_cudart_version() -> usize {
    (VERSION[0] * 1000) as usize
}

/// As on hardware, a new stream comes without the workspace of the caller.
unsafe extern "C" fn set_stream(handle: cublasHandle_t, stream: cudaStream_t) -> cublasStatus_t {
    code(change(handle, |state| {
        state.stream = stream.addr();
        state.workspace = (0, 0);
    }))
}

unsafe extern "C" fn get_stream(
    handle: cublasHandle_t,
    stream: *mut cudaStream_t,
) -> cublasStatus_t {
    // SAFETY: by the contract of the C function, `stream` is null or valid for writes.
    code(look_up(handle).and_then(|state| unsafe { write(stream, state.stream().cast()) }))
}

unsafe extern "C" fn set_workspace(
    handle: cublasHandle_t,
    workspace: *mut c_void,
    bytes: usize,
) -> cublasStatus_t {
    if !workspace.addr().is_multiple_of(256) {
        return INVALID;
    }
    code(change(handle, |state| {
        state.workspace = (workspace.addr() as u64, bytes);
    }))
}

unsafe extern "C" fn set_pointer_mode(
    handle: cublasHandle_t,
    mode: cublasPointerMode_t,
) -> cublasStatus_t {
    code(change(handle, |state| state.pointer_mode = mode))
}

unsafe extern "C" fn get_pointer_mode(
    handle: cublasHandle_t,
    mode: *mut cublasPointerMode_t,
) -> cublasStatus_t {
    // SAFETY: by the contract of the C function, `mode` is null or valid for writes.
    code(look_up(handle).and_then(|state| unsafe { write(mode, state.pointer_mode) }))
}

unsafe extern "C" fn set_math_mode(handle: cublasHandle_t, mode: cublasMath_t) -> cublasStatus_t {
    code(change(handle, |state| state.math_mode = mode))
}

unsafe extern "C" fn get_math_mode(
    handle: cublasHandle_t,
    mode: *mut cublasMath_t,
) -> cublasStatus_t {
    // SAFETY: by the contract of the C function, `mode` is null or valid for writes.
    code(look_up(handle).and_then(|state| unsafe { write(mode, state.math_mode) }))
}

unsafe extern "C" fn set_atomics_mode(
    handle: cublasHandle_t,
    mode: cublasAtomicsMode_t,
) -> cublasStatus_t {
    code(change(handle, |state| state.atomics_mode = mode))
}

unsafe extern "C" fn get_atomics_mode(
    handle: cublasHandle_t,
    mode: *mut cublasAtomicsMode_t,
) -> cublasStatus_t {
    // SAFETY: by the contract of the C function, `mode` is null or valid for writes.
    code(look_up(handle).and_then(|state| unsafe { write(mode, state.atomics_mode) }))
}

/// Adds the functions on handles.
pub(super) fn add_to(api: &mut Api) {
    api.cublasCreate_v2 = Some(create);
    api.cublasDestroy_v2 = Some(destroy);
    api.cublasGetVersion_v2 = Some(get_version);
    api.cublasGetProperty = Some(get_property);
    api.cublasGetCudartVersion = Some(get_cudart_version);
    api.cublasSetStream_v2 = Some(set_stream);
    api.cublasGetStream_v2 = Some(get_stream);
    api.cublasSetWorkspace_v2 = Some(set_workspace);
    api.cublasSetPointerMode_v2 = Some(set_pointer_mode);
    api.cublasGetPointerMode_v2 = Some(get_pointer_mode);
    api.cublasSetMathMode = Some(set_math_mode);
    api.cublasGetMathMode = Some(get_math_mode);
    api.cublasSetAtomicsMode = Some(set_atomics_mode);
    api.cublasGetAtomicsMode = Some(get_atomics_mode);
}
