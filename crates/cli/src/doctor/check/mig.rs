//! Multi-Instance GPU (MIG).

use crate::doctor::environment::{Access, Environment};
use crate::doctor::finding::Finding;

const CHECK: &str = "mig";

/// Explains why a process sees no device with MIG.
pub(super) fn explain(environment: &Environment) -> Option<Finding> {
    if environment.module_gpus() == 0 {
        return None;
    }
    let instances = instances(environment);
    if instances == 0 {
        return folders(environment).next().map(|_| none_made());
    }
    let denied = environment
        .nodes("/dev/nvidia-caps/")
        .find(|(_, access)| *access != Access::Granted);
    Some(match denied {
        Some((node, _)) => may_not(node),
        None => not_passed(instances),
    })
}

/// Reports that a process sees one MIG instance at most.
pub(super) fn note(environment: &Environment) -> Option<Finding> {
    let instance = environment
        .devices
        .iter()
        .find(|device| device.name.contains("MIG"))?;
    let what = format!(
        "{} is a MIG instance: a process sees one of them at most, chosen with CUDA_VISIBLE_DEVICES=MIG-…, and none has peer access",
        instance.name
    );
    Some(Finding::note(CHECK, what))
}

fn none_made() -> Finding {
    let fixes = [
        "create instances: `sudo nvidia-smi mig -lgip` lists the profiles, `sudo nvidia-smi mig -cgi 0 -C` creates one of the first",
        "or disable MIG: `sudo nvidia-smi -mig 0`, and reset the GPU or restart",
        "`nvidia-smi -q -d MIG` shows the mode; if MIG is off, check `sudo dmesg`",
    ];
    Finding::failure(
        CHECK,
        "the GPU supports MIG and has no instance: CUDA sees no device if MIG is on",
        fixes,
    )
}

fn may_not(node: &str) -> Finding {
    let fixes = [
        "allow reading: `sudo chmod o+r` on the node, or by nvidia-modprobe (`nvidia-modprobe -f`)",
        "in a container, name the instance: `--gpus '\"device=0:0\"'`, or NVIDIA_VISIBLE_DEVICES=MIG-…",
    ];
    Finding::failure(
        CHECK,
        format!("there are MIG instances, but this process has no permission to read {node}"),
        fixes,
    )
}

fn not_passed(instances: usize) -> Finding {
    let fixes = [
        "name one: CUDA_VISIBLE_DEVICES=MIG-…, with a name that `nvidia-smi -L` shows",
        "instances of the GPU also need compute instances: `sudo nvidia-smi mig -cci`",
    ];
    Finding::failure(
        CHECK,
        format!("there are {instances} MIG instances, and none is visible to this process"),
        fixes,
    )
}

fn instances(environment: &Environment) -> usize {
    folders(environment)
        .map(|folder| environment.folder(folder).len())
        .sum()
}

fn folders(environment: &Environment) -> impl Iterator<Item = &str> {
    environment.files.keys().map(String::as_str).filter(|path| {
        path.starts_with("/proc/driver/nvidia/capabilities/gpu") && path.ends_with("/mig")
    })
}
