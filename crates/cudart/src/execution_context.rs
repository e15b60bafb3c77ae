//! Execution contexts and the resources of devices that they have.
//!
//! An execution context is a context of the driver: the primary context of a device, or a green
//! context.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::ptr;

use curium_sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc,
    CUdevResourceType, CUevent, CUgreenCtx, CUgreenCtxCreate_flags, CUstream,
};
use parking_lot::Mutex;

use crate::state::{INVALID_VALUE, Out, Result, enter, primary};
use crate::{cu, forward_without_context, runtime};

/// The green contexts by the address of the context that each was converted to.
static GREEN_CONTEXTS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn green_context(context: CUcontext) -> Option<CUgreenCtx> {
    let green = GREEN_CONTEXTS.lock().get(&context.addr()).copied();
    green.map(ptr::with_exposed_provenance_mut)
}

/// Creates a stream in the primary context of a device.
fn create_stream(
    stream: *mut CUstream,
    context: CUcontext,
    flags: c_uint,
    priority: c_int,
) -> Result<()> {
    let mut popped = CUcontext::default();
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuCtxPushCurrent_v2(context)) }?;
    // SAFETY: the caller of the runtime function guarantees the arguments.
    let created = unsafe { cu!(cuStreamCreateWithPriority(stream, flags, priority)) };
    // SAFETY: `popped` is valid for writes.
    unsafe { cu!(cuCtxPopCurrent_v2(&raw mut popped)) }?;
    created
}

runtime! {
    fn cudaDeviceGetExecutionCtx(context: Out<CUcontext>, device: c_int) {
        context.write(primary(device)?)
    }

    fn cudaGreenCtxCreate(
        context: Out<CUcontext>,
        description: CUdevResourceDesc,
        device: c_int,
        flags: c_uint,
    ) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        primary(device)?;
        let mut green = CUgreenCtx::default();
        let mut converted = CUcontext::default();
        let default_stream = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;
        // SAFETY: `green` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGreenCtxCreate(&raw mut green, description, device, default_stream)) }?;
        // SAFETY: `converted` is valid for writes, and the green context exists.
        unsafe { cu!(cuCtxFromGreenCtx(&raw mut converted, green)) }?;
        GREEN_CONTEXTS.lock().insert(converted.addr(), green.expose_provenance());
        context.write(converted)
    }

    fn cudaExecutionCtxDestroy(context: CUcontext) {
        // The primary context of a device cannot be destroyed.
        let green = green_context(context).ok_or(INVALID_VALUE)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGreenCtxDestroy(green)) }?;
        GREEN_CONTEXTS.lock().remove(&context.addr());
        Ok(())
    }

    fn cudaExecutionCtxGetDevResource(
        context: CUcontext,
        resource: *mut CUdevResource,
        kind: CUdevResourceType,
    ) {
        match green_context(context) {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(green) => unsafe { cu!(cuGreenCtxGetDevResource(green, resource, kind)) },
            // SAFETY: the caller of the runtime function guarantees the arguments.
            None => unsafe { cu!(cuCtxGetDevResource(context, resource, kind)) },
        }
    }

    fn cudaExecutionCtxGetId(context: CUcontext, id: *mut u64) {
        match green_context(context) {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(green) => unsafe { cu!(cuGreenCtxGetId(green, id)) },
            // SAFETY: the caller of the runtime function guarantees the arguments.
            None => unsafe { cu!(cuCtxGetId(context, id)) },
        }
    }

    fn cudaExecutionCtxStreamCreate(
        stream: *mut CUstream,
        context: CUcontext,
        flags: c_uint,
        priority: c_int,
    ) {
        match green_context(context) {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(green) => unsafe { cu!(cuGreenCtxStreamCreate(stream, green, flags, priority)) },
            None => create_stream(stream, context, flags, priority),
        }
    }

    fn cudaExecutionCtxRecordEvent(context: CUcontext, event: CUevent) {
        match green_context(context) {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(green) => unsafe { cu!(cuGreenCtxRecordEvent(green, event)) },
            // SAFETY: the caller of the runtime function guarantees the arguments.
            None => unsafe { cu!(cuCtxRecordEvent(context, event)) },
        }
    }

    fn cudaExecutionCtxWaitEvent(context: CUcontext, event: CUevent) {
        match green_context(context) {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            Some(green) => unsafe { cu!(cuGreenCtxWaitEvent(green, event)) },
            // SAFETY: the caller of the runtime function guarantees the arguments.
            None => unsafe { cu!(cuCtxWaitEvent(context, event)) },
        }
    }

    [cudaStreamGetDevResource_ptsz(stream)]
    fn cudaStreamGetDevResource(
        stream: CUstream,
        resource: *mut CUdevResource,
        kind: CUdevResourceType,
    ) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamGetDevResource(stream, resource, kind)) }
    }
}

forward_without_context! {
    unsafe fn cudaExecutionCtxGetDevice(device: *mut c_int, context: CUcontext)
        = cuCtxGetDevice_v2(device, context);

    unsafe fn cudaExecutionCtxSynchronize(context: CUcontext) = cuCtxSynchronize_v2(context);

    unsafe fn cudaDevResourceGenerateDesc(
        description: *mut CUdevResourceDesc,
        resources: *mut CUdevResource,
        count: c_uint,
    ) = cuDevResourceGenerateDesc(description, resources, count);

    unsafe fn cudaDevSmResourceSplit(
        result: *mut CUdevResource,
        groups: c_uint,
        input: *const CUdevResource,
        remainder: *mut CUdevResource,
        flags: c_uint,
        params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    ) = cuDevSmResourceSplit(result, groups, input, remainder, flags, params);

    unsafe fn cudaDevSmResourceSplitByCount(
        result: *mut CUdevResource,
        groups: *mut c_uint,
        input: *const CUdevResource,
        remaining: *mut CUdevResource,
        flags: c_uint,
        minimum: c_uint,
    ) = cuDevSmResourceSplitByCount(result, groups, input, remaining, flags, minimum);

    unsafe fn cudaDeviceGetDevResource(
        device: c_int,
        resource: *mut CUdevResource,
        kind: CUdevResourceType,
    ) = cuDeviceGetDevResource(device, resource, kind);
}
