//! The resources of a device that are divided between green contexts.
//!
//! A description belongs to the caller and is self-contained: besides the public fields, the device and the membership in a set are stored
//! in the bytes reserved for the driver.

use curium_sys::{
    CUdevResource, CUdevResourceType, CUdevSmResource, CUdevWorkqueueConfigResource,
    CUdevWorkqueueConfigScope, CUdevice, CUdevice_attribute, CUresult, CudaVersion,
};

use crate::context::resource::{Descriptor, Resources};
use crate::driver::device::Devices;
use crate::result::Result;

/// The granularity of a split of multiprocessors with clusters, and without.
pub(crate) const CLUSTER_GRANULARITY: u32 = 8;

/// The default number of work queues of a device: the default of `CUDA_DEVICE_MAX_CONNECTIONS`.
const WORK_QUEUES: u32 = 8;

/// The first reserved bytes of a description that the driver made.
const MARK: [u8; 7] = *b"curium.";

/// The first driver that supports work queues, and describes the parts of a set.
const WORK_QUEUES_SINCE: CudaVersion = CudaVersion::new(13, 1);

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

    pub(crate) fn describe(
        &self,
        device: usize,
        resources: Resources,
        kind: CUdevResourceType,
    ) -> Result<CUdevResource> {
        let mut described = blank(kind, device, false);
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
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE if self.supports_work_queues() => {}
            _ => return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE),
        }
        Ok(described)
    }

    pub(crate) fn supports_work_queues(&self) -> bool {
        self.config.driver_version >= WORK_QUEUES_SINCE
    }

    pub(crate) fn combine(&self, resources: &[CUdevResource]) -> Result<Descriptor> {
        let first = resources
            .first()
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let device = origin(first)?;
        let mut combined = Resources {
            multiprocessors: 0,
            ..self.device_resources(device)
        };
        for resource in resources {
            if origin(resource)? != device {
                return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
            }
            match resource.type_ {
                CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => {
                    combined.multiprocessors += Set::read(*resource)?.count;
                }
                CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG => {
                    // SAFETY: of a description of this type, this field is the one that is filled in.
                    combined.work_queues = unsafe { resource.__bindgen_anon_1.wqConfig };
                }
                _ => {}
            }
        }
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
pub(crate) struct Set {
    pub(crate) device: usize,
    pub(crate) count: u32,
    is_part: bool,
}

impl Set {
    pub(crate) fn read(raw: CUdevResource) -> Result<Self> {
        if raw.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
            return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE);
        }
        // SAFETY: of a description of this type, this field is the one that is filled in.
        let count = unsafe { raw.__bindgen_anon_1.sm }.smCount;
        Ok(Self {
            device: origin(&raw)?,
            count,
            is_part: raw._internal_padding[8] != 0,
        })
    }

    /// Fails for a part: it cannot be split before it belongs to a context.
    pub(crate) fn expect_splittable(&self) -> Result {
        if self.is_part {
            Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        } else {
            Ok(())
        }
    }
}

pub(crate) fn blank(kind: CUdevResourceType, device: usize, is_part: bool) -> CUdevResource {
    let mut blank = CUdevResource {
        type_: kind,
        ..Default::default()
    };
    blank._internal_padding[..7].copy_from_slice(&MARK);
    blank._internal_padding[7] = device as u8;
    blank._internal_padding[8] = u8::from(is_part);
    blank
}

/// Returns the device of a description, if this driver made it.
fn origin(raw: &CUdevResource) -> Result<usize> {
    if raw._internal_padding[..7] == MARK {
        Ok(raw._internal_padding[7].into())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE)
    }
}
