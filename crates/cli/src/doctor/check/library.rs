//! The driver's library.

use crate::doctor::check::hardware;
use crate::doctor::environment::{Attempt, Entry, Environment, Library, Rejection};
use crate::doctor::finding::Finding;

const CHECK: &str = "library";

/// A possible explanation of a driver that does not load.
type Explanation = fn(&Environment, &[Attempt]) -> Option<Finding>;

/// Reports the library, or the best explanation of its absence and each path tried.
pub(super) fn check(environment: &Environment) -> Vec<Finding> {
    match &environment.library {
        Library::Loaded { version, path } => {
            let path = path.as_deref().unwrap_or("the driver's library");
            vec![Finding::good(
                CHECK,
                format!("{path} is loaded, a driver for CUDA {version}"),
            )]
        }
        Library::Failed(attempts) => vec![explain(environment, attempts), tried(attempts)],
    }
}

/// Returns the first explanation that applies, the most certain first.
fn explain(environment: &Environment, attempts: &[Attempt]) -> Finding {
    let explanations: [Explanation; 12] = [
        no_platform,
        chosen,
        too_old,
        stub,
        wsl,
        jetson,
        nixos,
        container,
        elsewhere,
        wrong_kind,
        module_alone,
        hardware::explain,
    ];
    explanations
        .iter()
        .find_map(|explanation| explanation(environment, attempts))
        .unwrap_or_else(not_installed)
}

fn tried(attempts: &[Attempt]) -> Finding {
    // The system's message often begins with the path.
    let lines = attempts.iter().map(|Attempt { path, reason, .. }| {
        let prefix = format!("{path}: ");
        format!("\n{prefix}{}", reason.replacen(&prefix, "", 1))
    });
    Finding::note(
        "tried",
        format!("paths tried:{}", lines.collect::<String>()),
    )
}

fn no_platform(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    let system = environment.system.as_str();
    (!matches!(system, "linux" | "windows" | "")).then(|| {
        let fixes = ["use the simulator, with `--device sim`, or a machine with Linux or Windows"];
        Finding::failure(
            "platform",
            format!("CUDA has no driver for {system}"),
            fixes,
        )
    })
}

fn chosen(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    let path = environment
        .variable("CURIUM_DRIVER_PATH")
        .filter(|path| !path.is_empty())?;
    let fixes = [
        "unset CURIUM_DRIVER_PATH, so that the usual folders are searched",
        "set it to a libcuda.so.1, or to the folder that contains one",
    ];
    Some(Finding::failure(
        CHECK,
        format!("CURIUM_DRIVER_PATH is {path:?}, and no driver is there; nothing else was tried"),
        fixes,
    ))
}

fn too_old(_: &Environment, attempts: &[Attempt]) -> Option<Finding> {
    let attempt = with(attempts, Rejection::TooOld)?;
    let fixes = ["update the NVIDIA driver to 520 or newer, which is the first for CUDA 11.8"];
    Some(Finding::failure(
        "driver-version",
        format!("{} is {}", attempt.path, attempt.reason),
        fixes,
    ))
}

fn stub(_: &Environment, attempts: &[Attempt]) -> Option<Finding> {
    let attempt = with(attempts, Rejection::Stub)?;
    let fixes = [
        "install the NVIDIA driver: the toolkit does not contain it",
        "remove the toolkit's `stubs` folder from LD_LIBRARY_PATH and /etc/ld.so.conf.d",
    ];
    Some(Finding::failure(
        "stub",
        format!(
            "the only library found is {}: {}",
            attempt.path, attempt.reason
        ),
        fixes,
    ))
}

fn wsl(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    environment.is_wsl().then(|| {
        if environment.nodes("/dev/dxg").next().is_none() {
            let fixes = [
                "in Windows: `wsl --update`, then `wsl --set-version DISTRIBUTION 2`: the first version of WSL has no GPU",
                "update the NVIDIA driver in Windows",
            ];
            return Finding::failure("wsl", "this is WSL, and it has no /dev/dxg: Windows passes no GPU through", fixes);
        }
        let fixes = [
            "update the NVIDIA driver in Windows, which puts libcuda.so.1 into /usr/lib/wsl/lib, then `wsl --shutdown`",
            "remove any NVIDIA driver installed inside WSL: it hides that of Windows",
        ];
        Finding::failure("wsl", "this is WSL, and the driver of Windows provides no libcuda.so.1", fixes)
    })
}

fn jetson(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    environment.is_jetson().then(|| {
        let fixes = [
            "install the driver's package of JetPack: `sudo apt install nvidia-l4t-cuda`",
            "in a container, start it with `--runtime nvidia`",
        ];
        Finding::failure(
            "jetson",
            "this is a Jetson, whose driver comes with JetPack, and its libcuda.so.1 is absent",
            fixes,
        )
    })
}

