//! Names and descriptions of the codes.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use curium_sys::CUresult;

use crate::argument::Pointer;
use crate::driver::{Driver, Result};

/// A code, the name of its constant, and what it means.
type Entry = (CUresult, &'static CStr, &'static CStr);

macro_rules! codes {
    ($($name:ident $text:literal)*) => {
        &[$((CUresult::$name, text(concat!(stringify!($name), "\0")), text(concat!($text, "\0"))),)*]
    };
}

const CODES: &[Entry] = codes! {
    CUDA_SUCCESS "no error"
    CUDA_ERROR_INVALID_VALUE "an argument is invalid"
    CUDA_ERROR_OUT_OF_MEMORY "there is not enough memory"
    CUDA_ERROR_NOT_INITIALIZED "the driver was not initialised"
    CUDA_ERROR_DEINITIALIZED "the driver is shutting down or has ended"
    CUDA_ERROR_PROFILER_DISABLED "the profiler is disabled"
    CUDA_ERROR_PROFILER_NOT_INITIALIZED "the profiler was not initialised"
    CUDA_ERROR_PROFILER_ALREADY_STARTED "the profiler was started before"
    CUDA_ERROR_PROFILER_ALREADY_STOPPED "the profiler was stopped before"
    CUDA_ERROR_STUB_LIBRARY "the library is a stub and no driver"
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER "the call needs a newer driver"
    CUDA_ERROR_DEVICE_UNAVAILABLE "the device is busy or unavailable"
    CUDA_ERROR_MULTICAST_RESOURCE_FULL "the multicast resources are used up"
    CUDA_ERROR_NO_DEVICE "there is no CUDA device"
    CUDA_ERROR_INVALID_DEVICE "the device ordinal is invalid"
    CUDA_ERROR_DEVICE_NOT_LICENSED "the device has no licence"
    CUDA_ERROR_INVALID_IMAGE "the image of device code is invalid"
    CUDA_ERROR_INVALID_CONTEXT "there is no valid context"
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT "the context is current already"
    CUDA_ERROR_MAP_FAILED "mapping failed"
    CUDA_ERROR_UNMAP_FAILED "unmapping failed"
    CUDA_ERROR_ARRAY_IS_MAPPED "the array is mapped"
    CUDA_ERROR_ALREADY_MAPPED "the resource is mapped already"
    CUDA_ERROR_NO_BINARY_FOR_GPU "the image has no code for this device"
    CUDA_ERROR_ALREADY_ACQUIRED "the resource was acquired already"
    CUDA_ERROR_NOT_MAPPED "the resource is not mapped"
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY "the resource is not mapped as an array"
    CUDA_ERROR_NOT_MAPPED_AS_POINTER "the resource is not mapped as a pointer"
    CUDA_ERROR_ECC_UNCORRECTABLE "a memory error could not be corrected"
    CUDA_ERROR_UNSUPPORTED_LIMIT "the device has no such limit"
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE "another thread uses the context"
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED "the devices have no access to each other"
    CUDA_ERROR_INVALID_PTX "the PTX could not be compiled"
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT "the graphics context is invalid"
    CUDA_ERROR_NVLINK_UNCORRECTABLE "an NVLink error could not be corrected"
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND "the PTX compiler was not found"
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION "the PTX is of a newer version than the driver knows"
    CUDA_ERROR_JIT_COMPILATION_DISABLED "the compilation of PTX is disabled"
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY "the execution affinity is not supported"
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC "the code synchronises on the device in a way that is not supported"
    CUDA_ERROR_CONTAINED "a memory error was contained to this process"
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION "the loader is too old for the image"
    CUDA_ERROR_INVALID_SOURCE "the source of device code is invalid"
    CUDA_ERROR_FILE_NOT_FOUND "the file was not found"
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND "a symbol of a shared object was not found"
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED "a shared object could not be initialised"
    CUDA_ERROR_OPERATING_SYSTEM "a call to the operating system failed"
    CUDA_ERROR_INVALID_HANDLE "the handle is invalid"
    CUDA_ERROR_ILLEGAL_STATE "the object is in a state that does not allow this"
    CUDA_ERROR_LOSSY_QUERY "the query would lose information"
    CUDA_ERROR_NOT_FOUND "the name was not found"
    CUDA_ERROR_NOT_READY "the work has not completed yet"
    CUDA_ERROR_ILLEGAL_ADDRESS "a kernel accessed an illegal address"
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES "the launch needs more resources than there are"
    CUDA_ERROR_LAUNCH_TIMEOUT "the kernel ran for too long"
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING "the launch uses textures in an incompatible mode"
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED "peer access is enabled already"
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED "peer access is not enabled"
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE "the primary context is active"
    CUDA_ERROR_CONTEXT_IS_DESTROYED "the context was destroyed"
    CUDA_ERROR_ASSERT "an assertion in a kernel failed"
    CUDA_ERROR_TOO_MANY_PEERS "there are too many peers"
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED "the host memory is registered already"
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED "the host memory is not registered"
    CUDA_ERROR_HARDWARE_STACK_ERROR "a kernel's stack is corrupt or overflowed"
    CUDA_ERROR_ILLEGAL_INSTRUCTION "a kernel ran an illegal instruction"
    CUDA_ERROR_MISALIGNED_ADDRESS "a kernel accessed a misaligned address"
    CUDA_ERROR_INVALID_ADDRESS_SPACE "a kernel accessed the wrong address space"
    CUDA_ERROR_INVALID_PC "a kernel jumped to an invalid place"
    CUDA_ERROR_LAUNCH_FAILED "a kernel failed"
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE "the blocks of the cooperative launch do not fit on the device at once"
    CUDA_ERROR_TENSOR_MEMORY_LEAK "a kernel ended without freeing its tensor memory"
    CUDA_ERROR_NOT_PERMITTED "the operation is not permitted"
    CUDA_ERROR_NOT_SUPPORTED "the operation is not supported"
    CUDA_ERROR_SYSTEM_NOT_READY "the system is not ready for CUDA"
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH "the parts of the driver are of different versions"
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE "the device does not support forward compatibility"
    CUDA_ERROR_MPS_CONNECTION_FAILED "no connection to the MPS server"
    CUDA_ERROR_MPS_RPC_FAILURE "a call to the MPS server failed"
    CUDA_ERROR_MPS_SERVER_NOT_READY "the MPS server is not ready"
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED "the MPS server has too many clients"
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED "the MPS server has too many connections"
    CUDA_ERROR_MPS_CLIENT_TERMINATED "the MPS server ended this client"
    CUDA_ERROR_CDP_NOT_SUPPORTED "launches from kernels are not supported"
    CUDA_ERROR_CDP_VERSION_MISMATCH "the versions of launching from kernels differ"
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED "the operation is not possible while a stream captures"
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED "the capture was invalidated by an earlier error"
    CUDA_ERROR_STREAM_CAPTURE_MERGE "the operation would merge two captures"
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED "the capture was not begun on this stream"
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED "the capture has a fork that was not joined"
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION "a dependency crosses the edge of the capture"
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT "the operation depends on a capturing stream through the legacy stream"
    CUDA_ERROR_CAPTURED_EVENT "the event was last recorded in a capture"
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD "the capture was begun by another thread"
    CUDA_ERROR_TIMEOUT "the time ran out"
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE "the change to the graph cannot be made in place"
    CUDA_ERROR_EXTERNAL_DEVICE "another device failed"
    CUDA_ERROR_INVALID_CLUSTER_SIZE "the cluster size is invalid"
    CUDA_ERROR_FUNCTION_NOT_LOADED "the function is not loaded"
    CUDA_ERROR_INVALID_RESOURCE_TYPE "the resource is of the wrong type"
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION "the resource is configured wrongly"
    CUDA_ERROR_KEY_ROTATION "the keys of the secure session are being renewed"
    CUDA_ERROR_STREAM_DETACHED "the stream is detached"
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE "the graph could not be captured again"
    CUDA_ERROR_FABRIC_NOT_READY "the fabric is not ready"
    CUDA_ERROR_UNKNOWN "an unknown error happened"
};

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGetErrorName(&self, code: CUresult, name: Pointer<*const c_char>) -> Result {
        describe(code, name, |entry| entry.1)
    }

    pub(crate) fn cuGetErrorString(&self, code: CUresult, text: Pointer<*const c_char>) -> Result {
        describe(code, text, |entry| entry.2)
    }
}

