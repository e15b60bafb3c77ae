//! Failures on request.

use std::time::Duration;

use curium_sys::nccl::{ncclComm_t, ncclResult_t};

use super::registry;

/// A failure of one rank of a simulated communicator.
///
/// ```
/// use std::ptr;
///
/// use curium_driver::Driver;
/// use curium_driver::sys::call;
/// use curium_sim_libraries::NcclFault;
/// use curium_sys::nccl::{Nccl, ncclResult_t};
///
/// let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
/// let context = driver.device(0)?.primary_context()?;
/// let nccl: Nccl = curium_sim_libraries::nccl();
/// let mut communicator = ptr::null_mut();
/// let mut code = ncclResult_t::ncclSuccess;
/// // SAFETY: the results are valid for writes, and the list of devices may be null.
/// unsafe {
///     context.entered(|_| Ok(call!(nccl.api(), ncclCommInitAll(&raw mut communicator, 1, ptr::null()))))??;
///     NcclFault::Error(ncclResult_t::ncclRemoteError).inject(communicator);
///     call!(nccl.api(), ncclCommGetAsyncError(communicator, &raw mut code))?;
/// }
/// assert_eq!(code, ncclResult_t::ncclRemoteError);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NcclFault {
    /// The rank's later operations never run, as those of a process that has ended: the other ranks
    /// wait for it.
    Silence,
    /// Each of the rank's later operations takes this much longer.
    Delay(Duration),
    /// The other ranks get this asynchronous error, such as [`ncclResult_t::ncclRemoteError`].
    Error(ncclResult_t),
}

impl NcclFault {
    /// Makes the rank of a simulated communicator fail from now on.
    /// `curium_nccl::Communicator::as_raw` returns the communicator. One of another library is not
    /// changed.
    pub fn inject(self, communicator: ncclComm_t) {
        let Ok(member) = registry::look_up(communicator) else {
            return;
        };
        match self {
            Self::Error(code) => member
                .link
                .fail((code, format!("rank {} failed", member.rank))),
            fault => *member.fault.lock() = Some(fault),
        }
    }
}

/// Returns the number of simulated communicators that exist, to find leaks.
#[must_use]
pub fn live_communicators() -> usize {
    registry::live()
}

/// Returns the number of registrations of memory with simulated communicators, to find leaks.
#[must_use]
pub fn live_registrations() -> usize {
    registry::registered()
}
