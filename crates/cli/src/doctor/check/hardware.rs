//! Whether there is a GPU at all, and a kernel module that drives it.

use crate::doctor::environment::{Attempt, Environment};
use crate::doctor::finding::Finding;

/// Why no driver can be there: no GPU, or one that another module drives.
pub(super) fn explain(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    no_gpu(environment).or_else(|| no_module(environment))
}

/// That the PCI bus has no GPU of NVIDIA.
pub(super) fn no_gpu(environment: &Environment) -> Option<Finding> {
    let is_told = environment.has("nvidia-pci-gpus") && !environment.is_wsl() && !environment.is_jetson();
    (is_told && environment.pci_gpus().is_empty()).then(|| {
        let fixes = [
            "use the simulator, with `--device sim`",
            "on a cloud, choose a machine with a GPU; in a virtual machine, pass the GPU through",
            "if a GPU is built in: check its power and slot, and `lspci -d 10de:`",
        ];
        Finding::failure("hardware", "there is no NVIDIA GPU on the PCI bus of this machine", fixes)
    })
}

/// That there is a GPU, and NVIDIA's module does not drive it.
pub(super) fn no_module(environment: &Environment) -> Option<Finding> {
    if environment.pci_gpus().is_empty() || environment.module_version().is_some() {
        return None;
    }
    let gpus = environment.pci_gpus().join(", ");
    if environment.folder("/proc/modules").iter().any(|name| name == "nouveau") {
        let fixes = [
            "install the NVIDIA driver, which blacklists nouveau, and restart",
            "if it is installed: put `blacklist nouveau` into a file in /etc/modprobe.d, rebuild the initramfs, and restart",
        ];
        return Some(Finding::failure(
            "nouveau",
            format!("the GPU {gpus} is driven by nouveau, which has no CUDA"),
            fixes,
        ));
    }
    let fixes = [
        "`sudo modprobe nvidia`, and see what `sudo dmesg` says",
        "after an update of the kernel: build the module again, mostly `sudo dkms autoinstall`",
        "with Secure Boot, the module has to be signed with a key that the machine trusts (`mokutil --sb-state`)",
    ];
    Some(Finding::failure(
        "kernel-module",
        format!("there is a GPU, {gpus}, but NVIDIA's kernel module is not loaded"),
        fixes,
    ))
}