fn nixos(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    environment.is_nixos().then(|| {
        let fixes = [
            "set `hardware.graphics.enable = true;` and `services.xserver.videoDrivers = [ \"nvidia\" ];`, and rebuild: the driver \
             is then in /run/opengl-driver/lib, where Curium looks",
            "on other systems with Nix, start the program with nixGL",
        ];
        Finding::failure("nixos", "this is NixOS, and /run/opengl-driver/lib has no libcuda.so.1", fixes)
    })
}

fn container(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    if !environment.is_container() {
        return None;
    }
    if let Some(capabilities) = environment.variable("NVIDIA_DRIVER_CAPABILITIES")
        && !capabilities
            .split(',')
            .any(|capability| matches!(capability, "compute" | "all"))
    {
        let what = format!(
            "NVIDIA_DRIVER_CAPABILITIES is {capabilities:?}: the container gets no libcuda.so.1"
        );
        return Some(Finding::failure(
            "container",
            what,
            ["start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        ));
    }
    let has_gpu = !environment.has("nvidia-pci-gpus") || !environment.pci_gpus().is_empty();
    if !has_gpu {
        let fixes = [
            "start the container on a machine with a GPU, with `--gpus all` and the NVIDIA Container Toolkit on the host",
            "use the simulator, with `--device sim`",
        ];
        let what = "this is a container without a driver, on a machine without an NVIDIA GPU on the PCI bus";
        return Some(Finding::failure("container", what, fixes));
    }
    let fixes = [
        "docker: install the NVIDIA Container Toolkit on the host, and start the container with `--gpus all`",
        "podman: `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, then `--device nvidia.com/gpu=all`",
        "Kubernetes: the device plugin of NVIDIA, and `resources: limits: nvidia.com/gpu: 1` in the pod",
        "do not install a driver in the image: it must be the host's",
    ];
    Some(Finding::failure(
        "container",
        "this is a container, and the host's driver is not passed into it",
        fixes,
    ))
}

/// Reports a library outside the search path of the system's loader.
fn elsewhere(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    let (folder, _) = environment.files.iter().find(|(_, entry)| match entry {
        Entry::Folder(names) => names.iter().any(|name| name.starts_with("libcuda.so.")),
        _ => false,
    })?;
    let what =
        format!("{folder} contains a driver library, but the system's loader does not search it");
    let fixes = [
        &format!("set CURIUM_DRIVER_PATH={folder}"),
        "add the folder to the search path: a line in /etc/ld.so.conf.d, then `sudo ldconfig`",
    ];
    Some(Finding::failure(CHECK, what, fixes.map(|fix| fix as &str)))
}

/// Reports a library for another architecture, or with missing dependencies.
fn wrong_kind(environment: &Environment, attempts: &[Attempt]) -> Option<Finding> {
    let of_other_processor = attempts.iter().find(|attempt| {
        attempt.reason.contains("wrong ELF class") || attempt.reason.contains("ELFCLASS")
    });
    if let Some(attempt) = of_other_processor {
        let what = format!(
            "{} is not for {}: {}",
            attempt.path, environment.architecture, attempt.reason
        );
        return Some(Finding::failure(
            CHECK,
            what,
            ["install the 64-bit library of the driver"],
        ));
    }
    let incomplete =
        |attempt: &&Attempt| attempt.rejection == Rejection::Unloadable && !is_absence(attempt);
    let attempt = attempts.iter().find(incomplete)?;
    let what = format!(
        "{} exists, but cannot be loaded: {}",
        attempt.path, attempt.reason
    );
    Some(Finding::failure(
        CHECK,
        what,
        ["reinstall the driver: a part of it is missing, unreadable or of another version"],
    ))
}

/// Returns `true` if the file itself does not exist.
fn is_absence(attempt: &Attempt) -> bool {
    let name = attempt.path.rsplit(['/', '\\']).next().unwrap_or_default();
    attempt.reason.contains(name)
        && (attempt.reason.contains("No such file")
            || attempt.reason.contains("could not be found"))
}

fn module_alone(environment: &Environment, _: &[Attempt]) -> Option<Finding> {
    let version = environment.module_version()?;
    let branch = version.split('.').next().unwrap_or_default();
    let what = format!(
        "the kernel module of the driver is loaded, version {version}, but its libcuda.so.1 is not installed"
    );
    let fixes = [
        &format!(
            "Debian and Ubuntu: `sudo apt install libnvidia-compute-{branch}`, or `libcuda1`, of exactly this version"
        ),
        "others: install the driver's CUDA part, such as `nvidia-driver-cuda` or `nvidia-utils`, of exactly this version",
    ];
    Some(Finding::failure(CHECK, what, fixes.map(|fix| fix as &str)))
}

fn not_installed() -> Finding {
    let fixes = [
        "install the NVIDIA driver from your distribution or from NVIDIA, and restart",
        "without a GPU, use the simulator with `--device sim`",
    ];
    Finding::failure(CHECK, "no NVIDIA driver is installed", fixes)
}

fn with(attempts: &[Attempt], rejection: Rejection) -> Option<&Attempt> {
    attempts
        .iter()
        .find(|attempt| attempt.rejection == rejection)
}
