//! The LUID of a device on Windows.

use std::ffi::c_char;

use crate::call;
use crate::{Device, Result};

/// The locally unique identifier (LUID) of a device, which graphics APIs on Windows use.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Luid {
    /// The LUID.
    pub bytes: [u8; 8],
    /// The node mask: one bit that selects the device among linked adapters with this LUID.
    pub node_mask: u32,
}

impl Device {
    /// Returns the locally unique identifier (LUID) of this device, which graphics APIs on Windows
    /// use.
    ///
    /// CUDA: `cuDeviceGetLuid`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` on systems without LUIDs, such as Linux.
    #[doc(alias = "cuDeviceGetLuid")]
    pub fn luid(&self) -> Result<Luid> {
        let mut bytes = [0_u8; 8];
        let mut node_mask = 0;
        // SAFETY: `bytes` has room for the eight bytes of a LUID, and `node_mask` is valid for
        // writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetLuid(
                    bytes.as_mut_ptr().cast::<c_char>(),
                    &raw mut node_mask,
                    self.as_raw()
                )
            )
        }?;
        Ok(Luid { bytes, node_mask })
    }
}
