//! The device nodes, through which the library reaches the kernel module.

use crate::doctor::environment::{Access, Environment};
use crate::doctor::finding::Finding;

const CHECK: &str = "device-nodes";

/// Reports problems with the nodes.
pub(super) fn explain(environment: &Environment) -> Option<Finding> {
    with_access(environment, Access::Denied, denied)
        .or_else(|| with_access(environment, Access::Forbidden, forbidden))
        .or_else(|| missing(environment))
        .or_else(|| with_access(environment, Access::Broken, broken))
}

fn with_access(
    environment: &Environment,
    access: Access,
    explain: fn(&str) -> Finding,
) -> Option<Finding> {
    let nodes = environment
        .nodes("/dev/")
        .filter(|(path, _)| !path.starts_with("/dev/nvidia-caps"));
    let names: Vec<_> = nodes
        .filter(|(_, found)| *found == access)
        .map(|(path, _)| path)
        .collect();
    (!names.is_empty()).then(|| explain(&names.join(", ")))
}

fn denied(names: &str) -> Finding {
    let fixes = [
        "`ls -l /dev/nvidia*`: the nodes must be readable and writable for all users, or for a group of yours",
        "join the group, usually `sudo usermod -aG video,render $USER`, and log in again",
        "NVreg_DeviceFileMode in /etc/modprobe.d sets their mode; the default is 666",
    ];
    Finding::failure(
        "permissions",
        format!("this user has no permission to read and write {names}"),
        fixes,
    )
}

fn forbidden(names: &str) -> Finding {
    let fixes = [
        "start the container with the NVIDIA Container Toolkit (`--gpus all`): mounting the nodes is not sufficient",
        "after `systemctl daemon-reload` on the host containers lose their GPUs: start the container again, and name the nodes with \
         `--device`",
        "LXC: allow the nodes with `lxc.cgroup2.devices.allow`",
    ];
    Finding::failure(
        "permissions",
        format!("the device rules of this container forbid {names}, regardless of the file mode"),
        fixes,
    )
}

fn broken(names: &str) -> Finding {
    let fixes = ["check `sudo dmesg` for NVRM messages; reload the kernel module, or restart"];
    Finding::failure(
        CHECK,
        format!("{names} cannot be opened: there is no driver behind it, or the GPU has failed"),
        fixes,
    )
}

/// Reports missing nodes of the loaded kernel module.
fn missing(environment: &Environment) -> Option<Finding> {
    environment.module_version()?;
    let needed = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"];
    let missing: Vec<_> = needed
        .into_iter()
        .filter(|name| environment.nodes(name).next().is_none())
        .collect();
    if missing.is_empty() {
        return None;
    }
    let what = format!(
        "the kernel module is loaded, but {} is absent",
        missing.join(", ")
    );
    if environment.is_container() {
        let fixes = [
            "pass it into the container: `--gpus all`, or `--device /dev/nvidia-uvm --device /dev/nvidiactl --device /dev/nvidia0`",
        ];
        return Some(Finding::failure(CHECK, what, fixes));
    }
    let fixes = [
        "create the nodes: `sudo nvidia-modprobe -c 0 -u`",
        "install the package `nvidia-modprobe`, which creates them on demand",
    ];
    Some(Finding::failure(CHECK, what, fixes))
}
