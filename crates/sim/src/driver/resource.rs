//! The resources of a device that are divided between green contexts.
//!
//! A description belongs to the caller and is self-contained: besides the public fields, the device
//! and the membership in a set are stored in the bytes reserved for the driver.

use curium_sys::{
    CUdevResource, CUdevResourceType, CUdevSmResource, CUdevWorkqueueConfigResource,
    CUdevWorkqueueConfigScope, CUdevice, CUdevice_attribute, CUresult, CudaVersion,
};

use crate::context::resource::{Descriptor, Resources};
use crate::driver::device::Devices;
use crate::result::Result;

/// The number of multiprocessors that a partition is a multiple of.
pub(crate) const GRANULARITY: u32 = 2;

/// The number of multiprocessors that a partition for clusters is a multiple of.
pub(crate) const CLUSTER_GRANULARITY: u32 = 8;

/// The default number of work queues of a device: the default of `CUDA_DEVICE_MAX_CONNECTIONS`.
const WORK_QUEUES: u32 = 8;

/// The bytes of a description that are reserved for the driver.
struct DriverBytes {
    device: u32,
    was_split: bool,
}

impl DriverBytes {
    /// The first bytes of a description that the driver made.
    const MARK: [u8; 4] = *b"Cm96";

    /// Returns the bytes of a description, if this driver made it.
    fn read(raw: &CUdevResource) -> Result<Self> {
        let [m0, m1, m2, m3, d0, d1, d2, d3, was_split, ..] = raw._internal_padding;
        if [m0, m1, m2, m3] != Self::MARK {
            return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE);
        }
        Ok(Self {
            device: u32::from_ne_bytes([d0, d1, d2, d3]),
            was_split: was_split != 0,
        })
    }

    fn write(&self, raw: &mut CUdevResource) {
        raw._internal_padding[..4].copy_from_slice(&Self::MARK);
        raw._internal_padding[4..8].copy_from_slice(&self.device.to_ne_bytes());
        raw._internal_padding[8] = u8::from(self.was_split);
    }
}

/// The first driver that supports work queues.
const WORK_QUEUES_SINCE: CudaVersion = CudaVersion::new(13, 1);

/// The first driver that describes the granularity of partitions.
const PARTITION_GRANULARITY_SINCE: CudaVersion = CudaVersion::new(13, 1);

impl Devices<'_> {
    /// Returns the number of multiprocessors of each device.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    pub(crate) fn device_resources(&self, device: usize) -> Resources {
        Resources {
            multiprocessors: self.multiprocessors(),
            work_queues: CUdevWorkqueueConfigResource {
                device: device as CUdevice,
                wqConcurrencyLimit: WORK_QUEUES,
                sharingScope: CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX,
            },
        }
    }

    pub(crate) fn describe_resource(
        &self,
        device: usize,
        resources: Resources,
        kind: CUdevResourceType,
    ) -> Result<CUdevResource> {
        let mut described = new_description(kind, device, false);
        match kind {
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => {
                described.__bindgen_anon_1.sm = CUdevSmResource {
                    smCount: resources.multiprocessors,
                    minSmPartitionSize: CLUSTER_GRANULARITY,
                    smCoscheduledAlignment: CLUSTER_GRANULARITY,
                    ..Default::default()
                };
            }
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
                if self.supports_work_queues() =>
            {
                described.__bindgen_anon_1.wqConfig = resources.work_queues;
            }
            // This type has no fields.
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE if self.supports_work_queues() => {}
            _ => return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE),
        }
        Ok(described)
    }

    pub(crate) fn supports_work_queues(&self) -> bool {
        self.config.driver_version >= WORK_QUEUES_SINCE
    }

    /// Returns `true` if the driver describes the granularity of partitions.
    pub(crate) fn describes_partition_granularity(&self) -> bool {
        self.config.driver_version >= PARTITION_GRANULARITY_SINCE
    }

    pub(crate) fn combine(&self, resources: &[CUdevResource]) -> Result<Descriptor> {
        let first = resources
            .first()
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let device = device_index(first)?;
        let mut combined = Resources {
            multiprocessors: 0,
            ..self.device_resources(device)
        };
        for resource in resources {
            if device_index(resource)? != device {
                return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
            }
            match resource.type_ {
                CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => {
                    combined.multiprocessors += SmPartition::read(*resource)?.count;
                }
                CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG => {
                    // SAFETY: of a description of this type, this field is the one that is filled
                    // in.
                    combined.work_queues = unsafe { resource.__bindgen_anon_1.wqConfig };
                }
                _ => {}
            }
        }
        // Without a set of multiprocessors, a context has all of them.
        if combined.multiprocessors == 0 {
            combined.multiprocessors = self.multiprocessors();
        }
        Ok(Descriptor {
            device,
            resources: combined,
        })
    }
}

/// A set of multiprocessors that a caller passed.
pub(crate) struct SmPartition {
    pub(crate) device: usize,
    pub(crate) count: u32,
    was_split: bool,
}

impl SmPartition {
    pub(crate) fn read(raw: CUdevResource) -> Result<Self> {
        if raw.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
            return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE);
        }
        let bytes = DriverBytes::read(&raw)?;
        // SAFETY: of a description of this type, this field is the one that is filled in.
        let count = unsafe { raw.__bindgen_anon_1.sm }.smCount;
        Ok(Self {
            device: bytes.device as usize,
            count,
            was_split: bytes.was_split,
        })
    }

    /// Fails for a part: it cannot be split before it belongs to a context.
    pub(crate) fn check_splittable(&self) -> Result {
        if self.was_split {
            Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        } else {
            Ok(())
        }
    }
}

/// Returns a description without the fields of its type.
pub(crate) fn new_description(
    kind: CUdevResourceType,
    device: usize,
    was_split: bool,
) -> CUdevResource {
    let mut description = CUdevResource {
        type_: kind,
        ..Default::default()
    };
    DriverBytes {
        // The number of devices is a `u32`.
        device: device as u32,
        was_split,
    }
    .write(&mut description);
    description
}

/// Returns the device of a description, if this driver made it.
fn device_index(raw: &CUdevResource) -> Result<usize> {
    Ok(DriverBytes::read(raw)?.device as usize)
}
