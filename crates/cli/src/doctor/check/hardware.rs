//! The GPU and its kernel module.

use crate::doctor::environment::{Attempt, Environment};
use crate::doctor::finding::Finding;

/// Explains a missing driver: no GPU, or another kernel module.
pub(super) fn explain(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    no_gpu(environment).or_else(|| no_module(environment))
}

/// Reports that the PCI bus has no NVIDIA GPU.
pub(super) fn no_gpu(environment: &Environment) -> Option<Finding> {
    let is_told =
        environment.has("nvidia-pci-gpus") && !environment.is_wsl() && !environment.is_jetson();
    (is_told && environment.pci_gpus().is_empty()).then(|| {
        let fixes = [
            "use the simulator, with `--device sim`",
            "in a cloud, use a machine with a GPU; in a virtual machine, pass the GPU through",
            "if there is a GPU: check its power and slot, and `lspci -d 10de:`",
        ];
        Finding::failure(
            "hardware",
            "there is no NVIDIA GPU on the PCI bus of this machine",
            fixes,
        )
    })
}

/// Reports a GPU without NVIDIA's kernel module.
pub(super) fn no_module(environment: &Environment) -> Option<Finding> {
    if environment.pci_gpus().is_empty() || environment.module_version().is_some() {
        return None;
    }
    let gpus = environment.pci_gpus().join(", ");
    if environment
        .folder("/proc/modules")
        .iter()
        .any(|name| name == "nouveau")
    {
        let fixes = [
            "install the NVIDIA driver, which blacklists nouveau, and restart",
            "if it is installed: add `blacklist nouveau` to a file in /etc/modprobe.d, rebuild the initramfs, and restart",
        ];
        return Some(Finding::failure(
            "nouveau",
            format!("the GPU {gpus} is driven by nouveau, which does not support CUDA"),
            fixes,
        ));
    }
    let fixes = [
        "`sudo modprobe nvidia`, and check `sudo dmesg`",
        "after an update of the kernel: rebuild the module, usually with `sudo dkms autoinstall`",
        "with Secure Boot, the module must be signed with a trusted key (`mokutil --sb-state`)",
    ];
    Some(Finding::failure(
        "kernel-module",
        format!("there is a GPU, {gpus}, but NVIDIA's kernel module is not loaded"),
        fixes,
    ))
}
