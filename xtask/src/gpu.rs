//! `cargo xtask gpu`: bundles the tests, benchmarks, examples and the program for a machine with a
//! GPU and without Rust.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo::{self, Artifact};
use crate::compare;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The script that runs the bundle.
const SCRIPT: &str = include_str!("gpu/run.sh");

/// The packages whose tests run on a real driver.
const TEST_PACKAGES: &[&str] = &[
    "curium-tests",
    "curium-test-graphics",
    "curium-test-kernels",
    "curium-test-kernels-sm90",
    "curium-test-kernels-hopper",
];

/// Tests that read the sources, or run cargo or rustc.
const NEED_SOURCES: &[&str] = &[
    "book",
    "conventions",
    "dependencies",
    "load",
    "safe_interfaces",
];

/// The benchmarks that run on a real driver.
const BENCHES: &[&str] = &["copies", "open", "staging", "trace", "wake"];

/// The benchmark of the kernels in Rust beside CUDA C++. It also checks them, so the script always
/// runs it with small sizes.
const KERNELS: &str = "beside_cuda";

/// The library that `curium trace` loads into programs, which it looks for beside itself.
const INJECTION: &str = "libcurium_trace.so";

/// Examples whose instructions are counted. They take arguments, and run on a driver that does
/// nothing.
const COUNTED: &[&str] = &[
    "allocation_cost",
    "call_cost",
    "collective_cost",
    "library_cost",
];

/// The programs share most of their code: a dictionary over several of them halves the archive.
const COMPRESSION: &str = "--lzma2=preset=3,dict=192MiB";

/// The maximum size of the archive.
const LIMIT: u64 = 60 * 1024 * 1024;

/// Builds the bundle.
pub(crate) fn run() -> Result<()> {
    let root = crate::root().join(".gpu");
    let tests = tests()?;
    let (mut benches, examples, program) = released()?;
    let injection = injection()?;
    benches.push(Artifact {
        kind: "bench".to_owned(),
        file: compare::build()?,
    });
    let folders = [
        ("tests", tests),
        ("benches", benches),
        ("examples", examples),
        ("bin", program),
    ];
    // After the build, so that the previous bundle survives a failure.
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut size = 0;
    for (folder, programs) in folders {
        for program in programs {
            size += add(&root.join(folder), &name(&program.file), &program.file)?;
        }
    }
    size += add(&root.join("bin"), INJECTION, &injection)?;
    let script = root.join("run.sh");
    fs::write(&script, SCRIPT)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let packed = pack(&root)?;
    println!(
        "{:.1} MiB in .gpu ({:.1} unpacked); run .gpu/run.sh on the machine",
        packed as f64 / MEBIBYTE,
        size as f64 / MEBIBYTE
    );
    ensure!(
        packed <= LIMIT,
        "the bundle is larger than {} MiB",
        LIMIT / 1024 / 1024
    );
    Ok(())
}

/// Replaces the folders of programs by one archive, and returns its size. The script unpacks it.
fn pack(root: &Path) -> Result<u64> {
    let folders: Vec<_> = ["tests", "benches", "examples", "bin"]
        .into_iter()
        .filter(|name| root.join(name).exists())
        .collect();
    let archive = root.join("programs.tar.xz");
    let status = Command::new("tar")
        .env("XZ_OPT", COMPRESSION)
        .arg("-C")
        .arg(root)
        .arg("-cJf")
        .arg(&archive)
        .args(&folders)
        .status();
    ensure!(
        status.context("tar cannot be run")?.success(),
        "tar could not pack the programs"
    );
    for folder in folders {
        fs::remove_dir_all(root.join(folder))?;
    }
    Ok(fs::metadata(&archive)?.len())
}

fn tests() -> Result<Vec<Artifact>> {
    // Without optimization: the tests wait for the GPU, and the build for the compiler.
    let mut arguments = vec!["test", "--no-run", "--tests"];
    arguments.extend(TEST_PACKAGES.iter().flat_map(|package| ["-p", *package]));
    let mut built = cargo::build(&arguments, &[])?;
    built.retain(|artifact| {
        artifact.kind == "test" && !NEED_SOURCES.contains(&name(&artifact.file).as_str())
    });
    Ok(built)
}

