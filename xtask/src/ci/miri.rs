//! The tests that Miri interprets, to find undefined behavior.

use std::process::Command;

use anyhow::Result;

use super::{Options, Outcome, run_all};

/// The packages whose unit tests are interpreted: those that manage memory or handles.
const PACKAGES: &[&str] = &[
    "-p",
    "curium-driver",
    "-p",
    "curium-memory",
    "-p",
    "curium-interop",
    "-p",
    "curium-diagnostics",
    "--all-features",
    "--lib",
];

/// The simulated driver returns addresses as integers, as a real one does. In isolation, time is
/// simulated, so that no result depends on the load of the machine.
const ISOLATED: &str = "-Zmiri-permissive-provenance -Zmiri-isolation-error=hide";

/// With the files and the time of this machine.
const NOT_ISOLATED: &str = "-Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// The tests of these packages that use files.
const WITH_FILES: &[&str] = &["image::tests::file_", "external::descriptor::tests::"];

/// Tests that are slow and irrelevant under Miri: safe code over every pair of functions or many
/// times, and files, which Miri emulates.
const TOO_LONG: &[&str] = &[
    "completion::watch::schedule::tests::",
    "function::tests::every_function_is_found_by_its_own_name_and_index",
    "function::tests::later_abi_versions_are_newer",
    "disk_cache::tests::",
];

/// The contract tests that are always interpreted, on the simulator, by prefix: objects whose tests
/// take seconds each.
const CONTRACT: &[&str] = &[
    "context_stack::",
    "device_buffer::buffer_from_slice",
    "event_pool::",
    "image::bytes_without_an_image",
    "image::truncated_cubin",
    "library::invalid_ptx_makes_no_driver_call",
    "module::module_in_use",
    "pinned_buffer::",
    "stream_pool::",
];

/// Contract tests that a thorough run adds: about 45 minutes of one core.
const CONTRACT_THOROUGH: &[&str] = &[
    "caching::clones_share",
    "caching::foreign_stream_is_refused",
    "caching::freed_block_is_reused",
    "caching::freed_memory_crosses_streams_after_completion",
    "caching::growth_that_fails",
    "caching::large_alignments",
    "caching::pool_segments_replace_missing_virtual_memory",
    "caching::private_pool",
    "caching::trim_leaves",
    "caching::trim_that_fails",
    "caching::uncached_allocations_reach_the_driver",
    "created_context::",
    "device_vec::close_returns_a_vector_that_stays_mapped",
    "device_vec::growth_beyond",
    "device_vec::vector_extended",
    "event::",
    "foreign_code::borrowed",
    "foreign_code::foreign_kernels_have_names_and_parameters",
    "global::",
    "graph::capturing::captured_branch_follows_its_own_nodes",
    "graph::capturing::failed_capture_does_not_change_the_graph",
    "graph::keeping::closure_lives",
    "graph::keeping::user_object",
    "graph::kinds::copy_",
    "graph::kinds::event_nodes",
    "graph::kinds::fill_",
    "graph::kinds::host_function",
    "graph::kinds::memory_operations",
    "graph::kinds::pitched_fill_writes_each_width",
    "graph::kinds::pitched_host_copy_leaves_other_rows",
    "graph::order::child_graphs_with_conflicting",
    "host_function::",
    "image::cubin_on",
    "jit::borrowed_symbols_are_refused_for_libraries",
    "jit::module_with_options",
    "kernel::kernel_declared_safe",
    "kernel::kernel_that_is_absent",
    "kernel::launch_beyond",
    "kernel::launch_makes",
    "kernel::lookup_checks_the_parameter_count",
    "kernel_list::",
    "library::",
    "module::",
    "primary_context::",
    "stream::",
];

/// Contract tests among these that take a minute or more: they load code several times, or long
/// code.
const CONTRACT_TOO_LONG: &[&str] = &[
    "created_context::kernel_uses_foreign_memory",
    "kernel_list::every_kernel_is_listed",
    "library::library_loads_from_every_loader",
    "module::close_returns_an_unloaded_module",
];

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let is_installed = nightly()
        .args(["--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_installed {
        return Ok(Outcome::Skipped("no nightly toolchain with Miri"));
    }
    run_all(
        tests(ISOLATED, PACKAGES)
            .args(skipping(TOO_LONG))
            .args(skipping(WITH_FILES)),
    )?;
    run_all(tests(NOT_ISOLATED, PACKAGES).args(WITH_FILES))?;
    // The loader of `sys` searches folders.
    let mut sys = tests(
        NOT_ISOLATED,
        &["-p", "curium-sys", "--all-features", "--lib"],
    );
    run_all(sys.args(skipping(TOO_LONG)))?;
    let contract = ["-p", "curium-tests", "--test", "contract"];
    run_all(
        tests(ISOLATED, &contract)
            .args(CONTRACT)
            .args(skipping(CONTRACT_TOO_LONG)),
    )?;
    if options.thorough {
        run_all(
            tests(NOT_ISOLATED, &contract)
                .args(CONTRACT_THOROUGH)
                .args(skipping(CONTRACT_TOO_LONG)),
        )?;
    }
    Ok(Outcome::Passed)
}

/// Returns a command that interprets tests; their filters follow.
fn tests(flags: &str, of: &[&str]) -> Command {
    let mut command = nightly();
    // The newest nightly with Miri may be older than the toolchain of the workspace.
    command
        .args(["test", "--ignore-rust-version"])
        .args(of)
        .arg("--")
        .env("MIRIFLAGS", flags);
    command
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo", "miri"])
        .current_dir(crate::root());
    command
}

fn skipping(tests: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    tests.iter().flat_map(|test| ["--skip", *test])
}
