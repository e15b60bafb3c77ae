//! Launch attributes.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use curium_sys::{
    CUgraphDeviceNode, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributePortableClusterMode, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1 as ClusterDimension,
    CUlaunchAttributeValue_union__bindgen_ty_2 as ProgrammaticEvent,
    CUlaunchAttributeValue_union__bindgen_ty_3 as CompletionEvent,
    CUlaunchAttributeValue_union__bindgen_ty_4 as PreferredClusterDimension,
    CUlaunchAttributeValue_union__bindgen_ty_5 as DeviceUpdatable, CUlaunchConfig,
    CUlaunchMemSyncDomainMap, CUstream,
};

use super::{Dimensions, LaunchConfig};
use crate::base::kept_value::Key;
use crate::hazard::Scope;
use crate::{
    AccessPolicyWindow, Carveout, ClusterScheduling, Driver, Event, MemorySyncDomain,
    MemorySyncDomainMap, Result, SharedMemoryMode,
};

/// Launch attributes, such as a cluster size, a priority or programmatic dependent launch. They can
/// be reused for any number of launches.
///
/// ```
/// use curium_driver::LaunchAttributes;
///
/// let attributes = LaunchAttributes::new().with_cluster((2, 1, 1)).with_priority(-1);
/// assert!(!attributes.is_empty());
/// ```
#[derive(Clone, Copy)]
pub struct LaunchAttributes<'a> {
    /// The raw attributes; the first `len` are set.
    raw: [CUlaunchAttribute; CAPACITY],
    len: usize,
    programmatic_event: Option<&'a Event>,
    completion_event: Option<&'a Event>,
}

// SAFETY: the raw attributes hold numbers, and handles of events that are borrowed for as long as
// this value lives.
unsafe impl Send for LaunchAttributes<'_> {}
// SAFETY: the raw attributes hold numbers, and handles of events that are borrowed for as long as
// this value lives.
unsafe impl Sync for LaunchAttributes<'_> {}

/// The maximum number of attributes of a launch.
const CAPACITY: usize = 16;

/// The trigger of a programmatic event.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum EventTrigger {
    /// When every block has triggered it or exited.
    ByKernel,
    /// When every block has started.
    BlockStart,
}

/// The permitted cluster sizes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ClusterPortability {
    /// As specified by the kernel's attribute.
    Default,
    /// Sizes that every device supports.
    RequirePortable,
    /// Sizes that this device supports.
    AllowNonPortable,
}

