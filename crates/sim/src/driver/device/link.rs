//! Links between devices, and to the host.
//!
//! Every two devices have a link that supports accesses and all atomic operations, as between GPUs
//! on one board, except integrated devices and those on Windows.

use curium_sys::{CUdevice, CUresult};

use crate::context::Context;
use crate::driver::device::Devices;
use crate::driver::state::State;
use crate::handle::Id;
use crate::result::Result;

impl State {
    /// Returns the other devices whose memory a context can access.
    pub(crate) fn peer_devices(&self, context: Id<Context>) -> Vec<usize> {
        let peers = self
            .contexts
            .get(self.owning_context(context))
            .map(|context| context.peers.as_slice())
            .unwrap_or_default();
        peers
            .iter()
            .filter_map(|peer| self.contexts.get(*peer))
            .map(|peer| peer.device)
            .collect()
    }
}

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
