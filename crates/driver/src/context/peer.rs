//! Peer access.

use curium_sys::CUresult;

use super::Context;
use crate::call;
use crate::{Error, Result};

impl Context {
    /// Lets kernels of this context access memory of `peer`, a context of another device. It is enough to do it once, and does no harm
    /// to do it again. The other direction is enabled apart.
    ///
    /// Memory of a pool has its own access, and so has memory that is mapped by hand.
    ///
    /// CUDA: `cuCtxEnablePeerAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_PEER_ACCESS_UNSUPPORTED` if the devices cannot, as [`Device::can_access_peer`](crate::Device::can_access_peer)
    /// says, or are the same; `CUDA_ERROR_TOO_MANY_PEERS` if the hardware has no room for another; an argument error if the
    /// contexts are of different drivers.
    #[doc(alias = "cuCtxEnablePeerAccess")]
    #[inline]
    pub fn enable_peer_access(&self, peer: &Self) -> Result<()> {
        self.driver().expect_same(peer.driver(), "Context::enable_peer_access")?;
        let result = self.entered(|driver| {
            // SAFETY: `peer` is live and of this driver, and this context is current; 0 is all that the flags may be.
            unsafe { call!(driver, cuCtxEnablePeerAccess(peer.as_raw(), 0)) }
        });
        unless(result, CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED).map_err(|error| about_peers(error, self, peer))
    }

    /// Ends what [`Context::enable_peer_access`] has begun; does no harm if nothing has. A kernel that still accesses the other's memory
    /// fails, and with it the context.
    ///
    /// CUDA: `cuCtxDisablePeerAccess`.
    ///
    /// # Errors
    ///
    /// An argument error if the contexts are of different drivers, and an error of the driver.
    #[doc(alias = "cuCtxDisablePeerAccess")]
    #[inline]
    pub fn disable_peer_access(&self, peer: &Self) -> Result<()> {
        self.driver().expect_same(peer.driver(), "Context::disable_peer_access")?;
        let result = self.entered(|driver| {
            // SAFETY: `peer` is live and of this driver, and this context is current.
            unsafe { call!(driver, cuCtxDisablePeerAccess(peer.as_raw())) }
        });
        unless(result, CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED).map_err(|error| about_peers(error, self, peer))
    }
}

/// Returns the result, if it is not that things are as asked for already.
#[inline]
fn unless(result: Result<()>, already: CUresult) -> Result<()> {
    match result {
        Err(error) if error.code() == Some(already) => Ok(()),
        result => result,
    }
}

#[cold]
fn about_peers(error: Error, from: &Context, to: &Context) -> Error {
    let (source, target) = (from.device(), to.device());
    error.about(format!("device {} to device {}", source.as_raw(), target.as_raw())).advised(|call| {
        let is_refused = call.code == CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED && source.as_raw() != target.as_raw();
        let advice = "check `Device::can_access_peer` first, and copy between devices that are no peers, such as those of Windows and WSL";
        is_refused.then(|| advice.into())
    })
}
