//! Mismatch of the driver library and the kernel module, and forward compatibility.

use crate::doctor::environment::Environment;
use crate::doctor::finding::Finding;

/// Reports a forward-compatibility library.
pub(super) fn note(environment: &Environment) -> Option<Finding> {
    (is_compat(environment) && environment.start_failure().is_none()).then(|| {
        let path = environment.library_path().unwrap_or_default();
        Finding::note(
            "forward-compatibility",
            format!("{path} is a library for forward compatibility: newer than the kernel module, and for data center GPUs only"),
        )
    })
}

/// Explains `CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE`.
pub(super) fn not_supported(environment: &Environment) -> Finding {
    let path = environment.library_path().unwrap_or("the library");
    let fixes = [
        "remove the folder `compat` from LD_LIBRARY_PATH and /etc/ld.so.conf.d, so that the driver's own library is found",
        "remove the package `cuda-compat-…`, and update the driver instead",
        "in an NVIDIA container, use an image for an older CUDA, or update the host's driver",
    ];
    let what = format!(
        "{path} is for forward compatibility, which works on data center GPUs only, not on this one"
    );
    Finding::failure("forward-compatibility", what, fixes)
}

/// Explains `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`.
pub(super) fn mismatch(environment: &Environment) -> Finding {
    if is_compat(environment) {
        let fixes = [
            "update the driver: the forward compatibility package requires at least the driver branch that NVIDIA's table lists for it",
            "remove the folder `compat` from LD_LIBRARY_PATH, and use the driver's own library",
        ];
        let what =
            "the forward compatibility library does not match the loaded kernel module".to_owned();
        return Finding::failure(
            "forward-compatibility",
            what + &versions(environment),
            fixes,
        );
    }
    let fixes = [
        "restart the machine: the old kernel module is still loaded after an update of the driver",
        "or end every program that uses the GPU, and reload it: `sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo \
         modprobe nvidia`",
        "in a container: use the host's library through the container toolkit, and install none in the image",
    ];
    let what = "the driver's library and its kernel module are of different versions".to_owned();
    Finding::failure("driver-mismatch", what + &versions(environment), fixes)
}

fn versions(environment: &Environment) -> String {
    format!(
        ": library {}, module {}",
        environment.library_version().unwrap_or("unknown"),
        environment.module_version().unwrap_or("unknown")
    )
}

fn is_compat(environment: &Environment) -> bool {
    environment
        .library_path()
        .is_some_and(|path| path.contains("/compat/"))
}
