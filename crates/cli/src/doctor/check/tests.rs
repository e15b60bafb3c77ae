//! Each failure, on a made-up machine that has it.

mod optional_libraries;
mod peer_access;

use super::*;
use crate::doctor::environment::{Access, Attempt, DeviceTrial, Entry, Failure, Rejection};
use crate::doctor::finding::Severity;
use crate::doctor::ptx::Header;

const ABSENT: &str = "libcuda.so.1: cannot open shared object file: No such file or directory";

/// A machine with Linux and one GPU on the bus, and nothing else.
fn bare() -> Environment {
    let mut environment = Environment {
        system: "linux".to_owned(),
        architecture: "x86_64".to_owned(),
        library: failed("libcuda.so.1", Rejection::Unloadable, ABSENT),
        ..Environment::default()
    };
    put(
        &mut environment,
        "/proc/version",
        Entry::Text("Linux version 6.8.0 (gcc)".to_owned()),
    );
    put(
        &mut environment,
        "nvidia-pci-gpus",
        names(&["0000:01:00.0"]),
    );
    environment
}

/// A machine on which everything works.
fn healthy() -> Environment {
    let mut environment = bare();
    let module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 2025";
    put(
        &mut environment,
        "/proc/driver/nvidia/version",
        Entry::Text(module.to_owned()),
    );
    put(
        &mut environment,
        "/proc/driver/nvidia/gpus",
        names(&["0000:01:00.0"]),
    );
    for node in ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"] {
        put(&mut environment, node, Entry::Node(Access::Granted));
    }
    environment.library = loaded("12.8", "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15");
    environment.start = Some(Start::Devices(1));
    environment.devices = vec![device("NVIDIA H100", "9.0", Ok(200))];
    environment
}

/// A healthy machine whose driver does not start.
fn not_starting(code: u32) -> Environment {
    Environment {
        start: Some(Start::Failed(failure(code))),
        devices: Vec::new(),
        ..healthy()
    }
}

fn no_device() -> Environment {
    not_starting(100)
}

fn failed(path: &str, rejection: Rejection, reason: &str) -> Library {
    Library::Failed(vec![Attempt {
        path: path.to_owned(),
        rejection,
        reason: reason.to_owned(),
    }])
}

fn loaded(version: &str, path: &str) -> Library {
    Library::Loaded {
        version: version.to_owned(),
        path: Some(path.to_owned()),
    }
}

fn failure(code: u32) -> Failure {
    Failure {
        code,
        text: format!("cuInit: failed ({code})"),
    }
}

fn device(name: &str, compute_capability: &str, outcome: Result<u64, Failure>) -> DeviceTrial {
    DeviceTrial {
        name: name.to_owned(),
        compute_capability: compute_capability.to_owned(),
        outcome,
    }
}

fn names(names: &[&str]) -> Entry {
    Entry::Folder(names.iter().map(|name| (*name).to_owned()).collect())
}

fn put(environment: &mut Environment, path: &str, entry: Entry) {
    environment.files.insert(path.to_owned(), entry);
}

fn set(environment: &mut Environment, name: &str, value: &str) {
    environment
        .variables
        .insert(name.to_owned(), value.to_owned());
}

/// Asserts that the only failure is of `check`, that its problem contains `what`, and that one of
/// its fixes contains `fix`.
#[track_caller]
fn assert_failure(environment: &Environment, check: &str, what: &str, fix: &str) {
    let failures: Vec<_> = findings(environment)
        .into_iter()
        .filter(|finding| finding.severity == Severity::Failure)
        .collect();
    let [failure] = &failures[..] else {
        panic!("one failure was expected: {failures:#?}")
    };
    assert_eq!(failure.check, check, "{failure:#?}");
    assert!(failure.what.contains(what), "{failure:#?}");
    assert!(
        failure.fixes.iter().any(|text| text.contains(fix)),
        "{failure:#?}"
    );
}

/// Returns the finding of `check`, and asserts that there is no failure.
#[track_caller]
fn finding(environment: &Environment, check: &str) -> Finding {
    let findings = findings(environment);
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity != Severity::Failure),
        "{findings:#?}"
    );
    findings
        .iter()
        .find(|finding| finding.check == check)
        .unwrap_or_else(|| panic!("{check} is absent: {findings:#?}"))
        .clone()
}

