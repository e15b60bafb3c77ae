//! The LUID of a device on Windows.

use std::ffi::c_char;

use crate::call;
use crate::{Device, Result};

/// The locally unique identifier by which graphics interfaces on Windows know a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Luid {
    /// The identifier.
    pub bytes: [u8; 8],
    /// Which of the linked adapters with this identifier the device is, as a bit.
    pub node_mask: u32,
}

impl Device {
    /// Returns the identifier by which graphics interfaces on Windows know this device.
    ///
    /// CUDA: `cuDeviceGetLuid`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where there is none, as on Linux.
    #[doc(alias = "cuDeviceGetLuid")]
    #[inline]
    pub fn luid(&self) -> Result<Luid> {
        let mut bytes = [0_u8; 8];
        let mut node_mask = 0;
        let place = bytes.as_mut_ptr().cast::<c_char>();
        // SAFETY: `place` has room for the eight bytes of an identifier, and `node_mask` is a valid place for the mask.
        unsafe { call!(self.driver(), cuDeviceGetLuid(place, &raw mut node_mask, self.as_raw())) }?;
        Ok(Luid { bytes, node_mask })
    }
}
