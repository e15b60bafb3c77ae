//! Collects the facts about this machine. Nothing is changed; an unreadable file counts as absent.

mod libraries;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use crate::doctor::environment::{Access, Entry, Environment};
use crate::doctor::trial;

/// The environment variables that matter to CUDA.
const VARIABLES: &[&str] = &[
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_VISIBLE_DEVICES",
    "CURIUM_DRIVER_PATH",
    "KUBERNETES_SERVICE_HOST",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
];

/// Small files whose text is read.
const TEXTS: &[&str] = &[
    "/etc/nv_tegra_release",
    "/proc/1/cgroup",
    "/proc/device-tree/model",
    "/proc/driver/nvidia/version",
    "/proc/version",
];

/// Files whose existence matters.
const MARKS: &[&str] = &[
    "/.dockerenv",
    "/etc/NIXOS",
    "/run/.containerenv",
    "/run/systemd/container",
    "/proc/driver/nvidia/capabilities/mig/config",
];

/// Folders in which file names that begin with `libcuda.so` are recorded.
const LIBRARY_FOLDERS: &[&str] = &[
    "/run/opengl-driver/lib",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/wsl/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib64-nvidia",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
];

/// Collects the facts about this machine. With `simulated`, the driver is the simulator.
pub(super) fn survey(simulated: bool) -> Environment {
    let mut environment = Environment {
        system: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        variables: variables(),
        files: files(),
        ..Environment::default()
    };
    libraries::load(&mut environment);
    trial::try_out(&mut environment, simulated);
    environment
}

fn variables() -> BTreeMap<String, String> {
    VARIABLES
        .iter()
        .filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some(((*name).to_owned(), value.to_string_lossy().into_owned()))
        })
        .collect()
}

fn files() -> BTreeMap<String, Entry> {
    let mut files = Vec::new();
    for path in TEXTS {
        files.push((*path, read_text(path)));
    }
    for path in MARKS {
        files.push((*path, Path::new(path).exists().then_some(Entry::Present)));
    }
    for path in LIBRARY_FOLDERS {
        let libraries = folder(path, |name| name.starts_with("libcuda.so"));
        let libraries = libraries.filter(|entry| *entry != Entry::Folder(Vec::new()));
        files.push((*path, libraries));
    }
    for path in ["/proc/driver/nvidia/gpus", "/sys/class/iommu"] {
        files.push((path, folder(path, |_| true)));
    }
    files.push(("/proc/modules", modules()));
    files.push(("nvidia-pci-gpus", pci_gpus()));
    let nodes = device_nodes();
    for path in &nodes {
        files.push((path, node(path)));
    }
    let mig_folders = mig_folders();
    for path in &mig_folders {
        files.push((path, folder(path, |name| name.starts_with("gi"))));
    }
    files
        .into_iter()
        .filter_map(|(path, entry)| Some((path.to_owned(), entry?)))
        .collect()
}

/// Returns the text of a file, up to 16 KiB.
fn read_text(path: &str) -> Option<Entry> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(16 << 10)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(Entry::Text(text.trim_end_matches(['\0', '\n']).to_owned()))
}

/// Returns the chosen names in a folder, sorted.
fn folder(path: &str, choose: impl Fn(&str) -> bool) -> Option<Entry> {
    let mut names = names(path)?;
    names.retain(|name| choose(name));
    Some(Entry::Folder(names))
}

fn names(path: &str) -> Option<Vec<String>> {
    let entries = fs::read_dir(path).ok()?;
    let mut names: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Some(names)
}

/// Returns the kernel modules that drive NVIDIA GPUs.
fn modules() -> Option<Entry> {
    let modules = fs::read_to_string("/proc/modules").ok()?;
    let names = modules.lines().filter_map(|line| line.split(' ').next());
    let chosen = names.filter(|name| {
        name.starts_with("nvidia") || *name == "nouveau" || name.starts_with("nova")
    });
    Some(Entry::Folder(chosen.map(str::to_owned).collect()))
}

/// Returns the GPUs among NVIDIA's devices on the PCI bus: class 03 is a display controller, class
/// 12 an accelerator.
fn pci_gpus() -> Option<Entry> {
    const BUS: &str = "/sys/bus/pci/devices";
    folder(BUS, |device| {
        let class = fs::read_to_string(format!("{BUS}/{device}/class")).unwrap_or_default();
        let vendor = fs::read_to_string(format!("{BUS}/{device}/vendor")).unwrap_or_default();
        vendor.trim() == "0x10de" && (class.starts_with("0x03") || class.starts_with("0x12"))
    })
}

fn device_nodes() -> Vec<String> {
    let mut nodes = Vec::new();
    for name in names("/dev").unwrap_or_default() {
        if is_device_node(&name) {
            nodes.push(format!("/dev/{name}"));
        }
    }
    for name in names("/dev/nvidia-caps").unwrap_or_default() {
        if name.starts_with("nvidia-cap") {
            nodes.push(format!("/dev/nvidia-caps/{name}"));
        }
    }
    nodes
}

fn is_device_node(name: &str) -> bool {
    match name.strip_prefix("nvidia") {
        Some(suffix) => suffix == "ctl" || suffix == "-uvm" || is_number(suffix),
        None => matches!(name, "dxg" | "nvmap" | "nvhost-gpu"),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the folders in which the kernel module lists the MIG instances of each GPU.
fn mig_folders() -> Vec<String> {
    let root = "/proc/driver/nvidia/capabilities";
    let gpus = names(root)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.starts_with("gpu"));
    gpus.map(|gpu| format!("{root}/{gpu}/mig")).collect()
}

/// Opens a device node as CUDA does, and returns the result.
fn node(path: &str) -> Option<Entry> {
    const FORBIDDEN: i32 = 1; // EPERM
    const DENIED: i32 = 13; // EACCES
    let opened = if path.contains("nvidia-cap") {
        // Capabilities are opened for reading only.
        File::open(path)
    } else {
        OpenOptions::new().read(true).write(true).open(path)
    };
    Some(Entry::Node(match opened {
        Ok(_) => Access::Granted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) if error.raw_os_error() == Some(FORBIDDEN) => Access::Forbidden,
        Err(error) if error.raw_os_error() == Some(DENIED) => Access::Denied,
        Err(_) => Access::Broken,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survey_reads_listed_variables_only() {
        let environment = survey(true);
        assert_eq!(environment.system, std::env::consts::OS);
        if cfg!(target_os = "linux") {
            assert!(environment.file_text("/proc/version").contains("Linux"));
        }
        assert!(
            environment
                .variables
                .keys()
                .all(|name| VARIABLES.contains(&name.as_str()))
        );
    }

    #[test]
    fn only_numbered_nodes_are_devices() {
        assert!(is_number("0") && is_number("15") && !is_number("") && !is_number("-modeset"));
    }

    #[test]
    fn node_that_does_not_exist_is_absent() {
        assert_eq!(node("/dev/nvidia-absent"), None);
        assert_eq!(node("/dev/null"), Some(Entry::Node(Access::Granted)));
    }
}
