//! Failures on request.

use std::time::Duration;

use curium_nccl::Communicator;
use curium_nccl::sys::ncclResult_t;

use super::registry;

/// A failure of one rank of a simulated communicator.
///
/// ```
/// use curium_driver::Driver;
/// use curium_memory::DeviceBuffer;
/// use curium_nccl::{Communicator, CommunicatorOptions, Error, Reduction, UniqueId};
/// use curium_sim_libraries::NcclFault;
/// use std::time::Duration;
///
/// let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
/// let context = driver.device(0)?.primary_context()?;
/// let nccl = curium_sim_libraries::nccl();
/// let stream = context.stream()?;
/// let options = CommunicatorOptions::new().with_timeout(Duration::from_millis(50));
/// let mut rank = Communicator::with_options(&nccl, &context, UniqueId::new(&nccl)?, 0, 1, options)?;
/// let mut x = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
///
/// NcclFault::Silence.inject(&mut rank)?;
/// rank.all_reduce_in_place(&stream, &mut x, Reduction::Sum)?;
/// let Err(Error::Timeout(error)) = rank.synchronize(&stream) else { panic!("the rank is silent") };
/// assert_eq!(&*error.outstanding, "operation 1, all_reduce of 8 elements");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NcclFault {
    /// The rank's later operations never run, as those of a process that has ended: the other ranks wait for it.
    Silence,
    /// Each of the rank's later operations takes this much longer.
    Delay(Duration),
    /// The other ranks get this asynchronous error, such as [`ncclResult_t::ncclRemoteError`].
    Error(ncclResult_t),
}

impl NcclFault {
    /// Makes the rank of a simulated communicator fail from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`](curium_nccl::Error::Aborted) if the communicator was aborted.
    pub fn inject(self, communicator: &mut Communicator) -> curium_nccl::Result<()> {
        let Ok(member) = registry::look_up(communicator.as_raw()?) else {
            return Ok(());
        };
        match self {
            Self::Error(code) => member
                .link
                .fail((code, format!("rank {} failed", member.rank))),
            fault => *member.fault.lock() = Some(fault),
        }
        Ok(())
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
