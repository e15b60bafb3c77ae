//! `cargo xtask cost`: counts the instructions of calls beyond C's, on a driver whose functions do
//! nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo;

/// The counted programs: the same calls as in C and through Curium, allocations from memory that is
/// kept, collectives, and calls of the math libraries.
const EXAMPLES: [&str; 4] = [
    "call_cost",
    "allocation_cost",
    "collective_cost",
    "library_cost",
];

/// The number of calls. One-time costs become negligible in the division.
const CALLS: u64 = 10_000;

/// A call, and the maximum number of instructions beyond those in C, or beyond those of a simpler
/// call.
struct Cost {
    what: &'static str,
    example: &'static str,
    base: &'static str,
    counted: &'static str,
    bound: u64,
}

const COSTS: &[Cost] = &[
    Cost {
        what: "launch with 4 arguments, beyond C's",
        example: EXAMPLES[0],
        base: "c_launches",
        counted: "curium_launches",
        // Six of them choose the handle: on drivers before CUDA 12.0, a kernel of a library has one
        // per context. Three store the name of the operation.
        bound: 67,
    },
    Cost {
        what: "launch with 4 arguments, two of them leased by a graph, beyond C's",
        example: EXAMPLES[0],
        base: "c_launches",
        counted: "leased_launches",
        bound: 262,
    },
    Cost {
        what: "update of a node with 4 arguments, beyond C's",
        example: EXAMPLES[0],
        base: "c_updates",
        counted: "curium_updates",
        bound: 45,
    },
    Cost {
        what: "launch of a graph that leases nothing, beyond C's",
        example: EXAMPLES[0],
        base: "c_graph_launches",
        counted: "curium_graph_launches",
        bound: 62,
    },
    Cost {
        what: "allocation and deallocation of the caching resource",
        example: EXAMPLES[1],
        base: "no_allocations",
        counted: "cache_allocations",
        bound: 190,
    },
    Cost {
        what: "buffer from the caching resource, and its drop, beyond the resource's",
        example: EXAMPLES[1],
        base: "cache_allocations",
        counted: "buffer_allocations",
        bound: 171,
    },
    Cost {
        what: "pinned buffer from a cache, and its drop",
        example: EXAMPLES[1],
        base: "no_allocations",
        counted: "pinned_allocations",
        bound: 350,
    },
    Cost {
        what: "copy of 64 bytes to the device, beyond the driver's",
        example: EXAMPLES[1],
        base: "no_allocations",
        counted: "small_uploads",
        bound: 490,
    },
    // Libraries take slices, whose accesses are found by a virtual call: some ten instructions for
    // each wait and each record.
    Cost {
        what: "all-reduce of NCCL, beyond C's",
        example: EXAMPLES[2],
        base: "c_all_reduces",
        counted: "curium_all_reduces",
        bound: 161,
    },
    Cost {
        what: "group of one all-reduce, beyond C's",
        example: EXAMPLES[2],
        base: "c_groups",
        counted: "curium_groups",
        bound: 720,
    },
    Cost {
        what: "group of a send and a receive, beyond C's",
        example: EXAMPLES[2],
        base: "c_exchanges",
        counted: "curium_exchanges",
        bound: 1175,
    },
    Cost {
        what: "product of cuBLAS, beyond C's",
        example: EXAMPLES[3],
        base: "c_gemms",
        counted: "curium_gemms",
        bound: 171,
    },
    Cost {
        what: "product of cuBLASLt, beyond C's",
        example: EXAMPLES[3],
        base: "c_matmuls",
        counted: "curium_matmuls",
        bound: 532,
    },
    Cost {
        what: "transform of cuFFT, beyond C's",
        example: EXAMPLES[3],
        base: "c_transforms",
        counted: "curium_transforms",
        bound: 125,
    },
    Cost {
        what: "generated numbers of cuRAND, beyond C's",
        example: EXAMPLES[3],
        base: "c_uniforms",
        counted: "curium_uniforms",
        bound: 138,
    },
];

/// Counts all of them and fails if one is above its bound.
pub(crate) fn run() -> Result<()> {
    ensure!(can_count(), "valgrind is needed, and cannot be run");
    let mut build = vec!["build", "--release", "-p", "curium-measurements"];
    build.extend(cargo::UNOPTIMIZED_SIMULATOR);
    for example in EXAMPLES {
        build.extend(["--example", example]);
    }
    let built = cargo::build(&build, &[])?;
    let folder = cargo::target_folder()?.join("cost");
    fs::create_dir_all(&folder)?;
    let mut exceeded = Vec::new();
    for cost in COSTS {
        let program = built
            .iter()
            .find(|artifact| artifact.kind == "example" && artifact.file.ends_with(cost.example))
            .with_context(|| format!("cargo built no {}", cost.example))?;
        let counted = cost.count(&program.file, &folder)?;
        if counted > cost.bound {
            exceeded.push(format!("one {}: {counted} instructions", cost.what));
        }
    }
    ensure!(exceeded.is_empty(), "{}", exceeded.join("\n"));
    Ok(())
}

/// Returns `true` if valgrind is installed.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

impl Cost {
    /// Returns the number of instructions beyond the base.
    fn count(&self, program: &Path, folder: &Path) -> Result<u64> {
        let Self {
            what,
            bound,
            example,
            base,
            counted,
        } = *self;
        let base = count(program, example, base, folder)?;
        let counted = count(program, example, counted, folder)?;
        println!("instructions per {what}: {counted} - {base}, at most {bound} are allowed");
        Ok(counted.saturating_sub(base))
    }
}

/// Returns the number of instructions per call in `mode` of an example, which names the calling
/// function.
fn count(program: &Path, example: &str, mode: &str, folder: &Path) -> Result<u64> {
    let counts = folder.join(format!("callgrind.{mode}"));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={example}::{mode}*"));
    valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
    let output = valgrind
        .arg(program)
        .args([mode, &CALLS.to_string()])
        .output()?;
    ensure!(
        output.status.success(),
        "valgrind failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    total(&fs::read_to_string(&counts).with_context(|| counts.display().to_string())?)
        .map(|total| total / CALLS)
}

/// Returns the number of instructions that callgrind counted.
fn total(counts: &str) -> Result<u64> {
    let total = counts
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .context("callgrind wrote no total")?;
    let total = total.trim().parse()?;
    ensure!(
        total > 0,
        "callgrind counted nothing: the function that calls was not found"
    );
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_and_nothing_counted_is_an_error() {
        assert_eq!(
            total("events: Ir\nfn=(1)\n+1 5\ntotals: 820032\n")
                .expect("it has the form of callgrind's output"),
            820_032
        );
        assert!(total("events: Ir\ntotals: 0\n").is_err());
        assert!(total("events: Ir\n").is_err());
    }
}
