//! Attributes of a launch.

use curium_sys::{CUlaunchAttributeID as Attribute, CUlaunchAttributeValue, CUresult};

use crate::object::launch::{NO_CLUSTER, Shape};
use crate::result::Result;

/// Applies attributes to the configuration of a launch. Hints are accepted without effect;
/// unsupported attributes that would change the result are refused.
pub(crate) fn apply<'a>(
    attributes: impl Iterator<Item = (Attribute, &'a CUlaunchAttributeValue)>,
    shape: &mut Shape,
) -> Result {
    for (attribute, value) in attributes {
        match attribute {
            Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
                // SAFETY: this attribute's value is an `int`, for which any bytes are valid.
                shape.is_cooperative = unsafe { value.cooperative } != 0;
            }
            Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => shape.cluster = cluster(value)?,
            Attribute::CU_LAUNCH_ATTRIBUTE_IGNORE
            | Attribute::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Attribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            | Attribute::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {}
            Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
                // SAFETY: this attribute's value begins with an `int`, for which any bytes are
                // valid.
                match unsafe { value.deviceUpdatableKernelNode }.deviceUpdatable {
                    0 => {}
                    1 => return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
                    _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
                }
            }
            // An attribute of streams only.
            Attribute::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            Attribute(number) if number < Attribute::CU_LAUNCH_ATTRIBUTE_MAX.0 => {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
    Ok(())
}

/// Returns the blocks of a cluster in each direction. As on hardware, zeros stand for no cluster.
fn cluster(value: &CUlaunchAttributeValue) -> Result<[u32; 3]> {
    // SAFETY: this attribute's value is three numbers, for which any bytes are valid.
    let size = unsafe { value.clusterDim };
    let size = [size.x, size.y, size.z];
    match size {
        [0, 0, 0] => Ok(NO_CLUSTER),
        size if size.contains(&0) => Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE),
        size => Ok(size),
    }
}
