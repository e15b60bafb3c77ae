//! What the environment tells the simulator's library: faults, devices, and where it leaves a trace and a summary.

use std::path::Path;
use std::process::Output;

use super::{SIMULATOR, assert_reports_error, assert_reports_saxpy, folder, report};

/// What the program says with the simulator as its driver, and the summary that it leaves, with these variables.
fn summary(test: &str, variables: &[(&str, &str)]) -> (Output, String) {
    let path = folder("summary").join(test);
    let _ = std::fs::remove_file(&path);
    let variables = variables.iter().map(|(name, value)| (*name, Path::new(*value)));
    let mut all = vec![("CURIUM_DRIVER_PATH", SIMULATOR.as_path()), ("CURIUM_SIM_SUMMARY", path.as_path())];
    all.extend(variables);
    let output = report(&all);
    (output, std::fs::read_to_string(&path).unwrap_or_default())
}

#[test]
fn program_leaves_a_summary_where_the_environment_says() {
    let (output, text) = summary("right", &[]);
    assert_reports_saxpy(&output);
    assert!(text.contains("\ncalled cuLaunchKernel: 1\n"), "{text}");
    assert!(!text.contains("unsupported ") && !text.contains("fault "), "{text}");
    let numbered = folder("summary").join("of-%p");
    assert_reports_saxpy(&report(&[("CURIUM_DRIVER_PATH", &SIMULATOR), ("CURIUM_SIM_SUMMARY", &numbered)]));
    assert!(!numbered.exists(), "the number of the process stands in the name");
}

#[test]
fn program_meets_the_faults_of_the_environment() {
    let fault = ("CURIUM_SIM_FAULTS", "cuMemAllocAsync@2=OUT_OF_MEMORY,cuLaunchKernel=1us");
    let (output, text) = summary("memory", &[fault]);
    let error = assert_reports_error(&output);
    assert!(error.contains("memory"), "{error}");
    assert!(text.contains("\ncalled cuMemAllocAsync: "), "{text}");
    let (output, _) = summary("lost", &[("CURIUM_SIM_FAULTS", "cuLaunchKernel=lost")]);
    let error = assert_reports_error(&output);
    assert!(error.contains("CUDA_ERROR_UNKNOWN"), "{error}");
}

#[test]
fn program_sees_the_device_and_the_memory_of_the_environment() {
    let (output, _) = summary("model", &[("CURIUM_SIM_DEVICE_MODEL", "A100"), ("CURIUM_SIM_MEMORY", "64M")]);
    assert!(assert_reports_saxpy(&output).contains("A100 model"));
    let (output, _) = summary("little", &[("CURIUM_SIM_MEMORY", "1")]);
    assert_reports_error(&output);
    let (output, _) = summary("without", &[("CURIUM_SIM_DEVICES", "0")]);
    assert!(assert_reports_error(&output).contains("NO_DEVICE"));
}

#[test]
fn variable_that_makes_no_sense_is_named_on_stderr() {
    let (output, text) = summary("nonsense", &[("CURIUM_SIM_FAULTS", "cuInit@0=1")]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("CURIUM_SIM_FAULTS is `cuInit@0=1`"), "{error}");
    assert_eq!(text, "");
}

#[test]
fn program_leaves_a_trace_of_its_calls_where_the_environment_says() {
    let folder = folder("trace");
    for variable in ["CURIUM_SIM_TRACE", "CURIUM_TRACE"] {
        let path = folder.join(variable);
        let _ = std::fs::remove_file(&path);
        // The second program adds to the file of the first.
        for _ in 0..2 {
            assert_reports_saxpy(&report(&[("CURIUM_DRIVER_PATH", &SIMULATOR), (variable, &path)]));
        }
        let text = std::fs::read_to_string(&path).expect("the program wrote a trace");
        let events = text.strip_suffix(",\n").map(|list| format!("{list}\n]")).expect("each event ends in a comma");
        let events: Vec<serde_json::Value> = serde_json::from_str(&events).expect("the trace is a list of events");
        let of = |name: &str| events.iter().filter(|event| event["name"] == name).count();
        assert!(of("cuInit") >= 2 && of("cuLaunchKernel") >= 2 && of("cuMemAllocAsync") >= 2, "{variable}: {text}");
        let processes: std::collections::BTreeSet<_> =
            events.iter().filter_map(|event| event["pid"].as_u64()).collect();
        assert_eq!(processes.len(), 2, "{variable}");
    }
}
