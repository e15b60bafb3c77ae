//! Every example runs on the simulator.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The output of each example when it succeeds.
const SAID: [(&str, &str); 19] = [
    ("01_vector_add", "10000 sums are right"),
    ("02_overlap", "8 chunks on 2 streams"),
    ("03_double_buffer", "4206649 bytes are counted"),
    ("04_timing", "the kernel took"),
    ("05_threads", "4 threads computed"),
    ("06_peers", "went from device 0 to device 1"),
    ("07_unified", "4096 squares"),
    ("08_nvrtc_templates", "NVRTC"),
    ("09_graph_replay", "50 launches of 20 kernels"),
    ("10_tokio", "8 tasks"),
    ("11_pool_limits", "1000 allocations"),
    ("12_out_of_memory", "3 of 8 results were dropped"),
    ("13_runtime_api", "the runtime API"),
    ("14_your_own_tests", "20 orders"),
    ("15_fault_injection", "nothing leaked"),
    ("16_image_filter", "blurred as on the host"),
    (
        "17_transformer_block",
        "13 gradients agree with the reference",
    ),
    ("18_service", "100 clients were served"),
    ("19_executors", "3 executors awaited the device"),
];

/// Returns the directory into which cargo builds examples, beside this test's.
fn built() -> TestResult<PathBuf> {
    let test = std::env::current_exe()?;
    Ok(test
        .parent()
        .and_then(Path::parent)
        .ok_or("no profile folder")?
        .join("examples"))
}

#[test]
fn examples_print_their_results() -> TestResult {
    for (name, said) in SAID {
        let program = built()?.join(name);
        let is_off = match name {
            "08_nvrtc_templates" => !cfg!(feature = "nvrtc"),
            "17_transformer_block" => !cfg!(all(feature = "blas", feature = "half")),
            _ => false,
        };
        if is_off {
            continue;
        }
        assert!(
            program.exists(),
            "{name} is not built: `cargo build -p curium --examples` builds it, and so does `cargo test -p curium`"
        );
        let output = Command::new(&program).args(["--device", "sim"]).output()?;
        let out = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {error}");
        assert!(out.contains(said), "{name}: {out}");
    }
    Ok(())
}

#[test]
fn every_example_is_run() -> TestResult {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = fs::read_dir(folder)?.map(|entry| entry.expect("failed to list the folder").path());
    let sources = files.filter(|path| {
        path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists()
    });
    let stems = sources.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let expected: BTreeMap<_, _> = SAID.into_iter().collect();
    let unknown: Vec<_> = stems
        .filter(|name| !expected.contains_key(name.as_str()))
        .collect();
    assert_eq!(
        unknown,
        Vec::<String>::new(),
        "state in this test the output of these examples"
    );
    Ok(())
}
