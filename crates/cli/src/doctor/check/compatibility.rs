//! Libraries and kernel modules of different versions, on purpose (forward compatibility) or not.

use crate::doctor::environment::Environment;
use crate::doctor::finding::Finding;

/// That the library is one for forward compatibility.
pub(super) fn note(environment: &Environment) -> Option<Finding> {
    (is_compat(environment) && environment.start_failure().is_none()).then(|| {
        let path = environment.library_path().unwrap_or_default();
        Finding::note(
            "forward-compatibility",
            format!("{path} is a library for forward compatibility: newer than the kernel module, and for GPUs of data centres only"),
        )
    })
}

/// What `CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE` comes from.
pub(super) fn not_supported(environment: &Environment) -> Finding {
    let path = environment.library_path().unwrap_or("the library");
    let fixes = [
        "take the folder `compat` off LD_LIBRARY_PATH and out of /etc/ld.so.conf.d, so that the driver's own library is found",
        "remove the package `cuda-compat-…`, and update the driver instead",
        "in a container of NVIDIA's, choose an image for an older CUDA, or update the host's driver",
    ];
    let what =
        format!("{path} is for forward compatibility, which works on GPUs of data centres only, and not on this one");
    Finding::failure("forward-compatibility", what, fixes)
}

/// What `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH` comes from.
pub(super) fn mismatch(environment: &Environment) -> Finding {
    if is_compat(environment) {
        let fixes = [
            "update the driver: the package for forward compatibility needs at least the branch that NVIDIA's table names for it",
            "take the folder `compat` off LD_LIBRARY_PATH, and use the driver's own library",
        ];
        let what = "the library for forward compatibility does not go with the kernel module that is loaded".to_owned();
        return Finding::failure("forward-compatibility", what + &versions(environment), fixes);
    }
    let fixes = [
        "restart the machine: after an update of the driver the old kernel module is still loaded",
        "or reload it, with every program that uses the GPU ended: `sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo \
         modprobe nvidia`",
        "in a container: let the toolkit bring the host's library, and install none in the image",
    ];
    let what = "the driver's library and its kernel module are of different versions".to_owned();
    Finding::failure("driver-mismatch", what + &versions(environment), fixes)
}

fn versions(environment: &Environment) -> String {
    let known = |version: Option<&str>| version.unwrap_or("unknown").to_owned();
    format!(": library {}, module {}", known(environment.library_version()), known(environment.module_version()))
}

fn is_compat(environment: &Environment) -> bool {
    environment.library_path().is_some_and(|path| path.contains("/compat/"))
}
