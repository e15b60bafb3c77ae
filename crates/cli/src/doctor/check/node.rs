//! The device nodes, through which the library reaches the kernel module.

use crate::doctor::environment::{Access, Environment};
use crate::doctor::finding::Finding;

const CHECK: &str = "device-nodes";

/// What is wrong with the nodes.
pub(super) fn explain(environment: &Environment) -> Option<Finding> {
    with_access(environment, Access::Denied, denied)
        .or_else(|| with_access(environment, Access::Forbidden, forbidden))
        .or_else(|| missing(environment))
        .or_else(|| with_access(environment, Access::Broken, broken))
}

fn with_access(environment: &Environment, access: Access, explain: fn(&str) -> Finding) -> Option<Finding> {
    let nodes = environment.nodes("/dev/").filter(|(path, _)| !path.starts_with("/dev/nvidia-caps"));
    let names: Vec<_> = nodes.filter(|(_, found)| *found == access).map(|(path, _)| path).collect();
    (!names.is_empty()).then(|| explain(&names.join(", ")))
}

fn denied(names: &str) -> Finding {
    let fixes = [
        "`ls -l /dev/nvidia*`: the nodes should be readable and writable for all, or for a group that you are in",
        "join the group, mostly `sudo usermod -aG video,render $USER`, and log in again",
        "their mode comes from NVreg_DeviceFileMode in /etc/modprobe.d: without it, it is 666",
    ];
    Finding::failure("permissions", format!("this user may not read and write {names}"), fixes)
}

fn forbidden(names: &str) -> Finding {
    let fixes = [
        "start the container by the NVIDIA Container Toolkit (`--gpus all`): nodes that are only mounted are not allowed",
        "after `systemctl daemon-reload` on the host containers lose their GPUs: start the container again, and name the nodes with \
         `--device`",
        "LXC: allow the nodes with `lxc.cgroup2.devices.allow`",
    ];
    Finding::failure(
        "permissions",
        format!("the rules for devices of this container forbid {names}, whatever the file's mode"),
        fixes,
    )
}

fn broken(names: &str) -> Finding {
    let fixes = ["see what `sudo dmesg` says of NVRM; load the module again, or restart"];
    Finding::failure(
        CHECK,
        format!("{names} can be opened by nobody: no driver is behind it, or the GPU has failed"),
        fixes,
    )
}

/// Nodes that the loaded module should have.
fn missing(environment: &Environment) -> Option<Finding> {
    environment.module_version()?;
    let has = |name: &str| environment.nodes(name).next().is_some();
    let needed = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"];
    let missing: Vec<_> = needed.into_iter().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let what = format!("the kernel module is loaded, but {} is absent", missing.join(", "));
    if environment.is_container() {
        let fixes = [
            "pass it into the container: `--gpus all`, or `--device /dev/nvidia-uvm --device /dev/nvidiactl --device /dev/nvidia0`",
        ];
        return Some(Finding::failure(CHECK, what, fixes));
    }
    let fixes = [
        "make the nodes: `sudo nvidia-modprobe -c 0 -u`",
        "install the package `nvidia-modprobe`, which makes them when they are needed",
    ];
    Some(Finding::failure(CHECK, what, fixes))
}
