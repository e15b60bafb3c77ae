//! `cargo xtask cost`: how many instructions a launch takes beyond C's, on a driver whose launch does nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo;

/// What is counted: the same launches as C makes them and through Curium.
const BUILD: &[&str] = &["build", "--release", "-p", "curium-tests", "--example", "launch_cost"];

/// How often each launches. What is counted once per run vanishes in the division.
const LAUNCHES: u64 = 10_000;

/// How many more instructions than C's a launch may take.
const BOUND: u64 = 40;

/// Counts both and fails above the bound.
pub(crate) fn run() -> Result<()> {
    ensure!(can_count(), "valgrind is needed, and cannot be run");
    let built = cargo::build(BUILD, &[])?;
    let program = built.iter().find(|artifact| artifact.kind == "example").context("cargo built no example")?;
    let folder = cargo::target_folder()?.join("cost");
    fs::create_dir_all(&folder)?;
    let c = count(&program.file, "c", &folder)?;
    let curium = count(&program.file, "curium", &folder)?;
    println!("instructions per launch with 4 arguments: C {c}, Curium {curium}, at most {BOUND} more are allowed");
    ensure!(curium <= c + BOUND, "a launch takes {} instructions more than C's", curium - c);
    Ok(())
}

/// Whether there is a valgrind.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The instructions of one launch in `mode`, which names the function that launches.
fn count(program: &Path, mode: &str, folder: &Path) -> Result<u64> {
    let counts = folder.join(format!("callgrind.{mode}"));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").arg(format!("--toggle-collect=*{mode}_launches*"));
    valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
    let output = valgrind.arg(program).args([mode, &LAUNCHES.to_string()]).output()?;
    ensure!(output.status.success(), "valgrind failed:\n{}", String::from_utf8_lossy(&output.stderr));
    total(&fs::read_to_string(&counts).with_context(|| counts.display().to_string())?).map(|total| total / LAUNCHES)
}

/// The number of instructions that callgrind counted.
fn total(counts: &str) -> Result<u64> {
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")).context("callgrind wrote no total")?;
    let total = total.trim().parse()?;
    ensure!(total > 0, "callgrind counted nothing: the function that launches was not found");
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_and_nothing_counted_is_an_error() {
        assert_eq!(total("events: Ir\nfn=(1)\n+1 5\ntotals: 820032\n").expect("it is callgrind's form"), 820_032);
        assert!(total("events: Ir\ntotals: 0\n").is_err());
        assert!(total("events: Ir\n").is_err());
    }
}
