//! `cargo xtask cost`: counts the instructions of calls beyond C's, on a driver whose functions do nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo;

/// The counted program: the same calls as in C and through Curium.
const BUILD: &[&str] = &["build", "--profile", "cost", "-p", "curium-tests", "--example", "call_cost"];

/// The number of calls. One-time costs become negligible in the division.
const CALLS: u64 = 10_000;

/// A call, and the maximum number of instructions beyond those in C.
struct Cost {
    what: &'static str,
    c: &'static str,
    curium: &'static str,
    bound: u64,
}

const COSTS: &[Cost] = &[
    Cost { what: "launch with 4 arguments", c: "c_launches", curium: "curium_launches", bound: 58 },
    Cost {
        what: "launch with 4 arguments, two of them leased by a graph",
        c: "c_launches",
        curium: "leased_launches",
        bound: 270,
    },
    Cost { what: "update of a node with 4 arguments", c: "c_updates", curium: "curium_updates", bound: 45 },
];

/// Counts both and fails above a bound.
pub(crate) fn run() -> Result<()> {
    ensure!(can_count(), "valgrind is needed, and cannot be run");
    let built = cargo::build(BUILD, &[])?;
    let program = built.iter().find(|artifact| artifact.kind == "example").context("cargo built no example")?;
    let folder = cargo::target_folder()?.join("cost");
    fs::create_dir_all(&folder)?;
    COSTS.iter().try_for_each(|cost| cost.check(&program.file, &folder))
}

/// Returns `true` if valgrind is installed.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

impl Cost {
    fn check(&self, program: &Path, folder: &Path) -> Result<()> {
        let (c, curium) = (count(program, self.c, folder)?, count(program, self.curium, folder)?);
        let Self { what, bound, .. } = self;
        println!("instructions per {what}: C {c}, Curium {curium}, at most {bound} more are allowed");
        ensure!(curium <= c + bound, "one {what} takes {} instructions more than C's", curium - c);
        Ok(())
    }
}

/// Returns the number of instructions per call in `mode`, which names the calling function.
fn count(program: &Path, mode: &str, folder: &Path) -> Result<u64> {
    let counts = folder.join(format!("callgrind.{mode}"));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").arg(format!("--toggle-collect=call_cost::{mode}*"));
    valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
    let output = valgrind.arg(program).args([mode, &CALLS.to_string()]).output()?;
    ensure!(output.status.success(), "valgrind failed:\n{}", String::from_utf8_lossy(&output.stderr));
    total(&fs::read_to_string(&counts).with_context(|| counts.display().to_string())?).map(|total| total / CALLS)
}

/// Returns the number of instructions that callgrind counted.
fn total(counts: &str) -> Result<u64> {
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")).context("callgrind wrote no total")?;
    let total = total.trim().parse()?;
    ensure!(total > 0, "callgrind counted nothing: the function that calls was not found");
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
