//! Why the driver does not start.

use curium::sys::CUresult;

use crate::doctor::check::{compatibility, hardware, mig, node, visible};
use crate::doctor::environment::{Environment, Failure};
use crate::doctor::finding::Finding;

const CHECK: &str = "start";

/// What explains the failure of `cuInit`, the cause before the call.
pub(super) fn explain(environment: &Environment, failure: &Failure) -> Vec<Finding> {
    let cause = match CUresult(failure.code) {
        CUresult::CUDA_ERROR_NO_DEVICE => return explain_no_device(environment),
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => Some(compatibility::mismatch(environment)),
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => Some(compatibility::not_supported(environment)),
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

/// Why a driver that was loaded sees no device.
pub(super) fn explain_no_device(environment: &Environment) -> Vec<Finding> {
    let explanations: [fn(&Environment) -> Option<Finding>; 7] =
        [visible::hides_all, container, wsl, hardware::no_gpu, hardware::no_module, node::explain, mig::explain];
    let cause = explanations.iter().find_map(|explanation| explanation(environment)).unwrap_or_else(no_device);
    let said = environment.start_failure().map(said);
    [cause].into_iter().chain(said).collect()
}

/// What the driver itself said.
fn said(failure: &Failure) -> Finding {
    Finding::note("said", format!("the driver said: {}", failure.text))
}

/// A container that has the library, but no device.
fn container(environment: &Environment) -> Option<Finding> {
    if !environment.is_container() || environment.nodes("/dev/nvidia").next().is_some() || environment.is_wsl() {
        return None;
    }
    if let Some(devices @ ("" | "void" | "none")) = environment.variable("NVIDIA_VISIBLE_DEVICES") {
        let what = format!("NVIDIA_VISIBLE_DEVICES is {devices:?}: the container was given no GPU");
        return Some(Finding::failure(
            "container",
            what,
            ["start the container with NVIDIA_VISIBLE_DEVICES=all, or `--gpus all`"],
        ));
    }
    let fixes = [
        "docker: start the container with `--gpus all`; podman: with `--device nvidia.com/gpu=all`",
        "Kubernetes: ask for `nvidia.com/gpu: 1` in the pod's limits",
    ];
    Some(Finding::failure("container", "this is a container, and no device node of a GPU is passed into it", fixes))
}

fn wsl(environment: &Environment) -> Option<Finding> {
    environment.is_wsl().then(|| {
        let fixes = [
            "update the NVIDIA driver of Windows, then `wsl --shutdown`",
            "see in the Device Manager of Windows that the GPU works",
            "take other libcuda.so.1 than that of /usr/lib/wsl/lib off the loader's path",
        ];
        Finding::failure("wsl", "this is WSL, and Windows offers it no GPU", fixes)
    })
}

fn no_device() -> Finding {
    let fixes = ["see whether `nvidia-smi` lists the GPU, and what `sudo dmesg` says of NVRM and Xid"];
    Finding::failure("devices", "the driver works, but it offers no GPU to this process", fixes)
}

fn system_not_ready() -> Finding {
    let fixes = [
        "machines with NVSwitch need the fabric manager: `sudo systemctl enable --now nvidia-fabricmanager`, of exactly the driver's \
         version",
        "see `nvidia-smi -q | grep -A2 Fabric`: the state has to be Completed",
        "a confidential machine needs `nvidia-smi conf-compute -srs 1` after its attestation",
    ];
    Finding::failure("fabric", "the system is not ready to run CUDA: most often the fabric manager does not run", fixes)
}

fn mps(environment: &Environment) -> Finding {
    let pipe = environment.variable("CUDA_MPS_PIPE_DIRECTORY").unwrap_or("/tmp/nvidia-mps");
    let fixes = [
        "start the service: `nvidia-cuda-mps-control -d`, as the user who runs the programs",
        &format!("or do without it: `echo quit | nvidia-cuda-mps-control`, and remove {pipe}"),
    ];
    Finding::failure("mps", "the multi-process service (MPS) cannot be reached or is full", fixes)
}

fn stub() -> Finding {
    let fixes = ["install the NVIDIA driver, and take the toolkit's `stubs` folder off LD_LIBRARY_PATH"];
    Finding::failure("stub", "the library is the toolkit's stub, which has no driver in it", fixes)
}

fn unknown() -> Finding {
    let fixes = [
        "after the machine slept: `sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm`",
        "see what `sudo dmesg` says of NVRM and Xid; a GPU that fell off the bus needs a restart",
    ];
    Finding::failure(CHECK, "the driver is loaded, but does not start", fixes)
}
