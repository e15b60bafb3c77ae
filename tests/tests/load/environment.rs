//! The environment variables of the simulator library: faults, devices, and the files for the trace
//! and the summary.

use curium_tests::TestResult;
use std::path::Path;
use std::process::{Command, Output};

use super::{REPORT, SIMULATOR, assert_reports_error, assert_reports_saxpy, folder, report};

/// Returns the output of the program with the simulator as its driver and these variables, and the
/// summary that it writes.
fn summary(test: &str, variables: &[(&str, &str)]) -> TestResult<(Output, String)> {
    let path = folder("summary").join(test);
    let _ = std::fs::remove_file(&path);
    let variables = variables
        .iter()
        .map(|(name, value)| (*name, Path::new(*value)));
    let mut all = vec![
        ("CURIUM_DRIVER_PATH", SIMULATOR.as_path()),
        ("CURIUM_SIM_SUMMARY", path.as_path()),
    ];
    all.extend(variables);
    let output = report(&all)?;
    Ok((output, std::fs::read_to_string(&path).unwrap_or_default()))
}

#[test]
fn summary_goes_to_a_file() -> TestResult {
    let (output, text) = summary("right", &[])?;
    assert_reports_saxpy(&output);
    assert!(text.contains("\ncalled cuLaunchKernel: 1\n"), "{text}");
    assert!(
        !text.contains("unsupported ") && !text.contains("reported "),
        "{text}"
    );
    let numbered = folder("summary").join("of-%p");
    assert_reports_saxpy(&report(&[
        ("CURIUM_DRIVER_PATH", &SIMULATOR),
        ("CURIUM_SIM_SUMMARY", &numbered),
    ])?);
    assert!(
        !numbered.exists(),
        "the name contains the process identifier"
    );
    Ok(())
}

#[test]
fn configured_faults_occur() -> TestResult {
    let fault = (
        "CURIUM_SIM_FAULTS",
        "cuMemAllocAsync@2=OUT_OF_MEMORY,cuLaunchKernel=1us",
    );
    let (output, text) = summary("memory", &[fault])?;
    let error = assert_reports_error(&output);
    assert!(error.contains("memory"), "{error}");
    assert!(text.contains("\ncalled cuMemAllocAsync: "), "{text}");
    let (output, _) = summary("lost", &[("CURIUM_SIM_FAULTS", "cuLaunchKernel=lost")])?;
    let error = assert_reports_error(&output);
    assert!(error.contains("CUDA_ERROR_UNKNOWN"), "{error}");
    Ok(())
}

#[test]
fn configured_device_is_used() -> TestResult {
    let (output, _) = summary(
        "model",
        &[
            ("CURIUM_SIM_DEVICE_MODEL", "A100"),
            ("CURIUM_SIM_MEMORY", "64M"),
        ],
    )?;
    assert!(assert_reports_saxpy(&output).contains("A100 model"));
    let (output, _) = summary("little", &[("CURIUM_SIM_MEMORY", "1")])?;
    assert_reports_error(&output);
    let (output, _) = summary("without", &[("CURIUM_SIM_DEVICES", "0")])?;
    assert!(assert_reports_error(&output).contains("NO_DEVICE"));
    Ok(())
}

#[test]
fn nonsensical_variable_is_named() -> TestResult {
    let (output, text) = summary("nonsense", &[("CURIUM_SIM_FAULTS", "cuInit@0=1")])?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("CURIUM_SIM_FAULTS: invalid value `cuInit@0=1`"),
        "{error}"
    );
    assert_eq!(text, "");
    Ok(())
}