#[test]
fn healthy_machine_needs_no_fix() {
    let findings = findings(&healthy());
    assert!(
        findings.iter().all(|finding| finding.fixes.is_empty()),
        "{findings:#?}"
    );
    assert!(
        findings
            .iter()
            .any(|finding| finding.check == "device" && finding.severity == Severity::Good)
    );
}

/// Without a driver, the advice is to load the kernel module.
#[test]
fn missing_driver_advice() {
    assert_failure(&bare(), "kernel-module", "0000:01:00.0", "modprobe nvidia");
}

/// A GPU that nouveau drives needs NVIDIA's driver.
#[test]
fn nouveau_is_replaced() {
    let mut environment = bare();
    put(&mut environment, "/proc/modules", names(&["nouveau"]));
    assert_failure(&environment, "nouveau", "nouveau", "blacklist");
}

/// Advises to use the simulator.
#[test]
fn machine_without_a_gpu() {
    let mut environment = bare();
    put(&mut environment, "nvidia-pci-gpus", names(&[]));
    assert_failure(&environment, "hardware", "no NVIDIA GPU", "--device sim");
}

/// Advises to install a driver.
#[test]
fn unreadable_pci_bus() {
    let mut environment = bare();
    environment.files.remove("nvidia-pci-gpus");
    assert_failure(
        &environment,
        "library",
        "no NVIDIA driver",
        "install the NVIDIA driver",
    );
}

/// Names the version of the library to install.
#[test]
fn module_without_library() {
    let environment = Environment {
        library: bare().library,
        start: None,
        devices: Vec::new(),
        ..healthy()
    };
    assert_failure(
        &environment,
        "library",
        "570.86.15",
        "libnvidia-compute-570",
    );
}

#[test]
fn toolkit_stub_is_no_driver() {
    let stub = failed(
        "libcuda.so",
        Rejection::Stub,
        "the CUDA toolkit's stub library",
    );
    assert_failure(
        &Environment {
            library: stub,
            ..bare()
        },
        "stub",
        "libcuda.so",
        "`stubs` folder",
    );
}

#[test]
fn old_driver_needs_an_update() {
    let library = failed(
        "libcuda.so.1",
        Rejection::TooOld,
        "a driver for CUDA 11.4 (CUDA 11.8 or newer is required)",
    );
    assert_failure(
        &Environment { library, ..bare() },
        "driver-version",
        "11.4",
        "520",
    );
}

#[test]
fn chosen_path_is_named() {
    let mut environment = bare();
    set(&mut environment, "CURIUM_DRIVER_PATH", "/opt/none");
    assert_failure(
        &environment,
        "library",
        "/opt/none",
        "unset CURIUM_DRIVER_PATH",
    );
}

#[test]
fn unfound_library_is_named() {
    let mut environment = bare();
    put(
        &mut environment,
        "/usr/lib64-nvidia",
        names(&["libcuda.so", "libcuda.so.1"]),
    );
    assert_failure(
        &environment,
        "library",
        "/usr/lib64-nvidia",
        "CURIUM_DRIVER_PATH=/usr/lib64-nvidia",
    );
}

/// Advises to reinstall the driver.
#[test]
fn missing_dependency() {
    let reason =
        "libnvidia-ptxjitcompiler.so.1: cannot open shared object file: No such file or directory";
    let library = failed("/usr/lib/libcuda.so.1", Rejection::Unloadable, reason);
    assert_failure(
        &Environment { library, ..bare() },
        "library",
        "libnvidia-ptxjitcompiler",
        "reinstall the driver",
    );
}

/// A library for another processor architecture is detected.
#[test]
fn other_processor_is_detected() {
    let library = failed(
        "/usr/lib/libcuda.so.1",
        Rejection::Unloadable,
        "/usr/lib/libcuda.so.1: wrong ELF class: ELFCLASS32",
    );
    assert_failure(
        &Environment { library, ..bare() },
        "library",
        "not for x86_64",
        "64-bit",
    );
}

/// Advises for each container engine.
#[test]
fn container_without_the_toolkit() {
    for mark in ["/.dockerenv", "/run/.containerenv"] {
        let mut environment = bare();
        put(&mut environment, mark, Entry::Present);
        assert_failure(
            &environment,
            "container",
            "not passed into it",
            "--gpus all",
        );
        assert_failure(
            &environment,
            "container",
            "not passed into it",
            "nvidia.com/gpu=all",
        );
    }
}

