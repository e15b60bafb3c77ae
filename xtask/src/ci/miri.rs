//! What Miri interprets, so that undefined behaviour shows that nothing else does.

use std::process::Command;

use anyhow::Result;

use super::{Options, Outcome, run_and_show};

/// The packages whose unit tests are interpreted: everything that holds memory or handles.
const PACKAGES: &[&str] =
    &["-p", "curium-sys", "-p", "curium-driver", "-p", "curium-memory", "--all-features", "--lib"];

/// The loader asks for files, and the simulated driver hands out addresses as numbers, as a real one does.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// Tests of safe code that try every pair of functions or thousands of images, minutes when interpreted, or that are about files and who
/// owns them, which Miri pretends to: nothing for it to see.
const TOO_LONG: &[&str] = &[
    "function::tests::every_function_is_found_by_its_own_name_and_index",
    "function::tests::later_abi_versions_of_a_function_are_newer",
    "image::tests::binaries_",
    "disk_cache::tests::",
];

/// The contract tests that are always interpreted, on the simulator, by the beginnings of their names: objects whose tests take seconds
/// each.
const CONTRACT: &[&str] =
    &["context_stack::", "device_buffer::buffer_from_slice", "event_pool::", "pinned_buffer::", "stream_pool::"];

/// Those that a thorough run adds, a quarter of an hour of one core, and three minutes for graphs. `docs/testing.md` says how many, and
/// what is left out.
const CONTRACT_THOROUGH: &[&str] = &[
    "created_context::",
    "event::",
    "graph::capturing::branch_",
    "graph::capturing::capture_into_a_graph_that",
    "graph::keeping::closure_lives",
    "graph::keeping::user_object",
    "graph::kinds::copy_",
    "graph::kinds::event_nodes",
    "graph::kinds::fill_",
    "graph::kinds::host_function",
    "graph::kinds::memory_operations",
    "graph::order::children_that_write",
    "host_function::",
    "primary_context::",
    "stream::",
];

/// Contract tests among these that run a kernel, which takes most of a minute.
const CONTRACT_WITH_KERNELS: &[&str] = &["created_context::kernel_in_one_context_uses_memory_of_another_of_the_device"];

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let found = nightly().args(["--version"]).output().is_ok_and(|output| output.status.success());
    if !found {
        return Ok(Outcome::Skipped("no nightly toolchain with Miri"));
    }
    run_and_show(nightly().arg("test").args(PACKAGES).arg("--").args(skipping(TOO_LONG)))?;
    let thorough = if options.thorough { CONTRACT_THOROUGH } else { &[] };
    let contract = ["test", "-p", "curium-tests", "--test", "contract", "--"];
    run_and_show(nightly().args(contract).args(CONTRACT).args(thorough).args(skipping(CONTRACT_WITH_KERNELS)))
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]).current_dir(crate::root()).env("MIRIFLAGS", FLAGS);
    command
}

fn skipping(tests: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    tests.iter().flat_map(|test| ["--skip", *test])
}
