//! Peer access.

use curium_sys::CUresult;

use super::Context;
use crate::call;
use crate::{Error, Result};

impl Context {
    /// Enables kernels of this context to access memory of `peer`, a context of another device.
    /// Enabling it again has no effect. Access in the other direction must be enabled separately.
    ///
    /// Does not apply to memory pools or to memory mapped with the virtual memory management API,
    /// whose access is set separately.
    ///
    /// CUDA: `cuCtxEnablePeerAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_PEER_ACCESS_UNSUPPORTED` if
    /// [`Device::can_access_peer`](crate::Device::can_access_peer) returns `false` or the devices
    /// are the same; `CUDA_ERROR_TOO_MANY_PEERS` if the hardware supports no more peers; an
    /// argument error if the contexts belong to different drivers.
    #[doc(alias = "cuCtxEnablePeerAccess")]
    #[doc(alias = "cudaDeviceEnablePeerAccess")]
    pub fn enable_peer_access(&self, peer: &Self) -> Result<()> {
        self.driver()
            .check_same(peer.driver(), "Context::enable_peer_access")?;
        let result = self.entered(|driver| {
            // SAFETY: `peer` is live and belongs to this driver, this context is current, and the
            // flags must be 0.
            unsafe { call!(driver, cuCtxEnablePeerAccess(peer.as_raw(), 0)) }
        });
        unless(result, CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
            .map_err(|error| about_peers(error, self, peer))
    }

    /// Disables access to the memory of `peer`. Has no effect if it is not enabled. A kernel that
    /// still accesses that memory fails, and its context is lost.
    ///
    /// CUDA: `cuCtxDisablePeerAccess`.
    ///
    /// # Errors
    ///
    /// An argument error if the contexts belong to different drivers, and any error returned by the
    /// driver.
    #[doc(alias = "cuCtxDisablePeerAccess")]
    #[doc(alias = "cudaDeviceDisablePeerAccess")]
    pub fn disable_peer_access(&self, peer: &Self) -> Result<()> {
        self.driver()
            .check_same(peer.driver(), "Context::disable_peer_access")?;
        let result = self.entered(|driver| {
            // SAFETY: `peer` is live and belongs to this driver, and this context is current.
            unsafe { call!(driver, cuCtxDisablePeerAccess(peer.as_raw())) }
        });
        unless(result, CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
            .map_err(|error| about_peers(error, self, peer))
    }
}

/// Treats the code `already` as success: the requested state is in effect.
fn unless(result: Result<()>, already: CUresult) -> Result<()> {
    match result {
        Err(error) if error.code() == Some(already) => Ok(()),
        result => result,
    }
}

#[cold]
fn about_peers(error: Error, from: &Context, to: &Context) -> Error {
    let source = from.device();
    let target = to.device();
    error.about(format!("device {} to device {}", source.as_raw(), target.as_raw())).advised(|call| {
        let is_refused = call.code == CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED && source.as_raw() != target.as_raw();
        let advice = "check `Device::can_access_peer` first, and copy between devices that are not peers, such as those of Windows and WSL";
        is_refused.then(|| advice.into())
    })
}
