//! The functions of NCCL, for ranks in one process or in several of one machine.
//!
//! The process that creates an identifier has the communicator. Its own ranks use it directly, and
//! those of other processes through a connection over the loopback interface, whose port and secret
//! are part of the identifier.
//!
//! An operation of a rank is two operations on its stream: the first contributes the rank's data to
//! a *meeting*, and the second waits until every rank has contributed, and writes the result.
//! Operations are matched by their number on the communicator, and by the number of times that they
//! have run, so that graphs can be launched again.

/// Defines functions of NCCL, which return the code of their result, and `add_to`, which adds them
/// to a table.
macro_rules! functions {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> curium_sys::nccl::ncclResult_t {
                $crate::nccl::entry(|| -> $crate::nccl::Result { $body })
            }
        )*

        /// Adds the functions to a table.
        pub(super) fn add_to(api: &mut curium_sys::nccl::Api) {
            $(api.$name = Some($name);)*
        }
    };
}

mod clique;
mod communicator;
mod error;
mod fault;
mod group;
mod link;
mod message;
mod operation;
mod order;
mod reduce;
mod registration;
mod registry;
mod remote;
mod server;
mod transfer;

use curium_sys::nccl::{Api, ncclResult_t};

use self::error::failed;
pub use self::fault::{NcclFault, live_communicators, live_registrations};

/// The result of a function.
type Result<T = (), E = ncclResult_t> = std::result::Result<T, E>;

/// The version that the library reports.
const VERSION: i32 = 23203;

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    communicator::add_to(&mut api);
    error::add_to(&mut api);
    group::add_to(&mut api);
    registration::add_to(&mut api);
    transfer::add_to(&mut api);
    api
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> ncclResult_t {
    result.err().unwrap_or(ncclResult_t::ncclSuccess)
}

/// Runs the body of a function, and converts its result to the code that it returns.
fn entry(body: impl FnOnce() -> Result) -> ncclResult_t {
    code(body())
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn write<T>(output: *mut T, value: T) -> Result {
    if output.is_null() {
        return Err(failed(
            ncclResult_t::ncclInvalidArgument,
            "the address for a result is null",
        ));
    }
    // SAFETY: the caller guarantees that the output is valid for writes.
    unsafe { output.write(value) };
    Ok(())
}
