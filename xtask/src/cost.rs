//! `cargo xtask cost`: how many instructions a launch takes beyond C's, on a driver whose launch does nothing, and how many an allocation
//! and its free take that ask no driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo;

/// What is counted: the same launches as C makes them and through Curium.
const BUILD: &[&str] = &["build", "--release", "-p", "curium-tests", "--example", "launch_cost"];

/// What is counted as well: allocations of memory that is kept.
const BUILD_ALLOCATIONS: &[&str] = &["build", "--release", "-p", "curium-tests", "--example", "allocation_cost"];

/// How often each launches, or allocates. What is counted once per run vanishes in the division.
const LAUNCHES: u64 = 10_000;

/// How many more instructions than C's a launch may take.
const BOUND: u64 = 40;

/// How many instructions an allocation and its free may take: from the cache itself, and as a buffer.
const ALLOCATION_BOUNDS: [(&str, u64); 2] = [("cache", 260), ("buffer", 440)];

/// Counts all and fails above a bound.
pub(crate) fn run() -> Result<()> {
    ensure!(can_count(), "valgrind is needed, and cannot be run");
    let folder = cargo::target_folder()?.join("cost");
    fs::create_dir_all(&folder)?;
    let allocations = example(BUILD_ALLOCATIONS)?;
    for (mode, bound) in ALLOCATION_BOUNDS {
        let instructions = count(&allocations, (mode, "allocations"), &folder)?;
        println!("instructions per allocation and free, {mode}: {instructions}, at most {bound} are allowed");
        ensure!(instructions <= bound, "an allocation and its free take {instructions} instructions: {mode}");
    }
    let launches = example(BUILD)?;
    let c = count(&launches, ("c", "launches"), &folder)?;
    let curium = count(&launches, ("curium", "launches"), &folder)?;
    println!("instructions per launch with 4 arguments: C {c}, Curium {curium}, at most {BOUND} more are allowed");
    ensure!(curium <= c + BOUND, "a launch takes {} instructions more than C's", curium - c);
    Ok(())
}

/// Whether there is a valgrind.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The example that a build makes.
fn example(build: &[&str]) -> Result<PathBuf> {
    let built = cargo::build(build, &[])?;
    let program = built.into_iter().find(|artifact| artifact.kind == "example");
    Ok(program.context("cargo built no example")?.file)
}

/// The instructions of one launch, or what else is done, in `mode`; both name the function that is counted.
fn count(program: &Path, (mode, what): (&str, &str), folder: &Path) -> Result<u64> {
    let counts = folder.join(format!("callgrind.{mode}"));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").arg(format!("--toggle-collect=*{mode}_{what}*"));
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
