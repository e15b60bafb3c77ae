//! Devices without peer access.

use super::*;

/// A machine with two devices that have no peer access, on a driver of this version.
fn without_peer_access(version: &str) -> Environment {
    let devices = vec![device("A", "9.0", Ok(1)), device("B", "9.0", Ok(1))];
    let library = loaded(version, "/usr/lib/libcuda.so.610.10");
    Environment {
        devices,
        library,
        peers_denied: vec![(0, 1), (1, 0)],
        ..healthy()
    }
}

/// The warning names the variable that overrides the check.
#[test]
fn blocked_peer_access() {
    let mut environment = without_peer_access("13.5");
    put(&mut environment, "/sys/class/iommu", names(&["dmar0"]));
    let warning = finding(&environment, "peer-access");
    assert_eq!(warning.severity, Severity::Warning);
    assert!(
        warning.what.contains("0 to 1, 1 to 0") && warning.what.contains("IOMMU"),
        "{warning:#?}"
    );
    let fix = "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK=1 overrides the check";
    assert!(
        warning.fixes.iter().any(|text| text.contains(fix)),
        "{warning:#?}"
    );
}

/// With an older driver or without an IOMMU, denied peer access is no warning.
#[test]
fn denied_peer_access_is_a_note() {
    let mut older = without_peer_access("13.4");
    put(&mut older, "/sys/class/iommu", names(&["dmar0"]));
    let mut off = without_peer_access("13.5");
    put(&mut off, "/sys/class/iommu", names(&[]));
    for environment in [older, off] {
        let warning = finding(&environment, "peer-access");
        assert_eq!(warning.severity, Severity::Note);
        assert!(
            warning.what.contains("through host memory") && warning.fixes.is_empty(),
            "{warning:#?}"
        );
    }
}

/// With one device, the override is not reported.
#[test]
fn peer_access_override() {
    let mut environment = without_peer_access("13.5");
    set(
        &mut environment,
        "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK",
        "1",
    );
    environment.peers_denied.clear();
    assert!(
        finding(&environment, "peer-access")
            .what
            .contains("does not check")
    );
    environment.devices.pop();
    assert!(
        findings(&environment)
            .iter()
            .all(|warning| warning.check != "peer-access")
    );
}