/// Builds the benchmarks, the examples and the program, in one build for the sake of the packages
/// that they share.
fn released() -> Result<(Vec<Artifact>, Vec<Artifact>, Vec<Artifact>)> {
    let mut arguments = vec![
        "build",
        "--release",
        "--workspace",
        "--exclude",
        "xtask",
        "--examples",
        "--bin",
        "curium",
    ];
    let benches = BENCHES.iter().chain([&KERNELS]);
    arguments.extend(benches.flat_map(|name| ["--bench", *name]));
    let programs = kernel_examples()?;
    arguments.extend(programs.iter().flat_map(|name| ["--bin", name.as_str()]));
    let mut built = cargo::build(&arguments, &[])?;
    let benches = extract_kind(&mut built, "bench");
    let mut examples = extract_kind(&mut built, "example");
    let mut program = extract_kind(&mut built, "bin");
    examples.retain(|artifact| !COUNTED.contains(&name(&artifact.file).as_str()));
    examples.extend(program.extract_if(.., |artifact| programs.contains(&name(&artifact.file))));
    Ok((benches, examples, program))
}

/// Builds the library that `curium trace` loads into programs.
fn injection() -> Result<PathBuf> {
    let arguments = [
        "rustc",
        "--release",
        "--package",
        "curium-diagnostics",
        "--lib",
        "--features",
        "injection",
        "--crate-type",
        "cdylib",
    ];
    let built = cargo::build(&arguments, &[])?;
    let library = built
        .into_iter()
        .map(|artifact| artifact.file)
        .find(|file| file.extension().is_some_and(|extension| extension == "so"));
    library.context("cargo built no shared library of curium-diagnostics")
}

fn extract_kind(built: &mut Vec<Artifact>, kind: &str) -> Vec<Artifact> {
    built
        .extract_if(.., |artifact| artifact.kind == kind)
        .collect()
}

/// Returns the names of the packages of the folder `examples`, each of which is a program.
fn kernel_examples() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crate::root().join("examples"))? {
        let manifest = entry?.path().join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let text = fs::read_to_string(&manifest)?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = "));
        let name = name.with_context(|| format!("{} has no name", manifest.display()))?;
        names.push(name.trim_matches('"').to_owned());
    }
    Ok(names)
}

/// Copies a program or a shared library without symbols to `folder`, and returns its size.
fn add(folder: &Path, name: &str, file: &Path) -> Result<u64> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    ensure!(!path.exists(), "two programs are called {}", path.display());
    let status = Command::new("strip")
        .arg("-o")
        .arg(&path)
        .arg(file)
        .status()
        .context("strip is needed")?;
    ensure!(status.success(), "strip failed on {}", file.display());
    let size = fs::metadata(&path)?.len();
    println!(
        "{:8.1} MiB  {}",
        size as f64 / 1024.0 / 1024.0,
        PathBuf::from(folder.file_name().unwrap_or_default())
            .join(name)
            .display()
    );
    Ok(size)
}