/// Advises both the container toolkit and the simulator.
#[test]
fn container_without_a_gpu() {
    let mut environment = bare();
    put(&mut environment, "/.dockerenv", Entry::Present);
    put(&mut environment, "nvidia-pci-gpus", names(&[]));
    assert_failure(
        &environment,
        "container",
        "without an NVIDIA GPU on the PCI bus",
        "--device sim",
    );
}

/// A container lacks the driver capability `compute`.
#[test]
fn no_compute_in_a_container() {
    let mut environment = bare();
    put(&mut environment, "/.dockerenv", Entry::Present);
    set(
        &mut environment,
        "NVIDIA_DRIVER_CAPABILITIES",
        "graphics,utility",
    );
    assert_failure(&environment, "container", "graphics,utility", "compute");
}

/// A container has the library, but no device node.
#[test]
fn no_node_in_a_container() {
    let mut environment = no_device();
    put(&mut environment, "/.dockerenv", Entry::Present);
    environment
        .files
        .retain(|path, _| !path.starts_with("/dev/"));
    assert_failure(
        &environment,
        "container",
        "without the device node",
        "--gpus all",
    );
    set(&mut environment, "NVIDIA_VISIBLE_DEVICES", "void");
    assert_failure(
        &environment,
        "container",
        "\"void\"",
        "NVIDIA_VISIBLE_DEVICES=all",
    );
}

#[test]
fn forbidden_nodes_are_named() {
    for code in [100, 999] {
        let mut environment = not_starting(code);
        put(
            &mut environment,
            "/dev/nvidia0",
            Entry::Node(Access::Denied),
        );
        assert_failure(&environment, "permissions", "/dev/nvidia0", "usermod");
    }
}

#[test]
fn container_forbids_nodes() {
    let mut environment = no_device();
    put(&mut environment, "/.dockerenv", Entry::Present);
    put(
        &mut environment,
        "/dev/nvidiactl",
        Entry::Node(Access::Forbidden),
    );
    assert_failure(
        &environment,
        "permissions",
        "regardless of the file mode",
        "--gpus all",
    );
}

#[test]
fn missing_unified_memory_node() {
    let mut environment = not_starting(999);
    environment.files.remove("/dev/nvidia-uvm");
    assert_failure(
        &environment,
        "device-nodes",
        "/dev/nvidia-uvm is absent",
        "nvidia-modprobe",
    );
}

#[test]
fn wsl_1_has_no_gpu_node() {
    let mut environment = bare();
    put(
        &mut environment,
        "/proc/version",
        Entry::Text("Linux version 4.4.0-Microsoft".to_owned()),
    );
    assert_failure(&environment, "wsl", "/dev/dxg", "wsl --set-version");
}

#[test]
fn wsl_without_the_library() {
    let mut environment = bare();
    put(
        &mut environment,
        "/proc/version",
        Entry::Text("Linux version 5.15.0-microsoft-standard-WSL2".to_owned()),
    );
    put(&mut environment, "/dev/dxg", Entry::Node(Access::Granted));
    assert_failure(&environment, "wsl", "libcuda.so.1", "driver in Windows");
    environment.library = loaded("12.8", "/usr/lib/wsl/lib/libcuda.so.1.1");
    environment.start = Some(Start::Failed(failure(100)));
    assert_failure(&environment, "wsl", "exposes no GPU", "wsl --shutdown");
}

#[test]
fn jetson_and_nixos_packages() {
    let mut environment = bare();
    put(
        &mut environment,
        "/etc/nv_tegra_release",
        Entry::Text("# R36".to_owned()),
    );
    assert_failure(&environment, "jetson", "JetPack", "nvidia-l4t-cuda");
    let mut environment = bare();
    put(&mut environment, "/etc/NIXOS", Entry::Present);
    assert_failure(
        &environment,
        "nixos",
        "/run/opengl-driver/lib",
        "hardware.graphics.enable",
    );
}

#[test]
fn missing_cuda_is_reported() {
    assert_failure(
        &Environment {
            system: "macos".to_owned(),
            ..bare()
        },
        "platform",
        "macos",
        "simulator",
    );
}

