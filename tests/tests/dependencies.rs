//! The dependency graph: the allowed dependencies between the packages of the workspace, and the
//! external dependencies of the libraries.

#[path = "dependencies/inlined.rs"]
mod inlined;
#[path = "dependencies/modules.rs"]
mod modules;

use std::collections::BTreeSet;
use std::process::Command;

use curium_tests::{TestResult, skip, uses_cuda};

/// Returns the packages that `package` depends on by `edges` on `targets`, directly or up to
/// `depth`, without itself.
fn dependencies(
    package: &str,
    edges: &str,
    depth: &str,
    targets: &[&str],
) -> TestResult<BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "tree",
        "--locked",
        "--package",
        package,
        "--edges",
        edges,
        "--depth",
        depth,
        "--prefix",
        "none",
    ];
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--format", "{p}", "--all-features"])
        .args(targets)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    assert!(
        output.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned);
    Ok(names.filter(|name| name != package).collect())
}

/// Returns the `names` that belong to the workspace.
fn ours(names: BTreeSet<String>) -> Vec<String> {
    names
        .into_iter()
        .filter(|name| name == "curium" || name.starts_with("curium-"))
        .collect()
}

/// The allowed dependencies: each package with the packages that it may use directly.
const ARROWS: [(&str, &[&str]); 35] = [
    ("curium-format", &[]),
    ("curium-sys", &["curium-format"]),
    ("curium-ptx", &["curium-format"]),
    ("curium-sim", &["curium-format", "curium-ptx", "curium-sys"]),
    ("curium-cudart", &["curium-sys"]),
    ("curium-macros", &[]),
    (
        "curium-kernel",
        &["curium-driver", "curium-macros", "curium-memory"],
    ),
    ("curium-kernel-build", &["curium-format"]),
    (
        "curium-test-kernels",
        &["curium-kernel", "curium-kernel-build"],
    ),
    ("curium-driver-codes", &["curium-sim", "curium-sys"]),
    (
        "curium-test-kernels-random",
        &[
            "curium-driver",
            "curium-kernel-build",
            "curium-memory",
            "curium-sim",
        ],
    ),
    (
        "curium-test-book",
        &["curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-saxpy",
        &[
            "curium",
            "curium-kernel",
            "curium-kernel-build",
            "curium-sim",
        ],
    ),
    (
        "curium-example-dot-product",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-histogram",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-stencil",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-matmul",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-primes",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-option-price",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    (
        "curium-example-transformer",
        &["curium", "curium-kernel", "curium-kernel-build"],
    ),
    ("curium-driver", &["curium-format", "curium-sys"]),
    ("curium-memory", &["curium-driver"]),
    ("curium-interop", &["curium-driver", "curium-memory"]),
    (
        "curium-diagnostics",
        &["curium-driver", "curium-memory", "curium-sys"],
    ),
    ("curium-nvrtc", &["curium-driver", "curium-sys"]),
    ("curium-sim-libraries", &["curium-sim", "curium-sys"]),
    (
        "curium-blas",
        &["curium-driver", "curium-memory", "curium-sys"],
    ),
    (
        "curium-fft",
        &["curium-driver", "curium-memory", "curium-sys"],
    ),
    (
        "curium-rand",
        &["curium-driver", "curium-memory", "curium-sys"],
    ),
    (
        "curium-nccl",
        &["curium-driver", "curium-memory", "curium-sys"],
    ),
    (
        "curium",
        &[
            "curium-blas",
            "curium-diagnostics",
            "curium-driver",
            "curium-fft",
            "curium-interop",
            "curium-macros",
            "curium-memory",
            "curium-nccl",
            "curium-nvrtc",
            "curium-rand",
        ],
    ),
    (
        "curium-cli",
        &[
            "curium",
            "curium-format",
            "curium-kernel",
            "curium-kernel-build",
            "curium-sim",
        ],
    ),
    ("curium-test-macros", &[]),
    (
        "curium-tests",
        &[
            "curium",
            "curium-diagnostics",
            "curium-driver",
            "curium-interop",
            "curium-memory",
            "curium-nvrtc",
            "curium-sim",
            "curium-sys",
            "curium-test-macros",
        ],
    ),
    ("xtask", &[]),
];

#[test]
fn packages_follow_the_design() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    for (package, allowed) in ARROWS {
        for used in ours(dependencies(package, "normal,build", "1", &[])?) {
            assert!(
                allowed.contains(&used.as_str()),
                "{package} may not depend on {used}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_package_is_listed() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
    let folders = std::fs::read_dir(root)?;
    let manifests = folders.map(|folder| {
        folder
            .expect("failed to list the folder")
            .path()
            .join("Cargo.toml")
    });
    for manifest in manifests.filter(|manifest| manifest.exists()) {
        let text = std::fs::read_to_string(&manifest)?;
        let name = text
            .lines()
            .find_map(|line| line.strip_prefix("name = "))
            .ok_or("no package name")?;
        let name = name.trim_matches('"');
        assert!(
            ARROWS.iter().any(|(package, _)| *package == name),
            "{name} is not on the list of this test"
        );
    }
    Ok(())
}

#[test]
fn simulator_is_for_tests() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    for package in [
        "curium-format",
        "curium-sys",
        "curium-driver",
        "curium-memory",
        "curium-interop",
        "curium-diagnostics",
        "curium-nvrtc",
        "curium-blas",
        "curium-rand",
        "curium-fft",
        "curium",
    ] {
        let all = dependencies(package, "normal,build", "255", &[])?;
        assert!(
            !all.contains("curium-sim"),
            "{package} depends on the simulator"
        );
    }
    let tests = ours(dependencies("curium-driver", "dev", "1", &[])?);
    assert_eq!(
        tests,
        ["curium-sim"],
        "this test recognizes dependencies of tests"
    );
    Ok(())
}

#[test]
fn dependencies_are_counted() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let allowed: BTreeSet<&str> = BTreeSet::from([
        "bitflags",
        "bytemuck",
        "cfg-if",
        "crossbeam-deque",
        "crossbeam-epoch",
        "crossbeam-utils",
        "curium-driver",
        "curium-format",
        "curium-sys",
        "libc",
        "libloading",
        "lock_api",
        "parking_lot",
        "parking_lot_core",
        "pin-project-lite",
        "rayon-core",
        "redox_syscall",
        "scopeguard",
        "smallvec",
        "tracing",
        "tracing-core",
        "windows-link",
        // `thiserror` derives the error types.
        "thiserror",
        "thiserror-impl",
        "proc-macro2",
        "quote",
        "syn",
        "unicode-ident",
        // `half` is optional.
        "half",
        "bytemuck_derive",
        "crunchy",
        "zerocopy",
        "zerocopy-derive",
    ]);
    let dependencies = dependencies("curium-memory", "normal,build", "255", &["--target", "all"])?;
    let new: Vec<_> = dependencies
        .iter()
        .filter(|name| !allowed.contains(name.as_str()))
        .collect();
    assert_eq!(
        new,
        Vec::<&String>::new(),
        "a new dependency is a commit of its own, which adds it here with its reason"
    );
    let gone: Vec<_> = allowed
        .iter()
        .filter(|name| !dependencies.contains(**name))
        .collect();
    assert_eq!(
        gone,
        Vec::<&&str>::new(),
        "these are unused; remove them from the list"
    );
    Ok(())
}
