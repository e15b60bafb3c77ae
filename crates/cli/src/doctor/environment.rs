//! The facts about a machine that matter to CUDA.

use std::collections::BTreeMap;

use crate::doctor::ptx::Header;

/// The facts about a machine: plain data, collected by [`survey`](crate::doctor::survey::survey) or
/// made up by a test.
#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Environment {
    /// The operating system, such as `linux`.
    pub(crate) system: String,
    /// The processor, such as `x86_64`.
    pub(crate) architecture: String,
    /// The variables of the environment that matter to CUDA.
    pub(crate) variables: BTreeMap<String, String>,
    /// The relevant files that exist.
    pub(crate) files: BTreeMap<String, Entry>,
    /// The result of loading the driver's library.
    pub(crate) library: Library,
    /// The result of `cuInit` and `cuDeviceGetCount`, if the library was loaded.
    pub(crate) start: Option<Start>,
    /// The result of the test kernel on each device.
    pub(crate) devices: Vec<DeviceTrial>,
    /// The pairs of devices of which the first has no peer access to the second.
    #[serde(default)]
    pub(crate) peers_denied: Vec<(usize, usize)>,
    /// The CUDA version of the NVRTC that was found.
    pub(crate) nvrtc: Option<String>,
    /// NVIDIA's libraries, which programs load on demand.
    #[serde(default)]
    pub(crate) libraries: Vec<OptionalLibrary>,
    /// The header of the PTX file to check.
    pub(crate) ptx: Option<Header>,
}

/// The result of loading one of NVIDIA's libraries.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub(crate) struct OptionalLibrary {
    /// Such as `cuBLAS`.
    pub(crate) name: String,
    /// The library's own version; `None` if it was not found or does not load.
    pub(crate) version: Option<String>,
    /// The file, if the system reports it.
    pub(crate) path: Option<String>,
    /// The first line of each reason why a file was rejected.
    #[serde(default)]
    pub(crate) rejected: Vec<String>,
}

/// The kind of file at a path.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A small file with this text.
    Text(String),
    /// A folder with these names.
    Folder(Vec<String>),
    /// A device node.
    Node(Access),
    /// A file whose content does not matter.
    Present,
}

/// The result of opening a device node for reading and writing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    Granted,
    /// Denied by the file's mode and owner (`EACCES`).
    Denied,
    /// Denied by another rule, such as a container's device cgroup (`EPERM`).
    Forbidden,
    /// The node exists, but opening it failed for another reason.
    Broken,
}

/// The result of loading the driver's library.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Library {
    Loaded {
        /// The CUDA version, such as `12.8`.
        version: String,
        /// The file, if the system reports it.
        path: Option<String>,
    },
    Failed(Vec<Attempt>),
}

/// A path that was rejected.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub(crate) struct Attempt {
    pub(crate) path: String,
    pub(crate) rejection: Rejection,
    /// The loader's message.
    pub(crate) reason: String,
}

/// The reason why a path was rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rejection {
    Unloadable,
    NotADriver,
    Stub,
    NoVersion,
    TooOld,
}

/// The result of initializing the driver.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Start {
    /// The number of visible devices.
    Devices(usize),
    Failed(Failure),
}

/// A driver call that failed.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub(crate) struct Failure {
    pub(crate) code: u32,
    /// The whole error, with the name of the call.
    pub(crate) text: String,
}

/// The result of using a device: a context, a copy, a kernel.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub(crate) struct DeviceTrial {
    pub(crate) name: String,
    /// Such as `9.0`.
    pub(crate) compute_capability: String,
    /// The time in milliseconds, or the failure.
    pub(crate) outcome: Result<u64, Failure>,
}

impl Default for Library {
    fn default() -> Self {
        Self::Failed(Vec::new())
    }
}