/// A variable that hides every device is named.
#[test]
fn hidden_devices_are_an_error() {
    for (value, what) in [
        ("", "list is empty"),
        ("-1", "names no device"),
        ("1", "there are 1 GPUs"),
        ("GPU-0", "GPU-0"),
    ] {
        let mut environment = no_device();
        set(&mut environment, "CUDA_VISIBLE_DEVICES", value);
        assert_failure(
            &environment,
            "visible-devices",
            what,
            "unset CUDA_VISIBLE_DEVICES",
        );
    }
}

#[test]
fn some_hidden_devices_are_a_note() {
    let mut environment = healthy();
    set(&mut environment, "CUDA_VISIBLE_DEVICES", "0");
    assert!(
        finding(&environment, "visible-devices")
            .what
            .contains("sees 1 of 1")
    );
}

#[test]
fn harmless_variable_is_ignored() {
    let mut environment = no_device();
    set(&mut environment, "CUDA_VISIBLE_DEVICES", "0");
    assert_failure(&environment, "devices", "exposes no GPU", "nvidia-smi");
}

#[test]
fn divided_gpu_needs_an_instance() {
    let mut environment = no_device();
    put(
        &mut environment,
        "/proc/driver/nvidia/capabilities/gpu0/mig",
        names(&[]),
    );
    assert_failure(&environment, "mig", "no instance", "nvidia-smi mig -cgi");
}

#[test]
fn forbidden_instance_is_named() {
    let mut environment = no_device();
    put(
        &mut environment,
        "/proc/driver/nvidia/capabilities/gpu0/mig",
        names(&["gi1"]),
    );
    assert_failure(
        &environment,
        "mig",
        "1 MIG instances",
        "CUDA_VISIBLE_DEVICES=MIG-",
    );
    put(
        &mut environment,
        "/dev/nvidia-caps/nvidia-cap21",
        Entry::Node(Access::Denied),
    );
    assert_failure(
        &environment,
        "mig",
        "/dev/nvidia-caps/nvidia-cap21",
        "chmod",
    );
}

