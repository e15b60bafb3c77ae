//! The largest cluster of a kernel.

use crate::object::function::ResolvedKernel;

/// The portable maximum cluster size, and the maximum of this device.
const PORTABLE_CLUSTER: u32 = 8;

const MAX_CLUSTER: u32 = 16;

impl ResolvedKernel {
    /// Returns the number of blocks that a cluster of the kernel may have.
    pub(crate) fn max_cluster_blocks(&self) -> u32 {
        if self.settings.allows_large_clusters {
            MAX_CLUSTER
        } else {
            PORTABLE_CLUSTER
        }
    }
}
