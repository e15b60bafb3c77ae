//! The functions of NCCL, for ranks in one process or in several of one machine.
//!
//! The process that creates an identifier has the communicator. Its own ranks use it directly, and those of other processes through a
//! connection over the loopback interface, whose port and secret are part of the identifier.
//!
//! An operation of a rank is two operations on its stream: the first contributes the rank's data to a *meeting*, and the second waits until
//! every rank has contributed, and writes the result. Operations are matched by their number on the communicator, and by the number of
//! times that they have run, so that graphs can be launched again.

mod clique;
mod communicator;
mod fault;
mod group;
mod link;
mod message;
mod operation;
mod reduce;
mod registration;
mod registry;
mod remote;
mod server;
mod transfer;

use std::sync::{Mutex, MutexGuard, PoisonError};

use curium_nccl::sys::{Api, ncclResult_t};

pub use self::fault::{NcclFault, live_communicators, live_registrations};
use self::message::Failure;

/// The result of a function.
type Result<T = (), E = ncclResult_t> = std::result::Result<T, E>;

/// The version that the library reports.
const VERSION: i32 = 23203;

/// The message of the last error, with the NUL that C requires.
static LAST_ERROR: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    communicator::add_to(&mut api);
    group::add_to(&mut api);
    registration::add_to(&mut api);
    transfer::add_to(&mut api);
    api
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> ncclResult_t {
    result.err().unwrap_or(ncclResult_t::ncclSuccess)
}

/// Records the message of an error, and returns its code.
fn failed(code: ncclResult_t, message: impl Into<String>) -> ncclResult_t {
    let mut text = message.into().into_bytes();
    text.push(0);
    *lock(&LAST_ERROR) = text;
    code
}

/// Records the message of a failure of the communicator, like [`failed`].
fn raised((code, text): Failure) -> ncclResult_t {
    failed(code, text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn write<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return Err(failed(ncclResult_t::ncclInvalidArgument, "a place for a result is null"));
    }
    // SAFETY: the caller guarantees that the place is valid for writes.
    unsafe { place.write(value) };
    Ok(())
}
