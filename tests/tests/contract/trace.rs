//! [`Trace`]: host calls and device work on one timeline.

use std::thread;
use std::time::Duration;

use curium_diagnostics::Trace;
use curium_driver::{Function, Result};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test};
use serde_json::Value;

/// Ends a trace, and returns its JSON.
fn to_json(trace: Trace) -> TestResult<Value> {
    let mut json = Vec::new();
    trace.write(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Returns the complete events of a category.
fn events<'a>(trace: &'a Value, category: &str) -> TestResult<Vec<&'a Value>> {
    let events = trace["traceEvents"].as_array().ok_or("there are events")?;
    Ok(events
        .iter()
        .filter(|event| event["ph"] == "X" && event["cat"] == category)
        .collect())
}

/// Returns the calls of this thread: other tests run concurrently in the same process. A metadata event gives the name of each thread.
fn thread_calls(trace: &Value) -> TestResult<Vec<&Value>> {
    let name = thread::current()
        .name()
        .ok_or("the harness names its threads")?
        .to_owned();
    let events = trace["traceEvents"].as_array().ok_or("there are events")?;
    let metadata = events.iter().find(|event| {
        event["name"] == "thread_name" && event["pid"] == 1 && event["args"]["name"] == *name
    });
    let thread = &metadata.ok_or("the thread has a name")?["tid"];
    Ok(self::events(trace, "call")?
        .into_iter()
        .filter(|call| call["tid"] == *thread)
        .collect())
}

/// Returns the start and the end of an event in microseconds.
fn span(event: &Value) -> TestResult<(f64, f64)> {
    let start = event["ts"].as_f64().ok_or("an event has a time")?;
    let duration = event["dur"].as_f64().ok_or("an event has a duration")?;
    Ok((start, start + duration))
}

/// Returns the span of the last call of a function.
fn last_span(calls: &[&Value], function: &str) -> TestResult<(f64, f64)> {
    let call = calls.iter().rev().find(|call| call["name"] == function);
    span(call.ok_or_else(|| format!("{function} was called"))?)
}

#[driver_test]
fn trace_records_host_calls_with_codes(test: &TestDriver) -> TestResult {
    let trace = Trace::start();
    test.driver()
        .device(1_000)
        .expect_err("there are not that many devices");
    let trace = to_json(trace)?;
    let call = events(&trace, "call")?.into_iter().find(|call| {
        call["name"] == "cuDeviceGet"
            && call["args"]["code"] == CUresult::CUDA_ERROR_INVALID_DEVICE.0
    });
    let (begin, end) = span(call.ok_or("the call is there")?)?;
    assert!(begin >= 0.0 && end >= begin);
    Ok(())
}

/// Work of a stream is placed between its launch and its end on the host.
#[driver_test]
fn trace_places_work_between_launch_and_end(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let trace = Trace::start();
    let gate = trace.on_stream(&stream, "a \"gate\"\n", || Ok(Gate::on(&stream)))?;
    thread::sleep(Duration::from_millis(60));
    gate.open();
    stream.synchronize()?;
    let trace = to_json(trace)?;
    let work = events(&trace, "work")?;
    let [work] = work[..] else {
        panic!("one piece of work: {work:?}")
    };
    assert_eq!(work["name"], "a \"gate\"\n");
    let (begin, end) = span(work)?;
    // A simulator may delay the first event, but only for a part of the 60 ms.
    assert!(
        end - begin >= 19_000.0,
        "the gate was closed for 60 ms: {begin} to {end}"
    );
    let calls = thread_calls(&trace)?;
    let (launched, _) = last_span(&calls, "cuLaunchHostFunc")?;
    let (_, waited) = last_span(&calls, "cuStreamSynchronize")?;
    // The clocks are correlated with an error of the duration of an event, which is much smaller than this
    // tolerance.
    assert!(
        begin > launched - 10_000.0 && end < waited + 10_000.0,
        "{launched} {begin} {end} {waited}"
    );
    Ok(())
}

#[driver_test]
fn each_stream_and_thread_has_a_row_with_a_name(test: &TestDriver) -> TestResult {
    let streams = [test.stream(), test.stream()];
    let trace = Trace::start();
    for stream in &streams {
        trace.on_stream(stream, "nothing", || Ok(()))?;
    }
    let trace = to_json(trace)?;
    let rows: Vec<_> = events(&trace, "work")?
        .iter()
        .map(|work| (work["pid"].clone(), work["tid"].clone()))
        .collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].0, rows[1].0, "one device");
    assert_ne!(rows[0].1, rows[1].1, "two streams");
    let names = trace["traceEvents"].as_array().ok_or("there are events")?;
    for (process, thread) in rows {
        let has_name = names.iter().any(|event| {
            event["name"] == "thread_name" && event["pid"] == process && event["tid"] == thread
        });
        assert!(has_name, "the row has a name");
    }
    Ok(())
}

#[driver_test]
fn trace_reports_the_events_that_did_not_fit(test: &TestDriver) -> TestResult {
    let trace = Trace::with_capacity(1);
    for _ in 0..5 {
        test.driver().device_count()?;
    }
    let trace = to_json(trace)?;
    assert_eq!(events(&trace, "call")?.len(), 1);
    assert!(trace["otherData"]["calls_dropped"].as_u64() >= Some(4));
    Ok(())
}

#[simulator_test]
fn work_whose_time_is_unknown_is_counted(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let trace = Trace::start();
    trace.on_stream(&stream, "lost", || Ok(()))?;
    simulator.inject(
        Fault::on(Function::cuEventSynchronize)
            .always()
            .returns(CUresult::CUDA_ERROR_LAUNCH_FAILED),
    );
    let trace = to_json(trace)?;
    simulator.clear_faults();
    assert_eq!(events(&trace, "work")?.len(), 0);
    assert_eq!(trace["otherData"]["work_lost"], 1);
    Ok(())
}

#[driver_test]
fn trace_returns_the_error_from_its_work(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let trace = Trace::start();
    let result: Result<()> =
        trace.on_stream(&stream, "fails", || test.driver().device(1_000).map(|_| ()));
    assert_eq!(
        result.expect_err("the device is absent").function(),
        Some(Function::cuDeviceGet)
    );
    assert_eq!(events(&to_json(trace)?, "work")?.len(), 0);
    Ok(())
}

pub(crate) mod operations {
    use curium_diagnostics::Trace;

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[("Trace::on_stream and Trace::write", |fixture| {
        let trace = Trace::start();
        trace.on_stream(&fixture.stream, "nothing", || Ok(()))?;
        trace
            .write(std::io::sink())
            .expect("a sink accepts everything");
        made(())
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
