//! Failures of the driver's initialization.

use curium::sys::CUresult;

use crate::doctor::check::{compatibility, hardware, mig, node, visible};
use crate::doctor::environment::{Environment, Failure};
use crate::doctor::finding::Finding;

const CHECK: &str = "start";

/// Explains the failure of `cuInit`, with the cause first.
pub(super) fn explain(environment: &Environment, failure: &Failure) -> Vec<Finding> {
    let cause = match CUresult(failure.code) {
        CUresult::CUDA_ERROR_NO_DEVICE => return explain_no_device(environment),
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => Some(compatibility::mismatch(environment)),
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            Some(compatibility::not_supported(environment))
        }
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => Some(system_not_ready()),
        CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED
        | CUresult::CUDA_ERROR_MPS_RPC_FAILURE
        | CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY
        | CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
        | CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED => Some(mps(environment)),
        CUresult::CUDA_ERROR_STUB_LIBRARY => Some(stub()),
        _ => node::explain(environment).or_else(|| hardware::no_module(environment)),
    };
    vec![cause.unwrap_or_else(unknown), said(failure)]
}

/// Explains why a loaded driver sees no device.
pub(super) fn explain_no_device(environment: &Environment) -> Vec<Finding> {
    let explanations: [fn(&Environment) -> Option<Finding>; 7] = [
        visible::hides_all,
        container,
        wsl,
        hardware::no_gpu,
        hardware::no_module,
        node::explain,
        mig::explain,
    ];
    let cause = explanations
        .iter()
        .find_map(|explanation| explanation(environment))
        .unwrap_or_else(no_device);
    let said = environment.start_failure().map(said);
    [cause].into_iter().chain(said).collect()
}

/// Reports the driver's own message.
fn said(failure: &Failure) -> Finding {
    Finding::note(
        "driver-message",
        format!("message of the driver: {}", failure.text),
    )
}

/// Reports a container with the library but without a device.
fn container(environment: &Environment) -> Option<Finding> {
    if !environment.is_container()
        || environment.nodes("/dev/nvidia").next().is_some()
        || environment.is_wsl()
    {
        return None;
    }
    if let Some(devices @ ("" | "void" | "none")) = environment.variable("NVIDIA_VISIBLE_DEVICES") {
        let what = format!("NVIDIA_VISIBLE_DEVICES is {devices:?}: the container got no GPU");
        return Some(Finding::failure(
            "container",
            what,
            ["start the container with NVIDIA_VISIBLE_DEVICES=all, or `--gpus all`"],
        ));
    }
    let fixes = [
        "docker: start the container with `--gpus all`; podman: with `--device nvidia.com/gpu=all`",
        "Kubernetes: request `nvidia.com/gpu: 1` in the pod's limits",
    ];
    Some(Finding::failure(
        "container",
        "this is a container without the device node of a GPU",
        fixes,
    ))
}

fn wsl(environment: &Environment) -> Option<Finding> {
    environment.is_wsl().then(|| {
        let fixes = [
            "update the NVIDIA driver in Windows, then `wsl --shutdown`",
            "check the GPU in the Device Manager of Windows",
            "remove every libcuda.so.1 except that in /usr/lib/wsl/lib from the library search path",
        ];
        Finding::failure("wsl", "this is WSL, and Windows exposes no GPU to it", fixes)
    })
}

fn no_device() -> Finding {
    let fixes =
        ["check that `nvidia-smi` lists the GPU, and `sudo dmesg` for NVRM and Xid messages"];
    Finding::failure(
        "devices",
        "the driver works, but it exposes no GPU to this process",
        fixes,
    )
}

fn system_not_ready() -> Finding {
    let fixes = [
        "machines with NVSwitch require the fabric manager: `sudo systemctl enable --now nvidia-fabricmanager`, of exactly the driver's \
         version",
        "check `nvidia-smi -q | grep -A2 Fabric`: the state must be Completed",
        "with confidential computing: `nvidia-smi conf-compute -srs 1` after the attestation",
    ];
    Finding::failure(
        "fabric",
        "the system is not ready to run CUDA: usually the fabric manager is not running",
        fixes,
    )
}

fn mps(environment: &Environment) -> Finding {
    let pipe = environment
        .variable("CUDA_MPS_PIPE_DIRECTORY")
        .unwrap_or("/tmp/nvidia-mps");
    let fixes = [
        "start the service: `nvidia-cuda-mps-control -d`, as the user who runs the programs",
        &format!("or stop using it: `echo quit | nvidia-cuda-mps-control`, and remove {pipe}"),
    ];
    Finding::failure(
        "mps",
        "the Multi-Process Service (MPS) is unreachable or full",
        fixes,
    )
}

fn stub() -> Finding {
    let fixes =
        ["install the NVIDIA driver, and remove the toolkit's `stubs` folder from LD_LIBRARY_PATH"];
    Finding::failure(
        "stub",
        "the library is the toolkit's stub, which is for linking only",
        fixes,
    )
}

fn unknown() -> Finding {
    let fixes = [
        "after suspend: `sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm`",
        "check `sudo dmesg` for NVRM and Xid messages; a GPU that fell off the bus requires a restart",
    ];
    Finding::failure(
        CHECK,
        "the driver is loaded, but does not initialize",
        fixes,
    )
}
