//! Environment variables that slow CUDA down or change its behavior.

use crate::doctor::environment::{Environment, Library};
use crate::doctor::finding::Finding;

/// Reports such settings.
pub(super) fn notes(environment: &Environment) -> Vec<Finding> {
    if matches!(environment.library, Library::Failed(_)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if environment.variable("CUDA_LAUNCH_BLOCKING") == Some("1") {
        let what = "CUDA_LAUNCH_BLOCKING is 1: every launch blocks until its kernel is complete";
        findings.push(Finding::warning(
            "setting",
            what,
            ["unset it unless you are searching for a failing kernel"],
        ));
    }
    if environment.variable("CUDA_CACHE_DISABLE") == Some("1") {
        let what = "CUDA_CACHE_DISABLE is 1: PTX is compiled at every start of a program";
        findings.push(Finding::warning("setting", what, ["unset it"]));
    }
    if environment.variable("CUDA_DISABLE_PTX_JIT") == Some("1") {
        let what = "CUDA_DISABLE_PTX_JIT is 1: PTX is not compiled, so only cubins for this architecture load";
        findings.push(Finding::warning("setting", what, ["unset it"]));
    }
    if environment.variable("CUDA_MODULE_LOADING") == Some("EAGER") {
        findings.push(Finding::note(
            "setting",
            "CUDA_MODULE_LOADING is EAGER: every kernel of a module is loaded at once",
        ));
    }
    if let Some(value) = environment
        .variable("LD_PRELOAD")
        .filter(|value| !value.is_empty())
    {
        findings.push(Finding::note(
            "setting",
            format!("LD_PRELOAD is {value:?}: it may intercept calls to the driver"),
        ));
    }
    findings
}
