//! Whether a device computes.

use curium::sys::CUresult;

use crate::doctor::environment::{DeviceTrial, Failure};
use crate::doctor::finding::Finding;

const CHECK: &str = "device";

/// What came of a device.
pub(super) fn check((ordinal, device): (usize, &DeviceTrial)) -> Finding {
    let DeviceTrial { name, compute_capability, outcome } = device;
    let called = format!("device {ordinal}, {name} (compute capability {compute_capability})");
    match outcome {
        Ok(milliseconds) => {
            Finding::good(CHECK, format!("{called}: a kernel computes what it should, {milliseconds} ms from nothing"))
        }
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
                "another process has the GPU for itself: `nvidia-smi` lists it",
                "let several use it: `sudo nvidia-smi -c DEFAULT`",
            ],
        ),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Finding::failure(
            "memory",
            what,
            [
                "other processes have taken the memory: `nvidia-smi` lists them",
                "in a container or a job, see the limits of the host's memory as well (`ulimit -a`)",
            ],
        ),
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE => Finding::failure(
            "ecc",
            what,
            [
                "the GPU's memory has an error that could not be corrected: `nvidia-smi -q -d ECC,ROW_REMAPPER`",
                "restart, so that the rows are replaced; a GPU that has no spare rows has to be exchanged",
            ],
        ),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_INVALID_PTX => Finding::failure(
            "ptx",
            what,
            ["the driver took none of the plainest PTX: install it again, or a newer one; see CUDA_DISABLE_PTX_JIT"],
        ),
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => Finding::failure(
            "jit",
            what,
            [
                "the driver's compiler for PTX is absent: install libnvidia-ptxjitcompiler of the driver's version",
                "in a container, NVIDIA_DRIVER_CAPABILITIES must contain `compute`",
            ],
        ),
        _ => Finding::failure(CHECK, what, ["see what `sudo dmesg` says of NVRM and Xid, and `nvidia-smi -q`"]),
    }
}
