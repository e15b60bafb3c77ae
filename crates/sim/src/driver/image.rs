//! The compute capability for which images are compiled.

use curium_sys::CUdevice_attribute;

use crate::driver::device::Devices;

impl Devices<'_> {
    /// Returns the compute capability of the devices, times ten.
    pub(crate) fn compute_capability(&self) -> u32 {
        self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
            + self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    }
}
