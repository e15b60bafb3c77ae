//! Tests that an emulator cannot run, each with its reason.

/// A test that is skipped.
pub(crate) struct Skip {
    targets: &'static str,
    program: &'static str,
    /// A part of the names of tests.
    pub(crate) test: &'static str,
    pub(crate) reason: &'static str,
}

/// QEMU starts a process with a copy of the memory, so the error of a child does not reach its
/// parent.
const SPAWN: &str = "posix_spawn reports success for a missing program under QEMU";

const SKIPS: &[Skip] = &[
    Skip {
        targets: "aarch64",
        program: "trace",
        test: "missing_program_is_named",
        reason: SPAWN,
    },
    Skip {
        targets: "aarch64",
        program: "run",
        test: "unstartable_program_is_named",
        reason: SPAWN,
    },
];

/// Returns the skipped tests of a test program.
pub(crate) fn of(target: &str, program: &str) -> Vec<&'static Skip> {
    SKIPS
        .iter()
        .filter(|skip| target.contains(skip.targets) && skip.program == program)
        .collect()
}
