//! Registered memory, and memory of the library.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{LazyLock, Mutex};

use curium_nccl::sys::{NCCL_WIN_REQUIRED_ALIGNMENT, ncclComm_t, ncclDataType_t, ncclResult_t, ncclWindow_t};
use curium_sim::{allocate, free};

use super::clique::Channel;
use super::group::Step;
use super::operation::{Kind, Operation};
use super::registry::look_up;
use super::{Result, failed, group, lock, write};

const ALIGNMENT: usize = NCCL_WIN_REQUIRED_ALIGNMENT as usize;

/// The allocations of `ncclMemAlloc`, whose addresses are multiples of [`ALIGNMENT`], by address: that of the driver.
static MEMORY: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);

fn expect_memory(memory: *mut c_void, bytes: usize) -> Result {
    if !memory.is_null() && bytes > 0 {
        return Ok(());
    }
    Err(failed(ncclResult_t::ncclInvalidArgument, format!("{bytes} bytes at {memory:?} cannot be registered")))
}

functions! {
    fn ncclCommRegister(communicator: ncclComm_t, memory: *mut c_void, bytes: usize, place: *mut *mut c_void) {
        let member = look_up(communicator)?;
        expect_memory(memory, bytes)?;
        let handle = member.register(memory.addr(), bytes, false);
        // SAFETY: the caller passes a place for the handle.
        unsafe { write(place, ptr::without_provenance_mut(handle)) }
    }

    fn ncclCommDeregister(communicator: ncclComm_t, handle: *mut c_void) {
        look_up(communicator)?.deregister(handle.addr(), false)
    }

    fn ncclCommWindowRegister(
        communicator: ncclComm_t,
        memory: *mut c_void,
        bytes: usize,
        place: *mut ncclWindow_t,
        _flags: c_int,
    ) {
        let member = look_up(communicator)?;
        expect_memory(memory, bytes)?;
        if !memory.addr().is_multiple_of(ALIGNMENT) {
            let message = format!("the address of a window is not a multiple of {ALIGNMENT} bytes ({memory:?})");
            return Err(failed(ncclResult_t::ncclInvalidArgument, message));
        }
        let call = member.number(Channel::Collective, false);
        let element = ncclDataType_t::ncclUint8;
        let operation = Operation { kind: Kind::Window, count: bytes, element, width: 1 };
        member.link.agree(Channel::Collective, call, member.rank, &operation)?;
        let creation = member.number(Channel::Creation, false);
        let key = member.link.join_meeting(creation, member.rank, member.link.size(), &[]);
        let handle = member.register(memory.addr(), bytes, true);
        // SAFETY: the caller passes a place for the window.
        unsafe { write(place, ptr::without_provenance_mut(handle)) }?;
        group::take(Step::new(move || match member.link.wait_for(key) {
            Ok(_) => Ok(None),
            Err(error) => member.deregister(handle, true).and(Err(error)),
        }))
    }

    fn ncclCommWindowDeregister(communicator: ncclComm_t, window: ncclWindow_t) {
        look_up(communicator)?.deregister(window.addr(), true)
    }

    fn ncclMemAlloc(place: *mut *mut c_void, bytes: usize) {
        let padded = bytes.checked_add(ALIGNMENT).filter(|_| bytes > 0);
        let padded = padded.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("{bytes} bytes")))?;
        let failure = |error| failed(ncclResult_t::ncclUnhandledCudaError, format!("{bytes} bytes: {error:?}"));
        let start = allocate(padded).map_err(failure)?;
        let address = start.next_multiple_of(ALIGNMENT as u64);
        lock(&MEMORY).insert(address, start);
        // SAFETY: the caller passes a place for the address.
        unsafe { write(place, ptr::without_provenance_mut(address as usize)) }
    }

    fn ncclMemFree(memory: *mut c_void) {
        let start = lock(&MEMORY).remove(&(memory.addr() as u64));
        let start = start.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown memory"))?;
        // SAFETY: the caller guarantees that no work uses the memory.
        let freed = unsafe { free(start) };
        freed.map_err(|error| failed(ncclResult_t::ncclUnhandledCudaError, format!("{error:?}")))
    }
}