#[test]
fn instance_in_use_is_a_note() {
    let devices = vec![device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0", Ok(100))];
    assert!(
        finding(
            &Environment {
                devices,
                ..healthy()
            },
            "mig"
        )
        .what
        .contains("one of them at most")
    );
}

/// The versions of library and kernel module differ.
#[test]
fn mismatch_names_both_versions() {
    let environment = Environment {
        library: loaded("12.9", "/usr/lib/libcuda.so.575.57.08"),
        ..not_starting(803)
    };
    assert_failure(
        &environment,
        "driver-mismatch",
        "library 575.57.08, module 570.86.15",
        "restart the machine",
    );
}

/// Advises to remove the compatibility package.
#[test]
fn forward_compatibility() {
    let path = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06";
    for code in [803, 804] {
        let environment = Environment {
            library: loaded("13.0", path),
            ..not_starting(code)
        };
        assert_failure(
            &environment,
            "forward-compatibility",
            "forward compatibility",
            "`compat` from LD_LIBRARY_PATH",
        );
    }
    let environment = Environment {
        library: loaded("13.0", path),
        ..healthy()
    };
    assert_eq!(
        finding(&environment, "forward-compatibility").severity,
        Severity::Note
    );
}

/// A machine with NVSwitch needs the fabric manager.
#[test]
fn fabric_manager_is_needed() {
    assert_failure(
        &not_starting(802),
        "fabric",
        "fabric manager",
        "nvidia-fabricmanager",
    );
}

#[test]
fn unreachable_mps_service() {
    let mut environment = not_starting(805);
    set(&mut environment, "CUDA_MPS_PIPE_DIRECTORY", "/run/mps");
    assert_failure(&environment, "mps", "MPS", "/run/mps");
}

#[test]
fn unexplained_failure() {
    let environment = not_starting(999);
    assert_failure(&environment, "start", "does not initialize", "dmesg");
    assert!(
        findings(&environment)
            .iter()
            .any(|one| one.check == "driver-message" && one.what.contains("999"))
    );
}

#[test]
fn device_failure_is_explained() {
    for (code, check, fix) in [
        (46, "exclusive", "nvidia-smi -c DEFAULT"),
        (2, "memory", "other processes"),
        (214, "ecc", "ECC"),
        (221, "jit", "ptxjitcompiler"),
        (719, "device", "dmesg"),
    ] {
        let devices = vec![device("NVIDIA H100", "9.0", Err(failure(code)))];
        assert_failure(
            &Environment {
                devices,
                ..healthy()
            },
            check,
            "device 0, NVIDIA H100",
            fix,
        );
    }
}

#[test]
fn one_failing_device() {
    let devices = vec![
        device("A", "9.0", Ok(1)),
        device("B", "9.0", Err(failure(46))),
    ];
    assert_failure(
        &Environment {
            devices,
            ..healthy()
        },
        "exclusive",
        "device 1, B",
        "nvidia-smi",
    );
}

#[test]
fn newer_nvrtc_is_a_warning() {
    let environment = Environment {
        nvrtc: Some("13.0".to_owned()),
        ..healthy()
    };
    let warning = finding(&environment, "nvrtc");
    assert_eq!(warning.severity, Severity::Warning);
    assert!(
        warning
            .fixes
            .iter()
            .any(|fix| fix.contains("CUDA 12.8 or older")),
        "{warning:#?}"
    );
    let environment = Environment {
        nvrtc: Some("12.8".to_owned()),
        ..healthy()
    };
    assert_eq!(finding(&environment, "nvrtc").severity, Severity::Good);
}

/// CUDA 12.6 has the PTX version of CUDA 12.5.
#[test]
fn nvrtc_with_the_same_ptx_version() {
    let environment = Environment {
        nvrtc: Some("12.6".to_owned()),
        library: loaded("12.5", "/usr/lib/libcuda.so.1"),
        ..healthy()
    };
    assert_eq!(finding(&environment, "nvrtc").severity, Severity::Good);
}

#[test]
fn newer_ptx_is_a_failure() {
    assert_failure(
        &with_ptx((8, 8), "sm_90"),
        "ptx",
        "driver for CUDA 12.8 is too old",
        "one for CUDA 12.9",
    );
    assert_failure(
        &with_ptx((8, 7), "sm_100"),
        "ptx",
        "NVIDIA H100 has compute capability 9.0",
        "compute_90",
    );
    for target in ["sm_80a", "sm_80f"] {
        assert_failure(&with_ptx((8, 7), target), "ptx", target, "without it");
    }
    for target in ["sm_90a", "sm_90", "sm_52", "compute_90a"] {
        assert_eq!(
            finding(&with_ptx((8, 7), target), "ptx").severity,
            Severity::Note
        );
    }
}

/// The newest driver that is known accepts its own PTX and no newer one; of newer drivers, newer
/// PTX is unknown.
#[test]
fn newest_driver_accepts_its_ptx() {
    let accepts = "the driver accepts this version";
    let limit = "accepts PTX up to version 9.5";
    assert_ptx_finding("13.5", (9, 5), Severity::Good, accepts);
    assert_ptx_finding("13.6", (9, 5), Severity::Good, accepts);
    assert_ptx_finding("13.5", (9, 5), Severity::Note, limit);
    for version in [(9, 6), (9, 9), (10, 0)] {
        assert_failure(
            &with_driver_and_ptx("13.5", version),
            "ptx",
            "driver for CUDA 13.5 is too old",
            "a newer CUDA",
        );
        assert_ptx_finding("13.6", version, Severity::Note, "unknown whether");
    }
    assert_failure(
        &with_driver_and_ptx("13.4", (9, 5)),
        "ptx",
        "driver for CUDA 13.4 is too old",
        "CUDA 13.5",
    );
}

#[test]
fn slow_settings_are_warnings() {
    let mut environment = healthy();
    set(&mut environment, "CUDA_LAUNCH_BLOCKING", "1");
    assert_eq!(finding(&environment, "setting").severity, Severity::Warning);
}

/// Returns a working machine with a PTX file to check.
fn with_ptx(version: (u32, u32), target: &str) -> Environment {
    Environment {
        ptx: Some(Header {
            version,
            target: target.to_owned(),
        }),
        ..healthy()
    }
}

#[track_caller]
fn assert_ptx_finding(driver: &str, version: (u32, u32), severity: Severity, text: &str) {
    let findings = findings(&with_driver_and_ptx(driver, version));
    assert!(
        findings
            .iter()
            .any(|finding| finding.severity == severity && finding.what.contains(text)),
        "{findings:#?}"
    );
}

fn with_driver_and_ptx(driver: &str, version: (u32, u32)) -> Environment {
    Environment {
        library: loaded(driver, "/usr/lib/x86_64-linux-gnu/libcuda.so.600.1.1"),
        ..with_ptx(version, "sm_90")
    }
}
