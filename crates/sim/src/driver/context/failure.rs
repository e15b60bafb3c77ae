//! The failures of devices.

use curium_sys::CUresult;

use crate::context::Context;
use crate::driver::context::Contexts;
use crate::fault;
use crate::handle::Id;
use crate::result::Result;

/// The state of a device.
#[derive(Default)]
pub(super) struct Device {
    /// The primary context, from its first retain on, whether it is active or not.
    pub(super) primary: Option<Id<Context>>,
    /// The flags for the next activation of the primary context.
    pub(super) primary_flags: u32,
    /// The code of the fault after which the device does no more work.
    sticky: Option<CUresult>,
}

impl Contexts {
    /// Checks that the device has not failed.
    pub(crate) fn check_device(&self, device: usize) -> Result {
        self.sticky_error(device).map_or(Ok(()), Err)
    }

    /// Returns the code of the fault after which the device does no more work.
    pub(crate) fn sticky_error(&self, device: usize) -> Option<CUresult> {
        self.devices.get(device).and_then(|device| device.sticky)
    }

    /// Records a sticky fault; the first one remains.
    pub(crate) fn record_sticky_error(&mut self, device: usize, code: CUresult) {
        if let Some(device) = self.devices.get_mut(device) {
            device.sticky = device.sticky.or(Some(code));
        }
    }

    /// Makes all devices fail as if they were lost.
    pub(crate) fn lose_devices(&mut self) {
        for device in &mut self.devices {
            device.sticky = device.sticky.or(Some(fault::LOST));
        }
    }

    /// Lets all devices work again.
    pub(crate) fn clear_sticky_errors(&mut self) {
        for device in &mut self.devices {
            device.sticky = None;
        }
    }
}