impl<'a> LaunchAttributes<'a> {
    /// Creates an empty set of attributes.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        const NONE: CUlaunchAttribute = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: CUlaunchAttributeValue { pad: [0; 64] },
        };
        Self {
            raw: [NONE; CAPACITY],
            len: 0,
            programmatic_event: None,
            completion_event: None,
        }
    }

    /// Sets the L2 access policy window.
    #[must_use]
    #[inline]
    pub const fn with_access_policy_window(self, window: AccessPolicyWindow) -> Self {
        let value = CUlaunchAttributeValue {
            accessPolicyWindow: window.as_raw(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
            value,
        )
    }

    /// Enables or disables a cooperative launch: all blocks of the grid are resident and can
    /// synchronize with each other.
    #[must_use]
    #[inline]
    pub const fn with_cooperative(self, cooperative: bool) -> Self {
        let value = CUlaunchAttributeValue {
            cooperative: cooperative as c_int,
        };
        self.with(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value)
    }

    /// Sets the cluster size in blocks, which must divide the grid dimensions. Needs compute
    /// capability 9.0.
    #[must_use]
    #[inline]
    pub fn with_cluster(self, cluster: impl Into<Dimensions>) -> Self {
        let Dimensions { x, y, z } = cluster.into();
        let value = CUlaunchAttributeValue {
            clusterDim: ClusterDimension { x, y, z },
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            value,
        )
    }

    /// Sets the scheduling policy for clusters.
    #[must_use]
    #[inline]
    pub const fn with_cluster_scheduling(self, scheduling: ClusterScheduling) -> Self {
        let value = CUlaunchAttributeValue {
            clusterSchedulingPolicyPreference: scheduling.as_raw(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            value,
        )
    }

    /// Allows the kernel to start before the preceding kernel on the stream has completed
    /// (programmatic dependent launch), once that kernel triggers it. The kernel must execute
    /// `griddepcontrol.wait` before it accesses memory that the other writes.
    #[must_use]
    #[inline]
    pub const fn with_programmatic_stream_serialization(self, allowed: bool) -> Self {
        let value = CUlaunchAttributeValue {
            programmaticStreamSerializationAllowed: allowed as c_int,
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            value,
        )
    }

    /// Records an event while the kernel runs. Work that waits for the event does not wait for the
    /// kernel to complete.
    #[must_use]
    #[inline]
    pub fn with_programmatic_event(mut self, event: &'a Event, trigger: EventTrigger) -> Self {
        let trigger = c_int::from(trigger == EventTrigger::BlockStart);
        let raw = ProgrammaticEvent {
            event: event.as_raw(),
            flags: 0,
            triggerAtBlockStart: trigger,
        };
        self.programmatic_event = Some(event);
        let value = CUlaunchAttributeValue {
            programmaticEvent: raw,
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
            value,
        )
    }

    /// Records an event when approximately all blocks of the kernel have started. The event must
    /// have timing disabled ([`EventFlags::DISABLE_TIMING`](crate::EventFlags::DISABLE_TIMING)).
    /// Since 12.3.
    #[must_use]
    #[inline]
    pub fn with_launch_completion_event(mut self, event: &'a Event) -> Self {
        self.completion_event = Some(event);
        let value = CUlaunchAttributeValue {
            launchCompletionEvent: CompletionEvent {
                event: event.as_raw(),
                flags: 0,
            },
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
            value,
        )
    }

    /// Sets the priority, overriding the stream's. Lower numbers have greater priority.
    #[must_use]
    #[inline]
    pub const fn with_priority(self, priority: i32) -> Self {
        let value = CUlaunchAttributeValue { priority };
        self.with(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY, value)
    }

    /// Sets the map from logical to physical memory synchronization domains, each less than the
    /// device's number of domains. Since 12.0.
    #[must_use]
    #[inline]
    pub const fn with_memory_sync_domain_map(self, map: MemorySyncDomainMap) -> Self {
        let map = CUlaunchMemSyncDomainMap {
            default_: map.default,
            remote: map.remote,
        };
        let value = CUlaunchAttributeValue {
            memSyncDomainMap: map,
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
            value,
        )
    }

    /// Sets the memory synchronization domain. Since 12.0.
    #[must_use]
    #[inline]
    pub const fn with_memory_sync_domain(self, domain: MemorySyncDomain) -> Self {
        let value = CUlaunchAttributeValue {
            memSyncDomain: domain.as_raw(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
            value,
        )
    }

    /// Sets the preferred cluster size, a multiple of the one set with
    /// [`LaunchAttributes::with_cluster`]. Since 12.8.
    #[must_use]
    #[inline]
    pub fn with_preferred_cluster(self, cluster: impl Into<Dimensions>) -> Self {
        let Dimensions { x, y, z } = cluster.into();
        let value = CUlaunchAttributeValue {
            preferredClusterDim: PreferredClusterDimension { x, y, z },
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
            value,
        )
    }

    /// Sets the split between shared memory and L1 cache. Since 12.5.
    #[must_use]
    #[inline]
    pub const fn with_carveout(self, carveout: Carveout) -> Self {
        let value = CUlaunchAttributeValue {
            sharedMemCarveout: carveout.as_raw().cast_unsigned(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            value,
        )
    }

    /// Enables or disables NVLink-centric scheduling. Since 13.0.
    #[must_use]
    #[inline]
    pub const fn with_nvlink_centric_scheduling(self, enabled: bool) -> Self {
        let value = CUlaunchAttributeValue {
            nvlinkUtilCentricScheduling: enabled as u32,
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
            value,
        )
    }

    /// Sets the permitted cluster sizes. Since 13.1.
    #[must_use]
    #[inline]
    pub const fn with_cluster_portability(self, portability: ClusterPortability) -> Self {
        let value = CUlaunchAttributeValue {
            portableClusterSizeMode: portability.as_raw(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE,
            value,
        )
    }

    /// Sets the policy for the maximum shared memory of a block. Since 13.1.
    #[must_use]
    #[inline]
    pub const fn with_shared_memory_mode(self, mode: SharedMemoryMode) -> Self {
        let value = CUlaunchAttributeValue {
            sharedMemoryMode: mode.as_raw(),
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE,
            value,
        )
    }

    /// Returns `true` if no attribute is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the raw attributes.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> &[CUlaunchAttribute] {
        &self.raw[..self.len]
    }

    /// Returns an error if an event belongs to another driver.
    #[inline]
    pub(crate) fn check(&self, driver: &Driver) -> Result<()> {
        let events = [self.programmatic_event, self.completion_event];
        events
            .into_iter()
            .flatten()
            .try_for_each(|event| driver.check_same(event.driver(), "launch attribute"))
    }

    /// Keeps the events alive with the graph of a capture.
    #[cold]
    pub(crate) fn keep_events(&self, scope: &Scope) {
        for event in [self.programmatic_event, self.completion_event]
            .into_iter()
            .flatten()
        {
            scope.keep(Key::Event(event.as_raw().addr()), || {
                Arc::new(event.share())
            });
        }
    }

    /// Returns `true` if an attribute records an event.
    #[inline]
    pub(crate) const fn has_events(&self) -> bool {
        self.programmatic_event.is_some() || self.completion_event.is_some()
    }

    /// Makes the launch a device-updatable graph node. The driver writes the node's handle into the
    /// attribute.
    #[inline]
    pub(crate) const fn with_device_updatable(self) -> Self {
        let node = DeviceUpdatable {
            deviceUpdatable: 1,
            devNode: std::ptr::null_mut(),
        };
        let value = CUlaunchAttributeValue {
            deviceUpdatableKernelNode: node,
        };
        self.with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
            value,
        )
    }

    /// Returns the node of a launch with [`LaunchAttributes::with_device_updatable`]; null before
    /// the launch.
    #[inline]
    pub(crate) fn device_node(&self) -> CUgraphDeviceNode {
        let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
        let attribute = self.as_raw().iter().find(|attribute| attribute.id == id);
        // SAFETY: an attribute with this identifier holds this union field.
        attribute.map_or(
            std::ptr::null_mut(),
            |attribute| unsafe { attribute.value.deviceUpdatableKernelNode }.devNode,
        )
    }

    /// Returns the raw configuration of a launch with these attributes, which it borrows and into
    /// which the driver may write.
    #[inline]
    pub(crate) fn launch_config_mut(
        &mut self,
        config: &LaunchConfig,
        stream: CUstream,
    ) -> CUlaunchConfig {
        let attrs = self.raw.as_mut_ptr();
        CUlaunchConfig {
            attrs,
            ..self.launch_config(config, stream)
        }
    }

    /// Returns the raw configuration of a launch with these attributes, which it borrows.
    #[inline]
    pub(crate) fn launch_config(&self, config: &LaunchConfig, stream: CUstream) -> CUlaunchConfig {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = *config;
        CUlaunchConfig {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: shared_bytes,
            hStream: stream,
            // The driver does not write to the attributes that public methods can set.
            attrs: self.raw.as_ptr().cast_mut(),
            numAttrs: self.len as u32,
        }
    }

    /// Sets an attribute, replacing its previous value.
    #[inline]
    const fn with(mut self, id: CUlaunchAttributeID, value: CUlaunchAttributeValue) -> Self {
        let mut index = 0;
        while index < self.len && self.raw[index].id.0 != id.0 {
            index += 1;
        }
        self.raw[index] = CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        };
        if index == self.len {
            self.len += 1;
        }
        self
    }
}

impl Default for LaunchAttributes<'_> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LaunchAttributes<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.as_raw().iter().map(|attribute| attribute.id.0);
        formatter.write_str("LaunchAttributes")?;
        formatter.debug_list().entries(ids).finish()
    }
}