impl Environment {
    /// Returns an environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns `true` if `path` exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns the text of a small file, empty if it does not exist.
    pub(crate) fn file_text(&self, path: &str) -> &str {
        match self.files.get(path) {
            Some(Entry::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns the names in a folder, none if it does not exist.
    pub(crate) fn folder(&self, path: &str) -> &[String] {
        match self.files.get(path) {
            Some(Entry::Folder(names)) => names,
            _ => &[],
        }
    }

    /// Returns the device nodes whose path begins with `prefix`.
    pub(crate) fn nodes(&self, prefix: &str) -> impl Iterator<Item = (&str, Access)> {
        let nodes = self
            .files
            .iter()
            .filter(move |(path, _)| path.starts_with(prefix));
        nodes.filter_map(|(path, entry)| match entry {
            Entry::Node(access) => Some((path.as_str(), *access)),
            _ => None,
        })
    }

    /// Returns `true` in the Windows Subsystem for Linux.
    pub(crate) fn is_wsl(&self) -> bool {
        self.file_text("/proc/version")
            .to_lowercase()
            .contains("microsoft")
    }

    /// Returns `true` if the IOMMU is enabled.
    pub(crate) fn has_iommu(&self) -> bool {
        !self.folder("/sys/class/iommu").is_empty()
    }

    /// Returns `true` in a container.
    pub(crate) fn is_container(&self) -> bool {
        let marks = ["docker", "kubepods", "containerd", "lxc", "libpod"];
        let control = self.file_text("/proc/1/cgroup");
        [
            "/.dockerenv",
            "/run/.containerenv",
            "/run/systemd/container",
        ]
        .iter()
        .any(|path| self.has(path))
            || marks.iter().any(|mark| control.contains(mark))
            || self.variable("KUBERNETES_SERVICE_HOST").is_some()
    }

    /// Returns `true` on a Jetson.
    pub(crate) fn is_jetson(&self) -> bool {
        self.has("/etc/nv_tegra_release")
            || self.file_text("/proc/device-tree/model").contains("Jetson")
    }

    /// Returns `true` on NixOS.
    pub(crate) fn is_nixos(&self) -> bool {
        self.has("/etc/NIXOS")
    }

    /// Returns the PCI addresses of NVIDIA GPUs, such as `0000:01:00.0`.
    pub(crate) fn pci_gpus(&self) -> &[String] {
        self.folder("nvidia-pci-gpus")
    }

    /// Returns the number of GPUs that NVIDIA's kernel module reports.
    pub(crate) fn module_gpus(&self) -> usize {
        self.folder("/proc/driver/nvidia/gpus").len()
    }

    /// Returns the version of NVIDIA's kernel module, such as `580.159.03`, if it is loaded.
    pub(crate) fn module_version(&self) -> Option<&str> {
        let line = self
            .file_text("/proc/driver/nvidia/version")
            .lines()
            .find(|line| line.starts_with("NVRM version"))?;
        line.split_whitespace().find(|word| is_driver_version(word))
    }

    /// Returns the version in the file name of the loaded library, such as `580.159.03` in
    /// `libcuda.so.580.159.03`.
    pub(crate) fn library_version(&self) -> Option<&str> {
        let version = self.library_path()?.rsplit_once("libcuda.so.")?.1;
        is_driver_version(version).then_some(version)
    }

    /// Returns the file of the loaded library.
    pub(crate) fn library_path(&self) -> Option<&str> {
        match &self.library {
            Library::Loaded { path, .. } => path.as_deref(),
            Library::Failed(_) => None,
        }
    }

    /// Returns the failure of the driver's initialization.
    pub(crate) fn start_failure(&self) -> Option<&Failure> {
        match &self.start {
            Some(Start::Failed(failure)) => Some(failure),
            _ => None,
        }
    }
}

/// Returns `true` for a driver version: two or three numbers, the first of three digits.
fn is_driver_version(word: &str) -> bool {
    let parts: Vec<_> = word.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts[0].len() == 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_version_in_both_file_formats() {
        for (text, expected) in [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024",
                "535.183.01",
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12.2.0",
                "580.65.06",
            ),
        ] {
            let mut environment = Environment::default();
            environment.files.insert(
                "/proc/driver/nvidia/version".to_owned(),
                Entry::Text(text.to_owned()),
            );
            assert_eq!(environment.module_version(), Some(expected));
        }
        assert_eq!(Environment::default().module_version(), None);
    }

    /// The version is that of the file, not of the link.
    #[test]
    fn library_version_is_in_the_file_name() {
        fn with(path: &str) -> Environment {
            Environment {
                library: Library::Loaded {
                    version: "12.8".to_owned(),
                    path: Some(path.to_owned()),
                },
                ..Environment::default()
            }
        }
        assert_eq!(
            with("/usr/lib/libcuda.so.570.86.15").library_version(),
            Some("570.86.15")
        );
        assert_eq!(
            with("/usr/lib/wsl/lib/libcuda.so.1").library_version(),
            None
        );
        assert_eq!(with("/usr/lib/libcuda.so.1.1").library_version(), None);
    }
}