/// The code with this name, with or without what all names of errors begin with.
pub(crate) fn code_named(name: &str) -> Option<CUresult> {
    let bare = |name: &str| name.strip_prefix("CUDA_ERROR_").unwrap_or(name).to_owned();
    CODES.iter().find(|entry| bare(&entry.1.to_string_lossy()) == bare(name)).map(|entry| entry.0)
}

/// What a code means.
/// The name of a code's constant, or its number.
pub(crate) fn name_of(code: CUresult) -> Cow<'static, str> {
    let named = CODES.iter().find(|entry| entry.0 == code);
    named.map_or_else(|| code.0.to_string().into(), |(_, name, _)| name.to_string_lossy())
}

pub(super) fn description(code: CUresult) -> Cow<'static, str> {
    let entry = CODES.iter().find(|entry| entry.0 == code);
    entry.map_or(Cow::Borrowed("an error of an unknown code"), |entry| entry.2.to_string_lossy())
}

/// Writes one text of the entry for `code`; an unknown code is an invalid value and gives a null pointer.
fn describe(code: CUresult, place: Pointer<*const c_char>, text: impl Fn(&Entry) -> &'static CStr) -> Result {
    let entry = CODES.iter().find(|entry| entry.0 == code);
    place.write(entry.map_or(std::ptr::null(), |entry| text(entry).as_ptr()))?;
    entry.map(|_| ()).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

const fn text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the table's texts hold no NUL"),
    }
}
