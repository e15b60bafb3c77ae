//! Peer access between devices.

use crate::doctor::environment::{Environment, Library};
use crate::doctor::finding::Finding;

const CHECK: &str = "peer-access";

/// The variable that makes the driver skip its check of IOMMU and ACS.
const OVERRIDE: &str = "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK";

/// The first version of the driver that checks IOMMU and ACS.
const CHECKED_SINCE: (u32, u32) = (13, 5);

/// Explains why devices have no peer access to each other.
pub(super) fn check(environment: &Environment) -> Option<Finding> {
    if environment.variable(OVERRIDE) == Some("1") && environment.devices.len() > 1 {
        let what = format!(
            "{OVERRIDE} is 1: the driver does not check whether the IOMMU or ACS breaks peer copies; test them"
        );
        return Some(Finding::note(CHECK, what));
    }
    let pairs: Vec<_> = environment
        .peers_denied
        .iter()
        .map(|(from, to)| format!("{from} to {to}"))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let denied = format!("no peer access between devices ({})", pairs.join(", "));
    Some(if is_checked(environment) && environment.has_iommu() {
        blocked(&denied)
    } else {
        Finding::note(
            CHECK,
            format!("{denied}: copies between them go through host memory"),
        )
    })
}

fn blocked(denied: &str) -> Finding {
    let what = format!(
        "{denied}: copies between them go through host memory. The IOMMU is enabled, and since CUDA 13.5 the driver denies peer access \
         if the IOMMU or PCIe ACS redirects traffic between the devices"
    );
    let fixes = [
        "on bare metal: disable ACS and the IOMMU in the firmware, or boot with `iommu=off`; `sudo lspci -vvv | grep ACSCtl` shows ACS",
        "in a virtual machine: the host has to allow peer access between the devices",
        "if peer copies are known to be correct here: CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK=1 overrides the check",
        "`nvidia-smi topo -p2p r` shows the driver's view; devices without NVLink or a common PCIe switch may never have peer access",
    ];
    Finding::warning(CHECK, what, fixes)
}

/// Returns `true` if the driver checks IOMMU and ACS.
fn is_checked(environment: &Environment) -> bool {
    let Library::Loaded { version, .. } = &environment.library else {
        return false;
    };
    let Some((major, minor)) = version.split_once('.') else {
        return false;
    };
    major
        .parse()
        .ok()
        .zip(minor.parse().ok())
        .is_some_and(|version: (u32, u32)| version >= CHECKED_SINCE)
}
