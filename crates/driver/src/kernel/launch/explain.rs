//! Hints for failed launches.

use std::borrow::Cow;

use curium_sys::{CUdevice_attribute, CUfunction_attribute, CUresult};

use super::LaunchConfig;
use crate::kernel::Inner;
use crate::{Device, Error};

type Advice = Option<Cow<'static, str>>;

/// Adds the configuration to the error of a launch, and the exceeded limit, if any.
#[cold]
pub(crate) fn explain(
    error: Error,
    kernel: &Inner,
    device: &Device,
    config: &LaunchConfig,
) -> Error {
    if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) && config.is_empty() {
        return Error::argument("Kernel::launch", format!("a dimension is zero ({config})"));
    }
    error.about(format!("kernel `{}`, {config}", kernel.name)).advised(|error| match error.code {
        CUresult::CUDA_ERROR_INVALID_VALUE => {
            exceeded_limit(device, config).or_else(|| exceeded_shared_bytes(kernel, device, config))
        }
        CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => exceeded_threads(kernel, device, config),
        CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => Some(Cow::Borrowed(
            "all blocks of a cooperative launch must be resident at the same time; `Kernel::max_active_blocks` returns the \
             maximum per multiprocessor",
        )),
        CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE => Some(Cow::Borrowed(
            "the grid must be a multiple of the cluster; `Kernel::max_cluster_size` returns the maximum cluster size",
        )),
        CUresult::CUDA_ERROR_INVALID_HANDLE => {
            Some(Cow::Borrowed("the kernel and the stream may belong to different contexts"))
        }
        _ => None,
    })
}

/// Returns the first device limit that `config` exceeds.
fn exceeded_limit(device: &Device, config: &LaunchConfig) -> Advice {
    let LaunchConfig { grid, block, .. } = *config;
    let asked = [
        (
            block.total(),
            "threads in a block",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        ),
        (
            block.x.into(),
            "threads of a block along x",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        ),
        (
            block.y.into(),
            "threads of a block along y",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        ),
        (
            block.z.into(),
            "threads of a block along z",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        ),
        (
            grid.x.into(),
            "blocks along x",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        ),
        (
            grid.y.into(),
            "blocks along y",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        ),
        (
            grid.z.into(),
            "blocks along z",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
        ),
    ];
    asked.into_iter().find_map(|(asked, what, attribute)| {
        let limit = limit(device, attribute)?;
        (asked > limit).then(|| {
            Cow::Owned(format!(
                "the device supports {limit} {what}, but {asked} were requested"
            ))
        })
    })
}

/// Returns the limit on shared memory that `config` and the kernel's static shared memory exceed
/// together, and the function that raises it.
fn exceeded_shared_bytes(kernel: &Inner, device: &Device, config: &LaunchConfig) -> Advice {
    let static_bytes = kernel
        .attribute(
            device,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        )
        .ok()
        .and_then(|bytes| u128::try_from(bytes).ok())
        .unwrap_or_default();
    let asked = static_bytes + u128::from(config.shared_bytes);
    let without = limit(
        device,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    )?;
    if asked <= without {
        return None;
    }
    let most = limit(
        device,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    )
    .filter(|most| asked <= *most);
    Some(Cow::Owned(match most {
        None => format!(
            "the device supports {without} bytes of shared memory per block, but {asked} were requested"
        ),
        Some(most) => format!(
            "the device supports {without} bytes of shared memory per block, but {asked} were requested: up to {most} with \
             `Kernel::set_max_dynamic_shared_bytes`"
        ),
    }))
}

/// Returns the maximum number of threads per block of this kernel, if `config` exceeds it.
fn exceeded_threads(kernel: &Inner, device: &Device, config: &LaunchConfig) -> Advice {
    let limit = kernel
        .attribute(
            device,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        )
        .ok()?;
    let limit = u128::try_from(limit).ok()?;
    let asked = config.block.total();
    (asked > limit).then(|| {
        let registers = kernel.attribute(device, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS).unwrap_or_default();
        Cow::Owned(format!(
            "with {registers} registers per thread, a block has at most {limit} threads, but {asked} were requested"
        ))
    })
}

fn limit(device: &Device, attribute: CUdevice_attribute) -> Option<u128> {
    u128::try_from(device.attribute(attribute).ok()?).ok()
}
