//! A simulated driver in this process.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curium_ptx::exec::Report;
use curium_sys::{Api, ApiProvider, FromProvider, Function};

use crate::config::Config;
use crate::driver::Driver;
use crate::error::Error;
use crate::fault::Fault;
use crate::live::{LiveHandles, LiveObject};
use crate::summary::Summary;
use crate::{entry, slot};

/// The time for which an object may outlive its user before it counts as leaked: another thread may
/// be about to drop the last handle.
const PATIENCE: Duration = Duration::from_secs(1);

/// A CUDA driver on the CPU.
///
/// Each simulator is an independent driver, as in a separate process: no handle, context or error
/// is shared with another. Up to 31 can be live at once.
///
/// Dropping the last clone ends the driver. Running work is waited for (kernels are canceled), and
/// queued work is dropped. The functions of its [`Api`] then return `CUDA_ERROR_DEINITIALIZED`
/// until a later simulator reuses the slot.
///
/// Clones share one driver.
#[derive(Clone, Debug)]
pub struct Simulator {
    running: Arc<Running>,
}

/// A driver in its slot.
#[derive(Debug)]
struct Running {
    slot: usize,
    driver: Arc<Driver>,
}

impl FromProvider<Self> for Simulator {
    type Error = Infallible;

    fn from_provider(provider: Self) -> Result<Self, Infallible> {
        Ok(provider)
    }
}

// SAFETY: the simulator implements the driver's functions. They are those of a slot, which stays
// its own until the last clone is dropped.
unsafe impl ApiProvider for Simulator {
    fn api(&self) -> Api {
        Self::api(self)
    }
}

impl Simulator {
    /// Creates a driver with these settings. The caller calls `cuInit`, as with any driver.
    ///
    /// If all slots are taken, this waits until a simulator is dropped. Eight of the 31 slots are
    /// for threads that have created one already.
    ///
    /// # Errors
    ///
    /// [`Error`] if this thread created all live simulators and none was dropped within 60 seconds,
    /// or if the system does not provide the address space for device memory.
    pub fn new(config: Config) -> Result<Self, Error> {
        let slot = slot::take().ok_or(Error::NoFreeSlot)?;
        match Driver::new(config, slot, entry::address) {
            Ok(driver) => {
                slot::fill(slot, Arc::clone(&driver));
                Ok(Self {
                    running: Arc::new(Running { slot, driver }),
                })
            }
            Err(error) => {
                slot::release(slot);
                Err(error)
            }
        }
    }

    /// Initializes this driver for the layers above: as a `Driver` of `curium-driver`, or as the
    /// `Device` of ordinal 0.
    ///
    /// The simulator lives until the last handle created from the result is dropped, even if `self`
    /// is dropped earlier.
    ///
    /// ```
    /// use curium_driver::Driver;
    /// use curium_sim::{Config, Simulator};
    ///
    /// let simulator = Simulator::new(Config::new().with_devices(2))?;
    /// let driver = simulator.driver::<Driver>()?;
    /// assert_eq!(driver.device_count()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of `cuInit` or of another call that initializes the driver, such as one
    /// that [`Simulator::inject`] makes fail.
    pub fn driver<D: FromProvider<Self>>(&self) -> Result<D, D::Error> {
        D::from_provider(self.clone())
    }

    /// Returns the functions of this driver. Functions that the settings leave out are `None`.
    #[must_use]
    pub fn api(&self) -> Api {
        let mut api = entry::api(self.running.slot);
        let missing = Function::all().filter(|function| !self.inner().config().has(*function));
        missing.for_each(|function| api.remove(function));
        api
    }

    /// Returns the live objects by kind.
    #[must_use]
    pub fn live_handles(&self) -> LiveHandles {
        self.inner().live_handles()
    }

    /// Returns the live objects individually, the oldest first: the kind, the creating call, the
    /// size, the context and the stream of each.
    ///
    /// To detect leaks after asynchronous work, call [`Simulator::leaked_objects`].
    #[must_use]
    pub fn live_objects(&self) -> Vec<LiveObject> {
        self.inner().live_objects()
    }

    /// Returns the objects that are still live once other threads have had time to drop theirs,
    /// oldest first.
    ///
    /// A background thread of `curium-driver` completes futures and frees the memory of detached
    /// copies, so it may hold the last handle of an event for a moment after the program has
    /// dropped its own. This waits up to one second until nothing is live, and returns immediately
    /// if nothing is. [`Simulator::live_objects`] does not wait.
    ///
    /// ```
    /// use curium_driver::Device;
    /// use curium_sim::{Config, Simulator};
    ///
    /// let simulator = Simulator::new(Config::new())?;
    /// let stream = simulator.driver::<Device>()?.primary_context()?.stream()?;
    /// assert_eq!(simulator.live_objects().len(), 2);
    /// drop(stream);
    /// assert!(simulator.leaked_objects().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leaked_objects(&self) -> Vec<LiveObject> {
        let deadline = Instant::now() + PATIENCE;
        while !self.live_handles().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        self.live_objects()
    }

    /// Returns the number of times that `function` was called.
    #[must_use]
    pub fn calls(&self, function: Function) -> u64 {
        self.inner().counts().calls(function)
    }

    /// Returns the functions that were called and are not implemented, and the number of calls of
    /// each.
    #[must_use]
    pub fn unsupported_calls(&self) -> Vec<(Function, u64)> {
        self.inner().counts().unsupported()
    }

    /// Returns the reports about kernels, copies and graphs, oldest first. At most a thousand are
    /// kept.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        self.inner().reports()
    }

    /// Returns a summary of the program so far: calls, unsupported functions, reports and live
    /// objects.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.inner().summary()
    }

    /// Adds a fault; its calls are counted from now.
    pub fn inject(&self, fault: Fault) {
        self.inner().faults().add(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.inner().faults().clear();
    }

    /// Notifies all registered callbacks that the process exceeds its memory budget on a device by
    /// `bytes`. Returns when all callbacks have returned, on another thread.
    pub fn notify_over_budget(&self, device: usize, bytes: u64) {
        self.inner().notify_over_budget(device, bytes);
    }

    /// Clears sticky errors of all devices. For tests only: with a real driver, sticky errors last
    /// until the process ends.
    pub fn reset_errors(&self) {
        self.inner().lock().contexts.clear_sticky_errors();
    }

    fn inner(&self) -> &Driver {
        &self.running.driver
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        slot::empty(self.slot);
        self.driver.shut_down();
        slot::release(self.slot);
    }
}
