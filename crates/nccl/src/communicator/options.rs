//! Options of communicators.

use std::ffi::c_int;
use std::time::Duration;

use crate::library::encode;
use crate::sys::{NCCL_API_MAGIC, ncclConfig_t};
use curium_driver::sys::load::LibraryVersion;

/// The newest version whose configuration is known.
const NEWEST: LibraryVersion = LibraryVersion {
    major: 2,
    minor: 32,
    patch: 3,
};

/// The value of a setting that NCCL chooses.
const UNSET: c_int = c_int::MIN;

/// The size of the configuration from each minor version on. Newer fields follow older ones.
const SIZES: [(u32, usize); 7] = [
    (18, 48),
    (27, 72),
    (28, 80),
    (29, 88),
    (30, 96),
    (31, 112),
    (32, 120),
];

/// Options of a communicator. They must be the same on every rank.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CommunicatorOptions {
    /// The timeout of operations, and of waits: for the other ranks when communicators are created
    /// or destroyed, for connections, and in
    /// [`Communicator::synchronize`](crate::Communicator::synchronize). Default: none.
    pub timeout: Option<Duration>,
    /// The smallest and the largest number of thread blocks that an operation uses. Default: NCCL
    /// chooses.
    pub ctas: Option<(u32, u32)>,
    /// The number of thread blocks in a cluster. Default: NCCL chooses.
    pub cluster_size: Option<u32>,
}

impl CommunicatorOptions {
    /// Returns the default options.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            timeout: None,
            ctas: None,
            cluster_size: None,
        }
    }

    /// Sets the timeout of operations and waits.
    ///
    /// The communicator is then non-blocking in NCCL's sense, and no call waits longer. A thread
    /// aborts the communicator if an operation outside of graphs has not completed when the timeout
    /// has elapsed since its call, work that was enqueued before it included. Waits for its
    /// results, such as `to_vec`, then end, and the next call of the communicator returns the
    /// error.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the smallest and the largest number of thread blocks that an operation uses.
    #[must_use]
    pub const fn with_ctas(mut self, min: u32, max: u32) -> Self {
        self.ctas = Some((min, max));
        self
    }

    /// Sets the number of thread blocks in a cluster.
    #[must_use]
    pub const fn with_cluster_size(mut self, size: u32) -> Self {
        self.cluster_size = Some(size);
        self
    }

    /// Returns the configuration for a version of the library.
    pub(crate) fn to_raw(self, version: LibraryVersion, is_blocking: bool) -> ncclConfig_t {
        let min = self.ctas.map(|ctas| ctas.0);
        let max = self.ctas.map(|ctas| ctas.1);
        ncclConfig_t {
            size: size(version),
            magic: NCCL_API_MAGIC,
            version: encode(version.min(NEWEST)),
            blocking: if is_blocking { UNSET } else { 0 },
            cgaClusterSize: setting(self.cluster_size),
            minCTAs: setting(min),
            maxCTAs: setting(max),
            ..unset()
        }
    }
}

/// Converts a setting, which NCCL chooses if there is none.
fn setting(value: Option<u32>) -> c_int {
    value.map_or(UNSET, |value| value.try_into().unwrap_or(c_int::MAX))
}

/// Returns the size of the configuration in a version; that of the newest known for newer ones.
fn size(version: LibraryVersion) -> usize {
    let (_, size) = SIZES
        .iter()
        .rev()
        .find(|(minor, _)| (2, *minor) <= (version.major, version.minor))
        .unwrap_or(&SIZES[0]);
    *size
}

/// Returns a configuration in which NCCL chooses every setting.
fn unset() -> ncclConfig_t {
    ncclConfig_t {
        size: 0,
        magic: 0,
        version: 0,
        blocking: UNSET,
        cgaClusterSize: UNSET,
        minCTAs: UNSET,
        maxCTAs: UNSET,
        netName: std::ptr::null(),
        splitShare: UNSET,
        trafficClass: UNSET,
        commName: std::ptr::null(),
        collnetEnable: UNSET,
        CTAPolicy: UNSET,
        shrinkShare: UNSET,
        nvlsCTAs: UNSET,
        nChannelsPerNetPeer: UNSET,
        nvlinkCentricSched: UNSET,
        graphUsageMode: UNSET,
        numRmaCtx: UNSET,
        maxP2pPeers: UNSET,
        graphStreamOrdering: UNSET,
        launchOrderImplicit: UNSET,
        numRmaSig: UNSET,
        rmaEagerInit: UNSET,
        hostCftMode: UNSET,
        nvlsHostMode: UNSET,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(minor: u32) -> LibraryVersion {
        LibraryVersion {
            major: 2,
            minor,
            patch: 1,
        }
    }

    #[test]
    fn configuration_size_depends_on_the_version() {
        let sizes = [18, 26, 27, 28, 31, 32, 40].map(|minor| size(version(minor)));
        assert_eq!(sizes, [48, 48, 72, 80, 112, size_of::<ncclConfig_t>(), 120]);
    }

    #[test]
    fn version_is_limited_to_the_declared_fields() {
        let options = CommunicatorOptions::new().with_ctas(1, 4);
        let raw = options.to_raw(version(40), false);
        assert_eq!(
            (raw.version, raw.blocking, raw.minCTAs, raw.maxCTAs),
            (23203, 0, 1, 4)
        );
        assert_eq!(options.to_raw(version(28), true).version, 22801);
    }
}
