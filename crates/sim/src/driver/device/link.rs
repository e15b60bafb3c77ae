//! Links between devices, and to the host.
//!
//! Every two devices have a link that supports accesses and all atomic operations, as between GPUs
//! on one board, except integrated devices and those on Windows.

use curium_sys::{CUdevice, CUresult};

use crate::driver::device::Devices;
use crate::result::Result;

impl Devices<'_> {
    /// Checks that both devices exist and differ.
    pub(crate) fn link(&self, source: CUdevice, target: CUdevice) -> Result {
        if self.device(source)? == self.device(target)? {
            Err(CUresult::CUDA_ERROR_INVALID_DEVICE)
        } else {
            Ok(())
        }
    }
}
