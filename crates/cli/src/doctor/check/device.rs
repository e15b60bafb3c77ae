//! The test kernel on each device.

use curium::sys::CUresult;

use crate::doctor::environment::{DeviceTrial, Failure};
use crate::doctor::finding::Finding;

const CHECK: &str = "device";

/// Reports the result of the test kernel on a device.
pub(super) fn check(ordinal: usize, device: &DeviceTrial) -> Finding {
    let DeviceTrial {
        name,
        compute_capability,
        outcome,
    } = device;
    let called = format!("device {ordinal}, {name} (compute capability {compute_capability})");
    match outcome {
        Ok(milliseconds) => Finding::good(
            CHECK,
            format!("{called}: test kernel passed ({milliseconds} ms including initialization)"),
        ),
        Err(failure) => explain(&called, failure),
    }
}

fn explain(called: &str, failure: &Failure) -> Finding {
    let what = format!("{called}: {}", failure.text);
    match CUresult(failure.code) {
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => Finding::failure(
            "exclusive",
            what,
            [
                "another process uses the GPU exclusively: `nvidia-smi` lists it",
                "allow several processes: `sudo nvidia-smi -c DEFAULT`",
            ],
        ),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Finding::failure(
            "memory",
            what,
            [
                "other processes use the memory: `nvidia-smi` lists them",
                "in a container or a job: check the limits of host memory, too (`ulimit -a`)",
            ],
        ),
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE => Finding::failure(
            "ecc",
            what,
            [
                "the GPU's memory has an uncorrectable error: `nvidia-smi -q -d ECC,ROW_REMAPPER`",
                "reset the GPU or restart to remap the rows; replace a GPU without spare rows",
            ],
        ),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_INVALID_PTX => Finding::failure(
            "ptx",
            what,
            [
                "the driver rejected simple PTX: reinstall or update it, and check CUDA_DISABLE_PTX_JIT",
            ],
        ),
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => Finding::failure(
            "jit",
            what,
            [
                "the driver's PTX compiler is missing: install libnvidia-ptxjitcompiler of the driver's version",
                "in a container, NVIDIA_DRIVER_CAPABILITIES must contain `compute`",
            ],
        ),
        _ => Finding::failure(
            CHECK,
            what,
            ["check `sudo dmesg` for NVRM and Xid messages, and `nvidia-smi -q`"],
        ),
    }
}
