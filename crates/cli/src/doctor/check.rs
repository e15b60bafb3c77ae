//! The checks. Each reads the environment only, and returns nothing if all is well.

mod compatibility;
mod device;
mod hardware;
mod library;
mod mig;
mod node;
mod optional;
mod peer;
mod ptx;
mod setting;
mod start;
mod visible;

use crate::doctor::environment::{Environment, Library, Start};
use crate::doctor::finding::Finding;

/// Returns the findings about a machine, in the order in which CUDA depends on them.
pub(super) fn findings(environment: &Environment) -> Vec<Finding> {
    let mut findings = library::check(environment);
    match (&environment.library, &environment.start) {
        (Library::Loaded { .. }, Some(Start::Failed(failure))) => {
            findings.extend(start::explain(environment, failure));
        }
        (Library::Loaded { .. }, Some(Start::Devices(0))) => {
            findings.extend(start::explain_no_device(environment));
        }
        _ => {}
    }
    for (ordinal, device) in environment.devices.iter().enumerate() {
        findings.push(device::check(ordinal, device));
    }
    findings.extend(compatibility::note(environment));
    findings.extend(visible::note(environment));
    findings.extend(mig::note(environment));
    findings.extend(peer::check(environment));
    findings.extend(optional::check(environment));
    findings.extend(ptx::check(environment));
    findings.extend(setting::notes(environment));
    findings
}

#[cfg(test)]
mod tests;
