//! The NVLink fabric that a device belongs to.

use curium_sys::{CUcliqueInfo, CUcliqueType, CUuuid};

use crate::call;
use crate::{Device, Result};

/// A group of devices in a fabric that can access each other's memory in one way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Clique {
    /// The kind of access.
    pub kind: CliqueKind,
    /// The identifier of the clique, equal for all of its members.
    pub id: u32,
}

/// The kind of access between the members of a [`Clique`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CliqueKind {
    /// A pointer to memory of one device.
    UnicastPointer,
    /// A pointer to a multicast object.
    MulticastPointer,
    /// A unicast logical endpoint.
    UnicastEndpoint,
    /// A multicast logical endpoint.
    MulticastEndpoint,
    /// A kind defined by a newer driver.
    Unknown(u32),
}

impl Device {
    /// Returns the UUID of the fabric cluster that this device belongs to, equal for all of its
    /// members.
    ///
    /// Requires CUDA 13.4. CUDA: `cuDeviceGetFabricClusterUuid`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` without a fabric, and any other error returned by the driver.
    #[doc(alias = "cuDeviceGetFabricClusterUuid")]
    pub fn fabric_cluster_uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetFabricClusterUuid(&raw mut uuid, self.as_raw())
            )
        }?;
        Ok(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// Returns the cliques that this device belongs to.
    ///
    /// Requires CUDA 13.4. CUDA: `cuDeviceGetCliqueCount`, then `cuDeviceGetCliqueInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` without a fabric, and any other error returned by the driver.
    #[doc(alias = "cuDeviceGetCliqueInfo")]
    pub fn cliques(&self) -> Result<Vec<Clique>> {
        let mut cliques = vec![CUcliqueInfo::default(); self.clique_count()?];
        let mut count = cliques.len();
        // SAFETY: `cliques` has room for `count` entries, and `count` is valid for reads and
        // writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetCliqueInfo(cliques.as_mut_ptr(), &raw mut count, self.as_raw())
            )
        }?;
        cliques.truncate(count);
        Ok(cliques
            .into_iter()
            .map(|info| Clique {
                kind: CliqueKind::from_raw(info.type_),
                id: info.id,
            })
            .collect())
    }

    /// Returns the number of cliques that this device belongs to.
    ///
    /// Requires CUDA 13.4. CUDA: `cuDeviceGetCliqueCount`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` without a fabric, and any other error returned by the driver.
    #[doc(alias = "cuDeviceGetCliqueCount")]
    pub fn clique_count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: `count` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetCliqueCount(&raw mut count, self.as_raw())
            )
        }?;
        Ok(count)
    }
}

impl CliqueKind {
    fn from_raw(raw: CUcliqueType) -> Self {
        match raw {
            CUcliqueType::CU_CLIQUE_TYPE_UNICAST_POINTER => Self::UnicastPointer,
            CUcliqueType::CU_CLIQUE_TYPE_MULTICAST_POINTER => Self::MulticastPointer,
            CUcliqueType::CU_CLIQUE_TYPE_UNICAST_LOGICAL_ENDPOINT => Self::UnicastEndpoint,
            CUcliqueType::CU_CLIQUE_TYPE_MULTICAST_LOGICAL_ENDPOINT => Self::MulticastEndpoint,
            CUcliqueType(other) => Self::Unknown(other),
        }
    }
}
