//! Registered memory, and memory of the library.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::LazyLock;

use curium_sim::{allocate, current_device, free, with_device};
use curium_sys::CUresult;
use curium_sys::nccl::{
    NCCL_WIN_REQUIRED_ALIGNMENT, ncclComm_t, ncclDataType_t, ncclResult_t, ncclWindow_t,
};
use parking_lot::Mutex;

use super::clique::Channel;
use super::group::Step;
use super::operation::{Kind, Operation};
use super::registry::look_up;
use super::{Result, failed, group, write};

const ALIGNMENT: usize = NCCL_WIN_REQUIRED_ALIGNMENT as usize;

/// The allocations of `ncclMemAlloc`, whose addresses are multiples of [`ALIGNMENT`], by address.
static MEMORY: LazyLock<Mutex<HashMap<u64, Allocation>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Copy)]
struct Allocation {
    /// The address that the driver returned.
    start: u64,
    /// The device, as [`current_device`] returns it.
    device: (i32, usize),
}

/// Returns an error for null with a size. Zero bytes can be registered, as with the library.
fn check_memory(memory: *mut c_void, bytes: usize) -> Result {
    if !memory.is_null() || bytes == 0 {
        return Ok(());
    }
    Err(failed(
        ncclResult_t::ncclInvalidArgument,
        format!("{bytes} bytes at {memory:?} cannot be registered"),
    ))
}

fn allocation_failure(bytes: usize, error: CUresult) -> ncclResult_t {
    failed(
        ncclResult_t::ncclUnhandledCudaError,
        format!("{bytes} bytes: {error:?}"),
    )
}

functions! {
    fn ncclCommRegister(communicator: ncclComm_t, memory: *mut c_void, bytes: usize, output: *mut *mut c_void) {
        let member = look_up(communicator)?;
        check_memory(memory, bytes)?;
        let handle = member.register(false);
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, ptr::without_provenance_mut(handle)) }
    }

    fn ncclCommDeregister(communicator: ncclComm_t, handle: *mut c_void) {
        if handle.is_null() {
            return Ok(());
        }
        look_up(communicator)?.deregister(handle.addr(), false)
    }

    fn ncclCommWindowRegister(
        communicator: ncclComm_t,
        memory: *mut c_void,
        bytes: usize,
        output: *mut ncclWindow_t,
        _flags: c_int,
    ) {
        let member = look_up(communicator)?;
        check_memory(memory, bytes)?;
        if !memory.addr().is_multiple_of(ALIGNMENT) {
            let message = format!("the address of a window is not a multiple of {ALIGNMENT} bytes ({memory:?})");
            return Err(failed(ncclResult_t::ncclInvalidArgument, message));
        }
        let call = member.number(Channel::Collective);
        let element = ncclDataType_t::ncclUint8;
        let operation = Operation { kind: Kind::Window, count: bytes, element, width: 1 };
        member.link.agree(Channel::Collective, call, member.rank, &operation)?;
        let creation = member.number(Channel::Creation);
        let key = member.link.join_meeting(creation, member.rank, member.link.size(), &[]);
        let handle = member.register(true);
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, ptr::without_provenance_mut(handle)) }?;
        group::take(Step::new(move || match member.link.wait_for(key) {
            Ok(_) => Ok(None),
            Err(error) => member.deregister(handle, true).and(Err(error)),
        }))
    }

    fn ncclCommWindowDeregister(communicator: ncclComm_t, window: ncclWindow_t) {
        look_up(communicator)?.deregister(window.addr(), true)
    }

    fn ncclMemAlloc(output: *mut *mut c_void, bytes: usize) {
        if output.is_null() {
            return Err(allocation_failure(bytes, CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        let mut address = 0;
        if bytes > 0 {
            let padded = bytes.checked_add(ALIGNMENT).ok_or_else(|| allocation_failure(bytes, CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
            let device = current_device().ok_or_else(|| allocation_failure(bytes, CUresult::CUDA_ERROR_INVALID_CONTEXT))?;
            let start = with_device(device, || allocate(padded)).unwrap_or_else(Err).map_err(|error| allocation_failure(bytes, error))?;
            address = start.next_multiple_of(ALIGNMENT as u64);
            MEMORY.lock().insert(address, Allocation { start, device });
        }
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, ptr::without_provenance_mut(address as usize)) }
    }

    fn ncclMemFree(memory: *mut c_void) {
        if memory.is_null() {
            return Ok(());
        }
        let removed = MEMORY.lock().remove(&(memory.addr() as u64));
        let Allocation { start, device } =
            removed.ok_or_else(|| failed(ncclResult_t::ncclUnhandledCudaError, "unknown memory"))?;
        // SAFETY: the caller guarantees that no work uses the memory.
        let freed = with_device(device, || unsafe { free(start) }).unwrap_or_else(Err);
        freed.map_err(|error| failed(ncclResult_t::ncclUnhandledCudaError, format!("{error:?}")))
    }
}
