//! The simulator answers any sequence of calls: it does not crash, hang or panic, and the same seed
//! gives the same answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Runs sequences on the simulator. Returns the lines of each.
fn run(folder: &Path, sequences: u64) -> Result<BTreeMap<u64, Vec<String>>> {
    let path = folder.join("log");
    let status = Command::new(env!("CARGO_BIN_EXE_driver-codes"))
        .args(["run", "--seed", "1", "--sequences"])
        .arg(sequences.to_string())
        .arg(&path)
        .env_remove("CURIUM_TEST_DRIVER")
        .status()?;
    ensure!(status.success(), "{status}");
    let text = std::fs::read_to_string(&path)?;
    let mut log: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut number = 0;
    for line in text.lines() {
        match line.strip_prefix("sequence\t") {
            Some(sequence) => number = sequence.parse()?,
            None => log.entry(number).or_default().push(line.to_owned()),
        }
    }
    Ok(log)
}

#[test]
fn simulator_answers_every_sequence() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = run(folder.path(), 300)?;
    ensure!(log.len() == 300, "{} sequences", log.len());
    for (number, lines) in &log {
        let end = lines.last().context("a sequence has an end")?;
        ensure!(
            end == "end\tcomplete",
            "sequence {number}: {}",
            lines.join("\n")
        );
        for line in lines {
            let is_failure = line.ends_with("\tUNKNOWN") || line.contains("panicked");
            ensure!(!is_failure, "sequence {number}: {line}");
        }
    }
    Ok(())
}

/// The code of a query depends on the time that work takes.
#[test]
fn equal_seeds_give_equal_codes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let first = run(folder.path(), 60)?;
    let second = run(folder.path(), 60)?;
    for (number, lines) in &first {
        let others = second.get(number).context("the sequence ran twice")?;
        for (line, other) in lines.iter().zip(others) {
            let depends_on_time = [line, other]
                .iter()
                .any(|line| line.ends_with("NOT_READY") || line.starts_with("stderr"));
            ensure!(
                line == other || depends_on_time,
                "sequence {number}: {line}, then {other}"
            );
        }
    }
    Ok(())
}

/// A digest of the driver of CUDA 13.0 on an H200.
struct Recording {
    seed: &'static str,
    sequences: &'static str,
    /// The least number of calls of a sequence.
    calls: &'static str,
}

const RECORDINGS: [Recording; 2] = [
    Recording {
        seed: "1",
        sequences: "662",
        calls: "40",
    },
    Recording {
        seed: "5",
        sequences: "329",
        calls: "30",
    },
];

/// Time and machine are listed in `expected.txt`, with all other differences.
#[test]
fn codes_are_those_of_hardware() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = env!("CARGO_BIN_EXE_driver-codes");
    for Recording {
        seed,
        sequences,
        calls,
    } in RECORDINGS
    {
        let log = folder.path().join(seed);
        let status = Command::new(program)
            .args(["run", "--seed", seed])
            .args(["--sequences", sequences, "--calls", calls])
            .arg(&log)
            .env_remove("CURIUM_TEST_DRIVER")
            .env("CURIUM_SIM_DRIVER_VERSION", "13.0")
            .status()?;
        ensure!(status.success(), "{status}");
        let digest = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("h200-{seed}.digest"));
        let compared = Command::new(program)
            .arg("compare")
            .args([&log, &digest])
            .output()?;
        ensure!(
            compared.status.success(),
            "seed {seed}: {}{}",
            String::from_utf8_lossy(&compared.stdout),
            String::from_utf8_lossy(&compared.stderr)
        );
    }
    Ok(())
}
