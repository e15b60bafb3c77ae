//! Tests that an emulator cannot run, each with its reason.

/// A test that is left out.
pub(crate) struct Skip {
    targets: &'static str,
    program: &'static str,
    /// A part of the names of tests.
    pub(crate) test: &'static str,
    pub(crate) reason: &'static str,
}

const SKIPS: &[Skip] = &[];

/// Returns what is left out of a program of tests.
pub(crate) fn of(target: &str, program: &str) -> Vec<&'static Skip> {
    SKIPS.iter().filter(|skip| target.contains(skip.targets) && skip.program == program).collect()
}
