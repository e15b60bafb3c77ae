//! PTX versions of the driver, NVRTC and the given file.

use curium::driver::{CudaVersion, PtxVersion};

use crate::doctor::environment::{DeviceTrial, Environment, Library};
use crate::doctor::finding::Finding;
use crate::doctor::ptx::{Header, pair};

const CHECK: &str = "ptx";

/// Reports the PTX versions once a driver is loaded.
pub(super) fn check(environment: &Environment) -> Vec<Finding> {
    let Library::Loaded { version, .. } = &environment.library else {
        return Vec::new();
    };
    let mut findings: Vec<_> = parse_cuda(version)
        .and_then(CudaVersion::newest_ptx)
        .into_iter()
        .map(|newest| newest_accepted(version, newest))
        .collect();
    findings.extend(
        environment
            .nvrtc
            .as_deref()
            .map(|nvrtc| compiler(version, nvrtc)),
    );
    if let Some(header) = &environment.ptx {
        findings.push(file(version, header));
        findings.extend(
            environment
                .devices
                .iter()
                .filter_map(|device| target(header, device)),
        );
    }
    findings
}

fn newest_accepted(cuda: &str, version: PtxVersion) -> Finding {
    Finding::note(
        CHECK,
        format!("a driver for CUDA {cuda} accepts PTX up to version {version}"),
    )
}

/// Reports an NVRTC whose PTX is newer than the driver. Some CUDA versions share a PTX version.
fn compiler(driver: &str, nvrtc: &str) -> Finding {
    let generated = parse_cuda(nvrtc).and_then(CudaVersion::newest_ptx);
    let accepted = parse_cuda(driver).and_then(CudaVersion::newest_ptx);
    let is_older = pair(nvrtc) <= pair(driver);
    if is_older || (generated.is_some() && generated <= accepted) {
        return Finding::good(
            "nvrtc",
            format!("NVRTC of CUDA {nvrtc} is found, and the driver accepts its PTX"),
        );
    }
    let fixes = [
        "compile to a cubin for the device's own architecture, which requires no newer driver",
        &format!("install NVRTC of CUDA {driver} or older, or set CURIUM_NVRTC_PATH to it"),
        &format!("update the driver to one for CUDA {nvrtc}"),
    ];
    Finding::warning(
        "nvrtc",
        format!("NVRTC is of CUDA {nvrtc}, and the driver for CUDA {driver} may reject its PTX"),
        fixes,
    )
}

/// Reports whether the driver accepts the file.
fn file(driver: &str, header: &Header) -> Finding {
    let (major, minor) = header.version;
    let needed = PtxVersion::new(major, minor).first_cuda();
    let version = parse_cuda(driver);
    let name = format!(
        "the PTX is of version {major}.{minor} for {}",
        header.target
    );
    let is_accepted = needed.is_some_and(|needed| version >= Some(needed));
    if is_accepted {
        return Finding::good(CHECK, format!("{name}: the driver accepts this version"));
    }
    if version.is_none_or(|version| version > CudaVersion::NEWEST_KNOWN) {
        return Finding::note(
            CHECK,
            format!(
                "{name}: unknown whether a driver for CUDA {driver} accepts this version (the newest known version is CUDA {})",
                CudaVersion::NEWEST_KNOWN
            ),
        );
    }
    let cuda = needed.map_or("a newer CUDA".to_owned(), |cuda| format!("CUDA {cuda}"));
    let fixes = [
        &format!("update the driver to one for {cuda}") as &str,
        "compile the PTX with an older toolkit, or to a cubin for the device",
    ];
    Finding::failure(
        CHECK,
        format!("{name}, and a driver for CUDA {driver} is too old for it"),
        fixes,
    )
}

/// Parses the CUDA version of a driver.
fn parse_cuda(version: &str) -> Option<CudaVersion> {
    pair(version).map(|(major, minor)| CudaVersion::new(major, minor))
}

/// Reports a device that the file does not target.
fn target(header: &Header, device: &DeviceTrial) -> Option<Finding> {
    let capability = pair(&device.compute_capability)?;
    if header.runs_on(capability)? {
        return None;
    }
    let target = &header.target;
    let name = &device.name;
    let what = format!(
        "the PTX is for {target}, and {name} has compute capability {}",
        device.compute_capability
    );
    let older = format!(
        "compile for the oldest device in use, such as compute_{}{}",
        capability.0, capability.1
    );
    let fixes = [
        &older as &str,
        "targets that end with a letter run on no newer architecture: compile without it",
    ];
    Some(Finding::failure(CHECK, what, fixes))
}