#[test]
fn trace_goes_to_a_file() -> TestResult {
    let folder = folder("trace");
    for variable in ["CURIUM_SIM_TRACE", "CURIUM_TRACE"] {
        let path = folder.join(variable);
        let _ = std::fs::remove_file(&path);
        // The second program appends to the file of the first.
        for _ in 0..2 {
            assert_reports_saxpy(&report(&[
                ("CURIUM_DRIVER_PATH", &SIMULATOR),
                (variable, &path),
            ])?);
        }
        let text = std::fs::read_to_string(&path)?;
        let events = text
            .strip_suffix(",\n")
            .map(|list| format!("{list}\n]"))
            .ok_or("no comma after the last event")?;
        let events: Vec<serde_json::Value> = serde_json::from_str(&events)?;
        for name in ["cuInit", "cuLaunchKernel", "cuMemAllocAsync"] {
            let count = events.iter().filter(|event| event["name"] == name).count();
            assert!(count >= 2, "{variable}: {name}: {text}");
        }
        let processes: std::collections::BTreeSet<_> = events
            .iter()
            .filter_map(|event| event["pid"].as_u64())
            .collect();
        assert_eq!(processes.len(), 2, "{variable}");
    }
    Ok(())
}

/// Returns the output of a program whose kernel writes out of bounds, with this value of
/// `CURIUM_SIM_CHECKS`.
fn report_fault(checks: &str) -> TestResult<(Output, String, String)> {
    let mut command = Command::new(&*REPORT);
    command
        .arg("fault")
        .env_remove("LD_LIBRARY_PATH")
        .env("CURIUM_DRIVER_PATH", &*SIMULATOR);
    let output = command.env("CURIUM_SIM_CHECKS", checks).output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    let out = out.into_owned();
    let err = err.into_owned();
    Ok((output, out, err))
}

const FAULT: &str = "curium-sim: kernel `write_at`: illegal address: 4-byte write at 0x";

#[test]
fn faulting_kernel_loses_a_context() -> TestResult {
    for (checks, is_written) in [("error", true), ("quiet", false)] {
        let (output, out, err) = report_fault(checks)?;
        assert_eq!(output.status.code(), Some(1), "{checks}: {out}{err}");
        assert!(
            err.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && !out.contains("saxpy"),
            "{checks}: {out}{err}"
        );
        assert_eq!(err.contains(FAULT), is_written, "{checks}: {err}");
    }
    let (output, out, err) = report_fault("report")?;
    assert_reports_saxpy(&output);
    assert!(
        out.contains("fault: 5\n") && err.contains(FAULT),
        "{out}{err}"
    );
    assert_eq!(err.matches(FAULT).count(), 1, "{err}");
    Ok(())
}

#[test]
fn summary_lists_leaks() -> TestResult {
    let path = folder("summary").join("leak");
    for backtraces in ["off", "on"] {
        let mut command = Command::new(&*REPORT);
        command
            .arg("leak")
            .env_remove("LD_LIBRARY_PATH")
            .env("CURIUM_DRIVER_PATH", &*SIMULATOR);
        command
            .env("CURIUM_SIM_SUMMARY", &path)
            .env("CURIUM_SIM_BACKTRACES", backtraces);
        assert_reports_saxpy(&command.output()?);
        let text = std::fs::read_to_string(&path)?;
        let line = text
            .lines()
            .find(|line| line.starts_with("left device allocation of 300 bytes at 0x"));
        let line = line.unwrap_or_else(|| panic!("the buffer is returned: {text}"));
        assert!(
            line.contains(", made by cuMemAllocAsync on stream 0x"),
            "{line}"
        );
        let stack = text.split(line).nth(1).unwrap_or_default();
        assert_eq!(
            stack.starts_with("\n    from "),
            backtraces == "on",
            "{text}"
        );
        assert_eq!(stack.contains("report::leak"), backtraces == "on", "{text}");
    }
    Ok(())
}

#[test]
fn process_aborts_at_a_fault() -> TestResult {
    use std::os::unix::process::ExitStatusExt as _;

    let (output, out, err) = report_fault("abort")?;
    assert_eq!(
        output.status.signal(),
        Some(6),
        "{}: {out}{err}",
        output.status
    );
    assert!(err.contains(FAULT) && !out.contains("fault:"), "{out}{err}");
    Ok(())
}
