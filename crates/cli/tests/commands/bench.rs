//! `curium bench`, run as a program.

use std::fs;

use crate::program::{self, Outcome};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn bench(arguments: &[&str]) -> TestResult<Outcome> {
    let mut command = program::curium();
    command.args(["bench", "--device", "sim"]).args(arguments);
    Ok(program::run(&mut command)?)
}

#[test]
fn simulated_times_are_marked() -> TestResult {
    let Outcome {
        code,
        stdout,
        stderr,
    } = bench(&["launch/", "--rounds", "2"])?;
    assert_eq!(code, Some(0), "{stderr}");
    for said in [
        "not representative of hardware",
        "launch/threads/1",
        "launch/current/1",
        "Curium / C",
    ] {
        assert!(stdout.contains(said), "{said}: {stdout}");
    }
    assert!(!stdout.contains("copy/"), "{stdout}");
    Ok(())
}

#[test]
fn pictures_show_measured_values() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pictures");
    let to = path.to_str().ok_or("the path is not UTF-8")?;
    assert_eq!(
        bench(&["allocate/live", "--rounds", "2", "--svg", to])?.code,
        Some(0)
    );
    let svg = fs::read_to_string(path.join("allocate.svg"))?;
    for said in [
        "cost over live blocks",
        "free and allocate, C",
        "free and allocate, Curium",
        "not representative of hardware",
    ] {
        assert!(svg.contains(said), "{said}");
    }
    assert!(!path.join("launch.svg").exists() && !path.join("bandwidth.svg").exists());
    Ok(())
}

#[test]
fn memory_filter_writes_tables() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("memory.md");
    let Outcome {
        code,
        stdout,
        stderr,
    } = bench(&[
        "memory",
        "--rounds",
        "1",
        "--json",
        "--markdown",
        path.to_str().ok_or("the path is not UTF-8")?,
    ])?;
    assert_eq!(code, Some(0), "{stderr}");
    for said in [
        "copy/pageable-to-device/1048576",
        "allocate/plain-live/100",
        "allocate/buffer/1024",
        "calls/one-stream/10",
    ] {
        assert!(stdout.contains(&format!("\"{said}\"")), "{said}: {stdout}");
    }
    assert!(!stdout.contains("launch/"), "{stdout}");
    let tables = fs::read_to_string(path)?;
    for said in [
        "not representative of hardware",
        "| live blocks | C, ns |",
        "| 1,000 | ",
        "% of the rest fragmented",
        "Curium's single-thread rate",
    ] {
        assert!(tables.contains(said), "{said}: {tables}");
    }
    // An access on the buffer's own stream makes no call that the C program does not make.
    assert!(
        tables.contains("| 10 | 32 [32 32] | 32 [32 32] | 1.000 [1.000 1.000] |"),
        "{tables}"
    );
    Ok(())
}

#[test]
fn filter_without_a_match() -> TestResult {
    let Outcome {
        code,
        stdout,
        stderr,
    } = bench(&["lunch"])?;
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("\"lunch\"") && stderr.contains("--list"),
        "{stderr}"
    );
    Ok(())
}