impl ClusterPortability {
    #[inline]
    const fn as_raw(self) -> CUlaunchAttributePortableClusterMode {
        match self {
            Self::Default => CUlaunchAttributePortableClusterMode::CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT,
            Self::RequirePortable => {
                CUlaunchAttributePortableClusterMode::CU_LAUNCH_PORTABLE_CLUSTER_MODE_REQUIRE_PORTABLE
            }
            Self::AllowNonPortable => {
                CUlaunchAttributePortableClusterMode::CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DevicePointer;

    #[test]
    fn attribute_that_is_set_twice_has_its_last_value() {
        let attributes = LaunchAttributes::new()
            .with_priority(-1)
            .with_cooperative(true)
            .with_priority(-3);
        let [priority, cooperative] = attributes.as_raw() else {
            panic!("{attributes:?} are two")
        };
        assert_eq!(
            priority.id,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
        );
        // SAFETY: this attribute holds a priority.
        assert_eq!(unsafe { priority.value.priority }, -3);
        assert_eq!(
            cooperative.id,
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        );
        // SAFETY: this attribute holds a flag.
        assert_eq!(unsafe { cooperative.value.cooperative }, 1);
    }

    #[test]
    fn every_attribute_at_once_has_room() {
        let window = AccessPolicyWindow::persisting(DevicePointer::from_raw(64), 256);
        // All attributes except the two that take an event and the device-updatable one, for which
        // there is room left.
        let attributes = LaunchAttributes::new()
            .with_access_policy_window(window)
            .with_cooperative(true)
            .with_cluster(2)
            .with_cluster_scheduling(ClusterScheduling::Spread)
            .with_programmatic_stream_serialization(true)
            .with_priority(0)
            .with_memory_sync_domain_map(MemorySyncDomainMap {
                default: 0,
                remote: 1,
            })
            .with_memory_sync_domain(MemorySyncDomain::Remote)
            .with_preferred_cluster(4)
            .with_carveout(Carveout::MAX_L1)
            .with_nvlink_centric_scheduling(true)
            .with_cluster_portability(ClusterPortability::RequirePortable)
            .with_shared_memory_mode(SharedMemoryMode::RequirePortable);
        assert_eq!(attributes.as_raw().len(), CAPACITY - 3);
        // SAFETY: the first attribute holds a window.
        let raw = unsafe { attributes.as_raw()[0].value.accessPolicyWindow };
        assert_eq!(
            (raw.base_ptr.addr(), raw.num_bytes, raw.hitRatio),
            (64, 256, 1.0)
        );
    }
}