/// Returns the file name without cargo's hash of 16 digits.
fn name(file: &Path) -> String {
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    match name.rsplit_once('-') {
        Some((name, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            name.to_owned()
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_examples_are_programs() -> Result<()> {
        let names = kernel_examples()?;
        assert!(
            names.contains(&"curium-example-saxpy".to_owned()),
            "{names:?}"
        );
        assert!(names.len() >= 8, "{names:?}");
        Ok(())
    }

    #[test]
    fn program_name_has_no_hash() {
        assert_eq!(
            name(Path::new("/t/deps/contract-8063822a6a462ca2")),
            "contract"
        );
        assert_eq!(name(Path::new("/t/release/curium")), "curium");
        assert_eq!(name(Path::new("/t/release/saxpy-managed")), "saxpy-managed");
    }

    /// Returns the names of the programs in a subfolder of `tests` whose main file contains
    /// `needle` and not `unless`.
    fn programs_with(folder: &str, needle: &str, unless: &str) -> Vec<String> {
        let entries =
            fs::read_dir(crate::root().join("tests").join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("failed to list the folder").path());
        let main_file = |path: &Path| {
            fs::read_to_string(if path.is_dir() {
                path.join("main.rs")
            } else {
                path.into()
            })
        };
        let with = paths.filter(|path| {
            main_file(path).is_ok_and(|source| source.contains(needle) && !source.contains(unless))
        });
        with.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect()
    }

    /// Programs that require sources or arguments are not in the bundle.
    #[test]
    fn special_programs_are_left_out() {
        let need_sources = programs_with("tests", "CARGO_MANIFEST_DIR", "source is not here");
        assert!(
            need_sources.iter().any(|name| name == "book"),
            "{need_sources:?}"
        );
        let carried: Vec<_> = need_sources
            .iter()
            .filter(|name| !NEED_SOURCES.contains(&name.as_str()))
            .collect();
        assert_eq!(carried, [""; 0], "these fail where there are no sources");
        let need_arguments = programs_with("measurements/examples", "\"usage: ", "\0");
        assert!(
            need_arguments.iter().any(|name| name == "allocation_cost"),
            "{need_arguments:?}"
        );
        let carried: Vec<_> = need_arguments
            .iter()
            .filter(|name| !COUNTED.contains(&name.as_str()))
            .collect();
        assert_eq!(carried, [""; 0], "these fail without arguments");
    }

    #[test]
    fn every_benchmark_is_in_the_bundle() {
        let mut present = programs_with("benches", "fn main", "\0");
        present.sort();
        assert_eq!(present, BENCHES);
    }

    /// Creates a bundle of shell scripts, each given as its path and body.
    fn bundle(programs: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let files = programs
            .iter()
            .map(|(path, body)| (*path, format!("#!/bin/sh\n{body}\n")));
        for (path, text) in files.chain([("run.sh", SCRIPT.to_owned())]) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a file lies in a folder"))
                .expect("the folder is writable");
            fs::write(&path, text).expect("the folder is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .expect("the test owns the file");
        }
        folder
    }

    /// Runs the bundle's script, and returns its success and output.
    fn run_bundle(folder: &tempfile::TempDir, arguments: &[&str]) -> (bool, String) {
        let path = std::env::var("PATH").expect("`PATH` is not set");
        let mut script = Command::new(folder.path().join("run.sh"));
        script.args(arguments).env_remove("OUT").env(
            "PATH",
            format!("{}:{path}", folder.path().join("path").display()),
        );
        let output = script.output().expect("bash runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    /// Returns the words of the row of `program`, without the time.
    fn row(text: &str, program: &str) -> Vec<String> {
        let row = text
            .lines()
            .filter(|line| line.ends_with("ok") || line.ends_with("FAILED"));
        let row = row
            .filter_map(|line| line.strip_prefix(program))
            .next()
            .expect("the program has a row");
        let words: Vec<_> = row.split_whitespace().map(str::to_owned).collect();
        [&words[..2], &words[4..]].concat()
    }

    const GOOD: &str = "test \"$CURIUM_TEST_DRIVER\" = cuda && echo 'test result: ok. 3 passed; 0 failed; 1 ignored; done'";

    #[test]
    fn script_counts_what_passed_and_keeps_the_log() {
        let folder = bundle(&[("tests/contract", GOOD), ("bin/curium", "echo picture $*")]);
        let (success, text) = run_bundle(&folder, &[]);
        assert!(success, "{text}");
        assert_eq!(row(&text, "contract"), ["3", "0", "ok"]);
        assert_eq!(row(&text, "demo"), ["1", "0", "ok"]);
        let log =
            fs::read_to_string(folder.path().join("out/gpu.log")).expect("the log is written");
        assert!(log.contains("picture demo --device gpu --output"), "{log}");
    }

    #[test]
    fn script_runs_everything_on_the_simulator_on_request() {
        let on_simulator = "test -z \"${CURIUM_TEST_DRIVER+set}\" && echo 'test result: ok. 2 passed; 0 failed; 0 ignored; done'";
        let programs = [
            ("tests/contract", on_simulator),
            ("examples/01_vector_add", "test \"$*\" = '--device sim'"),
            ("examples/plain", "true"),
            ("bin/curium", "echo ran $*"),
        ];
        let folder = bundle(&programs);
        let (success, text) = run_bundle(&folder, &["--simulator"]);
        assert!(success, "{text}");
        for (program, passed) in [
            ("contract", "2"),
            ("01_vector_add", "1"),
            ("plain", "1"),
            ("demo", "1"),
            ("doctor", "1"),
        ] {
            assert_eq!(row(&text, program), [passed, "0", "ok"], "{text}");
        }
        let log =
            fs::read_to_string(folder.path().join("out/gpu.log")).expect("the log is written");
        assert!(
            log.contains("ran demo --device sim") && log.contains("ran info --device sim"),
            "{log}"
        );
        assert!(text.contains("programs that failed: 0"), "{text}");
    }

    #[test]
    fn script_runs_only_nccl_on_request() {
        let tests =
            "test \"$*\" = nccl:: && echo 'test result: ok. 2 passed; 0 failed; 0 ignored; done'";
        let programs = [
            ("tests/contract", tests),
            ("tests/graphics", "exit 1"),
            ("examples/01_vector_add", "exit 1"),
            ("examples/collectives", "true"),
            ("examples/data_parallel", "true"),
            ("bin/curium", "echo ran $*; test \"$1\" = run"),
            ("path/nvidia-smi", "printf 'GPU 0\\nGPU 1\\n'"),
        ];
        let folder = bundle(&programs);
        let (success, text) = run_bundle(&folder, &["--nccl"]);
        assert!(success, "{text}");
        assert_eq!(row(&text, "contract nccl"), ["2", "0", "ok"]);
        let log =
            fs::read_to_string(folder.path().join("out/gpu.log")).expect("the log is written");
        let path = folder.path().join("examples").display().to_string();
        for launched in [
            "2 -- PATH/collectives",
            "2 -- PATH/data_parallel",
            "4 -- PATH/data_parallel --device sim",
        ] {
            let line = format!("ran run --ranks {}", launched.replace("PATH", &path));
            assert!(log.lines().any(|entry| entry == line), "{line}\n{log}");
        }
    }

    /// Without a checker or a benchmark, the kernels run once with small sizes.
    #[test]
    fn script_runs_kernels_beside_cuda() {
        let programs = [
            ("tests/contract", GOOD),
            ("benches/beside_cuda", "echo figures of $*; exit 1"),
            ("benches/open", "exit 1"),
            ("bin/curium", "true"),
        ];
        let folder = bundle(&programs);
        let (success, text) = run_bundle(&folder, &[]);
        assert!(!success, "{text}");
        assert_eq!(row(&text, "kernels"), ["0", "1", "FAILED"], "{text}");
        assert!(text.contains("figures of --gpu --small"), "{text}");
        let (_, text) = run_bundle(&folder, &["--kernels"]);
        let out = folder.path().join("out").display().to_string();
        assert!(
            text.contains(&format!("figures of --bench --output {out}")),
            "{text}"
        );
        assert!(!text.contains("contract"), "{text}");
    }

    #[test]
    fn script_lists_each_function_that_tests_called_once() {
        let calling =
            format!("printf 'cuInit\\ncuCtxGetId\\ncuInit\\n' >>\"$CURIUM_CALLED\"; {GOOD}");
        let folder = bundle(&[("tests/contract", &calling), ("bin/curium", "true")]);
        let (success, text) = run_bundle(&folder, &[]);
        assert!(success, "{text}");
        let list = fs::read_to_string(folder.path().join("out/gpu-tested.txt"))
            .expect("the list is written");
        assert_eq!(list, "cuCtxGetId\ncuInit\n");
    }

    /// The script fails if a test fails or crashes, or if the demo fails.
    #[test]
    fn script_fails_with_any_failure() {
        let failing = "echo 'test result: FAILED. 3 passed; 2 failed; 0 ignored'; exit 101";
        let dying = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; kill -SEGV $$";
        for (program, body, failed) in [
            ("tests/contract", failing, "2"),
            ("tests/contract", dying, "1"),
        ] {
            let (success, text) =
                run_bundle(&bundle(&[(program, body), ("bin/curium", "true")]), &[]);
            assert!(!success, "{text}");
            assert_eq!(row(&text, "contract"), ["3", failed, "FAILED"]);
        }
        let (success, text) = run_bundle(
            &bundle(&[("tests/contract", GOOD), ("bin/curium", "exit 1")]),
            &[],
        );
        assert!(
            !success && row(&text, "demo") == ["0", "1", "FAILED"],
            "{text}"
        );
    }

    #[test]
    fn script_fails_when_a_checker_finds_something() {
        let sanitizer = ("path/compute-sanitizer", "exit 99");
        let folder = bundle(&[("tests/contract", GOOD), ("bin/curium", "true"), sanitizer]);
        let (success, text) = run_bundle(&folder, &["--sanitize"]);
        assert!(
            !success && text.contains("programs that failed: 6"),
            "{text}"
        );
        for tool in ["memcheck", "initcheck", "racecheck"] {
            assert_eq!(
                row(&text, &format!("{tool} contract")),
                ["0", "1", "FAILED"]
            );
        }
    }
}
