//! Peer-to-peer attributes.

use curium_sys::{CUdevice_P2PAttribute, CUresult};

use crate::call;
use crate::{Device, Result};

/// The properties of a device's access to the memory of a peer device.
///
/// Access must be enabled before it is used:
/// [`Context::enable_peer_access`](crate::Context::enable_peer_access).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PeerLink {
    /// `true` if kernels on the device can access memory of the peer.
    pub access: bool,
    /// The relative performance rank of the link; 0 is the fastest.
    pub performance_rank: u32,
    /// `true` if all atomic operations are supported across the link.
    pub all_atomics: bool,
    /// `true` if only some atomic operations are supported. [`Device::peer_atomics`] returns them.
    /// Always `false` before CUDA 13.0.
    pub some_atomics: bool,
    /// `true` if arrays of the peer can be accessed.
    pub arrays: bool,
}

impl Device {
    /// Returns `true` if kernels on this device can access memory of `peer` once access is enabled.
    /// A device is not its own peer.
    ///
    /// CUDA: `cuDeviceCanAccessPeer`.
    ///
    /// # Errors
    ///
    /// An argument error if the devices belong to different drivers.
    #[doc(alias = "cuDeviceCanAccessPeer")]
    #[doc(alias = "cudaDeviceCanAccessPeer")]
    pub fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        self.driver()
            .check_same(peer.driver(), "Device::can_access_peer")?;
        let mut answer = 0;
        // SAFETY: `answer` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceCanAccessPeer(&raw mut answer, self.as_raw(), peer.as_raw())
            )
        }?;
        Ok(answer != 0)
    }

    /// Returns an attribute of the link to `peer` as a raw value. [`Device::peer_link`] returns all
    /// of them with their types.
    ///
    /// CUDA: `cuDeviceGetP2PAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if `peer` is the same device, `CUDA_ERROR_INVALID_VALUE` for an
    /// attribute that the driver does not support, an argument error if the devices belong to
    /// different drivers.
    #[doc(alias = "cuDeviceGetP2PAttribute")]
    #[doc(alias = "cudaDeviceGetP2PAttribute")]
    pub fn peer_attribute(&self, peer: &Self, attribute: CUdevice_P2PAttribute) -> Result<i32> {
        self.driver()
            .check_same(peer.driver(), "Device::peer_attribute")?;
        let from = self.as_raw();
        let to = peer.as_raw();
        let mut value = 0;
        // SAFETY: `value` is valid for writes.
        let result = unsafe {
            call!(
                self.driver(),
                cuDeviceGetP2PAttribute(&raw mut value, attribute, from, to)
            )
        };
        result.map_err(|error| {
            error.about(format!(
                "attribute {} of devices {from} and {to}",
                attribute.0
            ))
        })?;
        Ok(value)
    }

    fn peer_flag(&self, peer: &Self, attribute: CUdevice_P2PAttribute) -> Result<bool> {
        Ok(self.peer_attribute(peer, attribute)? != 0)
    }

    /// Returns the properties of this device's access to the memory of `peer`.
    ///
    /// CUDA: `cuDeviceGetP2PAttribute`, once for each field.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if `peer` is the same device, an argument error if the devices
    /// belong to different drivers.
    pub fn peer_link(&self, peer: &Self) -> Result<PeerLink> {
        use CUdevice_P2PAttribute as P2P;
        Ok(PeerLink {
            access: self.peer_flag(peer, P2P::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)?,
            performance_rank: self
                .peer_attribute(peer, P2P::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)?
                .cast_unsigned(),
            all_atomics: self
                .peer_flag(peer, P2P::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)?,
            some_atomics: known(self.peer_flag(
                peer,
                P2P::CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED,
            ))?,
            arrays: self.peer_flag(
                peer,
                P2P::CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
            )?,
        })
    }
}

/// Returns `false` for an attribute that the driver does not support.
fn known(answer: Result<bool>) -> Result<bool> {
    match answer {
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => Ok(false),
        answer => answer,
    }
}
