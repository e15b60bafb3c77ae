//! Examples of this package that measure run on the simulator. They lie in the folder `examples`
//! beside that of this test.
#![cfg(not(miri))]

use curium_tests::TestResult;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the program of an example, which cargo builds beside this test.
fn example(name: &str) -> TestResult<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test
        .parent()
        .and_then(Path::parent)
        .ok_or("no profile folder")?
        .join("examples");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "{name} is not built: `cargo build -p curium-tests --examples` builds it"
    );
    Ok(program)
}

fn library_times(arguments: &[&str]) -> TestResult<Output> {
    let mut program = Command::new(example("library_times")?);
    Ok(program
        .env_remove("CURIUM_TEST_DRIVER")
        .args(arguments)
        .output()?)
}

/// Returns the first columns of the rows of a table, which are to the left of a bar.
fn rows(output: &Output) -> Vec<String> {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| Some(line.split_once(" | ")?.0.trim_end().to_owned()))
        .collect()
}

const HOST: [&str; 11] = [
    "host cost of a queued call",
    "C against C: gemm, f32 16 × 16",
    "gemm, f32 16 × 16",
    "axpy, f32 1024",
    "gemm_mixed, bf16 16 × 16",
    "MatmulPlan, f32 16 × 16",
    "MatmulPlan, f32 16 × 16, graph",
    "MatmulPlan, bf16 16 × 16",
    "MatmulPlan, bf16 16 × 16, graph",
    "transform, complex f32 1024",
    "generator, uniform f32 1024",
];

const PRODUCTS: [&str; 5] = [
    "type   size",
    "bf16     64",
    "tf32     64",
    "e4m3     64",
    "f64      64",
];

#[test]
fn library_times_are_printed() -> TestResult {
    assert_eq!(
        rows(&library_times(&["--device", "sim"])?),
        [&HOST[..], &PRODUCTS].concat()
    );
    Ok(())
}

#[test]
fn selected_times_are_printed() -> TestResult {
    assert_eq!(rows(&library_times(&["--only", "host"])?), HOST);
    assert_eq!(rows(&library_times(&["--only", "products"])?), PRODUCTS);
    Ok(())
}

#[test]
fn unknown_part_is_an_error() -> TestResult {
    for (arguments, said) in [
        (["--only", "some"], "host or products"),
        (["--device", "tpu"], "gpu or sim"),
    ] {
        let output = library_times(&arguments)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(said), "{error}");
    }
    Ok(())
}
