//! [`Trace`]: host calls and device work on one timeline.

use std::thread;
use std::time::{Duration, Instant};

use curium_diagnostics::{
    Cupti, Timeline, Trace, TraceActivities, TraceError, TraceItem, TraceItemKind, TraceOptions,
    TraceRow,
};
use curium_driver::{
    CudaError as _, Error, Function, Graph, Kernel, LaunchConfig, Library, Result, Stream,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, in_new_process, kernels, on_driver, simulator_test,
    skip, uses_cuda,
};
use serde_json::Value;

/// Ends a trace, and returns its JSON.
fn to_json(trace: Trace) -> TestResult<Value> {
    let mut json = Vec::new();
    trace.finish().write(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Returns the complete events of a category.
fn events<'a>(trace: &'a Value, category: &str) -> TestResult<Vec<&'a Value>> {
    let events = trace["traceEvents"]
        .as_array()
        .ok_or("no `traceEvents` array")?;
    Ok(events
        .iter()
        .filter(|event| event["ph"] == "X" && event["cat"] == category)
        .collect())
}

/// Returns the calls of this thread: other tests run concurrently in the same process. A metadata
/// event gives the name of each thread.
fn thread_calls(trace: &Value) -> TestResult<Vec<&Value>> {
    let name = thread::current().name().ok_or("unnamed thread")?.to_owned();
    let events = trace["traceEvents"]
        .as_array()
        .ok_or("no `traceEvents` array")?;
    let metadata = events.iter().find(|event| {
        event["name"] == "thread_name" && event["pid"] == 1 && event["args"]["name"] == *name
    });
    let thread = &metadata.ok_or("no `thread_name` event of this thread")?["tid"];
    Ok(self::events(trace, "call")?
        .into_iter()
        .filter(|call| call["tid"] == *thread)
        .collect())
}

/// Returns the start and the end of an event in microseconds.
fn span(event: &Value) -> TestResult<(f64, f64)> {
    let start = event["ts"].as_f64().ok_or("no `ts` number")?;
    let duration = event["dur"].as_f64().ok_or("no `dur` number")?;
    Ok((start, start + duration))
}

/// Returns the span of the last call of a function.
fn last_span(calls: &[&Value], function: &str) -> TestResult<(f64, f64)> {
    let call = calls.iter().rev().find(|call| call["name"] == function);
    span(call.ok_or_else(|| format!("{function} was called"))?)
}

#[driver_test]
fn trace_records_host_calls_with_codes(test: &TestDriver) -> TestResult {
    let started = Instant::now();
    let trace = Trace::start();
    test.driver()
        .device(1_000)
        .expect_err("there are not that many devices");
    let trace = to_json(trace)?;
    let call = events(&trace, "call")?.into_iter().find(|call| {
        call["name"] == "cuDeviceGet"
            && call["args"]["code"] == CUresult::CUDA_ERROR_INVALID_DEVICE.0
    });
    let (begin, end) = span(call.ok_or("no failed `cuDeviceGet` event")?)?;
    assert!(begin >= 0.0, "{begin}");
    let elapsed = started.elapsed().as_secs_f64() * 1e6;
    assert!(end <= elapsed, "{begin} to {end}, after {elapsed}");
    Ok(())
}

/// The duration of the gate below in microseconds. A simulator may delay the first event, but only
/// for a part of the 60 ms.
const MIN_GATE_DURATION: f64 = 19_000.0;

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
    assert!(
        end - begin >= MIN_GATE_DURATION,
        "the gate was closed for 60 ms: {begin} to {end}"
    );
    let calls = thread_calls(&trace)?;
    let (launched, _) = last_span(&calls, "cuLaunchHostFunc")?;
    let (_, waited) = last_span(&calls, "cuStreamSynchronize")?;
    // The clocks are correlated with an error of the duration of an event, which is much smaller
    // than this tolerance.
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
    let names = trace["traceEvents"]
        .as_array()
        .ok_or("no `traceEvents` array")?;
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
    let trace = Trace::with_options(TraceOptions::new().with_capacity(1))?;
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

fn cupti() -> TestResult<Cupti> {
    if uses_cuda() {
        Ok(Cupti::load()?)
    } else {
        Ok(curium_sim_libraries::cupti())
    }
}

/// Traces the operations of the devices during `work`, the body of the test called `name`. CUPTI
/// records the whole process, which therefore runs no other test.
fn with_activities(
    work: impl FnOnce(&TestDriver) -> TestResult,
    check: impl FnOnce(&TestDriver, &Timeline) -> TestResult,
) -> TestResult {
    in_new_process(|| {
        on_driver(|test| {
            let trace = Trace::with_options(TraceOptions::new().with_activities(&cupti()?))?;
            work(test)?;
            check(test, &trace.finish())
        })
    })
}

fn items_with_kind(timeline: &Timeline, kind: TraceItemKind) -> Vec<&TraceItem> {
    let items = timeline.items().iter();
    items.filter(|item| item.kind == kind).collect()
}

type Fill = (&'static mut [u32], u32, u32);

fn fill(test: &TestDriver) -> TestResult<Kernel<Fill>> {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    Ok(library.kernel("fill")?)
}

fn launch(kernel: &Kernel<Fill>, stream: &Stream, buffer: &mut DeviceBuffer<u32>) -> TestResult {
    let len = u32::try_from(buffer.len())?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe {
        kernel.launch(
            stream,
            LaunchConfig::for_elements(buffer.len()),
            (buffer, 5, len),
        )
    }?;
    Ok(())
}

#[test]
fn each_kind_of_operation_is_recorded() -> TestResult {
    with_activities(
        |test| {
            let stream = test.stream();
            let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u32; 1_000])?;
            launch(&fill(test)?, &stream, &mut buffer)?;
            assert_eq!(buffer.to_vec()?, [5; 1_000]);
            drop(DeviceBuffer::<u32>::zeroed(&stream, 500)?);
            drop(buffer);
            Ok(stream.synchronize()?)
        },
        |_, timeline| {
            let kernels = items_with_kind(timeline, TraceItemKind::Kernel);
            assert_eq!(kernels.len(), 1, "{kernels:?}");
            assert_eq!(&*kernels[0].name, "fill");
            assert_eq!(kernels[0].graph_node, None);
            let copies = items_with_kind(timeline, TraceItemKind::Copy);
            let names: Vec<_> = copies.iter().map(|copy| &*copy.name).collect();
            assert_eq!(names, ["copy host to device", "copy device to host"]);
            assert_eq!(copies[0].bytes, Some(4_000));
            let sets = items_with_kind(timeline, TraceItemKind::Memset);
            assert_eq!(sets.len(), 1, "{sets:?}");
            assert_eq!(sets[0].bytes, Some(2_000));
            for kind in [TraceItemKind::Allocation, TraceItemKind::Free] {
                let bytes: Vec<_> = items_with_kind(timeline, kind)
                    .iter()
                    .filter_map(|item| item.bytes)
                    .collect();
                assert!(
                    bytes.contains(&4_000) && bytes.contains(&2_000),
                    "{kind}: {bytes:?}"
                );
            }
            let calls = items_with_kind(timeline, TraceItemKind::Call);
            assert!(calls.iter().any(|call| &*call.name == "cuLaunchKernel"));
            assert_eq!(timeline.work_lost(), 0);
            Ok(())
        },
    )
}

/// A kernel runs after its launch began, and before the wait for it ended, on one clock.
#[test]
fn activities_are_ordered_with_the_calls() -> TestResult {
    with_activities(
        |test| {
            let stream = test.stream();
            let kernel = fill(test)?;
            let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
            stream.synchronize()?;
            for _ in 0..3 {
                launch(&kernel, &stream, &mut buffer)?;
            }
            Ok(stream.synchronize()?)
        },
        |_, timeline| {
            let starts: Vec<_> = timeline.items().iter().map(|item| item.start).collect();
            assert!(starts.is_sorted());
            let calls = items_with_kind(timeline, TraceItemKind::Call);
            let launches: Vec<_> = calls
                .iter()
                .filter(|call| call.name.starts_with("cuLaunchKernel"))
                .collect();
            let kernels = items_with_kind(timeline, TraceItemKind::Kernel);
            assert_eq!(kernels.len(), 3);
            assert_eq!(launches.len(), 3);
            // The clocks of the host and of the device agree up to some microseconds.
            let tolerance = Duration::from_millis(1);
            for (launch, kernel) in launches.iter().zip(&kernels) {
                assert!(
                    kernel.start + tolerance >= launch.start,
                    "{launch:?} {kernel:?}"
                );
            }
            for [earlier, later] in kernels.array_windows() {
                assert!(
                    earlier.end() <= later.start + tolerance,
                    "{earlier:?} {later:?}"
                );
            }
            let wait = calls
                .iter()
                .rfind(|call| &*call.name == "cuStreamSynchronize");
            let wait = wait.ok_or("no `cuStreamSynchronize` item")?;
            assert!(kernels[2].end() <= wait.end() + tolerance);
            Ok(())
        },
    )
}

#[test]
fn kernels_of_a_graph_are_recorded() -> TestResult {
    with_activities(
        |test| {
            let stream = test.stream();
            let kernel = fill(test)?;
            let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
            let graph = Graph::capture(&test.context(), |stream| {
                for _ in 0..2 {
                    // SAFETY: `fill` writes exactly the words of the buffer.
                    unsafe {
                        kernel.launch(stream, LaunchConfig::for_elements(64), (&mut buffer, 5, 64))
                    }?;
                }
                Ok::<_, Error>(())
            })?;
            let mut executable = graph.instantiate()?;
            for _ in 0..3 {
                executable.launch(&stream)?;
            }
            Ok(stream.synchronize()?)
        },
        |_, timeline| {
            let kernels = items_with_kind(timeline, TraceItemKind::Kernel);
            assert_eq!(kernels.len(), 6, "{kernels:?}");
            let nodes: std::collections::BTreeSet<_> = kernels
                .iter()
                .filter_map(|kernel| kernel.graph_node)
                .collect();
            assert_eq!(nodes.len(), 2, "{nodes:?}");
            let aggregates = timeline.aggregate();
            let fill = aggregates
                .iter()
                .find(|aggregate| &*aggregate.name == "fill");
            let fill = fill.ok_or("no aggregate of `fill`")?;
            assert_eq!(fill.count, 6);
            assert!(fill.min * 6 <= fill.total, "{fill:?}");
            assert!(fill.total <= fill.max * 6, "{fill:?}");
            Ok(())
        },
    )
}

/// Hazard tracking makes the second stream wait for the first.
#[test]
fn two_streams_have_rows_and_hazard_waits() -> TestResult {
    with_activities(
        |test| {
            let streams = [test.stream(), test.stream()];
            let kernel = fill(test)?;
            let mut buffer = DeviceBuffer::zeroed(&streams[0], 64)?;
            let gate = Gate::on(&streams[0]);
            for stream in &streams {
                launch(&kernel, stream, &mut buffer)?;
            }
            gate.open();
            for stream in &streams {
                stream.synchronize()?;
            }
            Ok(())
        },
        |_, timeline| {
            let kernels = items_with_kind(timeline, TraceItemKind::Kernel);
            assert_eq!(kernels.len(), 2, "{kernels:?}");
            let [first, second] = [kernels[0].row, kernels[1].row];
            assert_ne!(first, second);
            let hazards = items_with_kind(timeline, TraceItemKind::HazardWait);
            let hazard = hazards.first().ok_or("no hazard wait")?;
            assert_eq!(&*hazard.name, "WAW hazard");
            assert_eq!(hazard.row, second);
            assert_eq!(hazard.bytes, Some(256));
            let waits = items_with_kind(timeline, TraceItemKind::Wait);
            assert!(waits.iter().any(|wait| wait.row == second), "{waits:?}");
            assert!(kernels[0].end() <= kernels[1].start + Duration::from_millis(1));
            Ok(())
        },
    )
}

#[test]
fn work_and_activities_share_the_row_of_a_stream() -> TestResult {
    in_new_process(|| {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let kernel = fill(test)?;
            let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
            let options = TraceOptions::new()
                .with_activities(&cupti()?)
                .without_calls();
            let trace = Trace::with_options(options)?;
            let result = trace.on_stream(&stream, "step", || {
                Ok(launch(&kernel, &stream, &mut buffer))
            })?;
            result?;
            stream.synchronize()?;
            let timeline = trace.finish();
            assert!(items_with_kind(&timeline, TraceItemKind::Call).is_empty());
            let work = items_with_kind(&timeline, TraceItemKind::Work);
            let kernels = items_with_kind(&timeline, TraceItemKind::Kernel);
            assert_eq!(work.len(), 1);
            assert_eq!(kernels.len(), 1);
            assert_eq!(work[0].row, kernels[0].row);
            assert!(matches!(work[0].row, TraceRow::Stream { device: 0, .. }));
            Ok(())
        })
    })
}

/// Only the selected operations are recorded.
#[test]
fn activity_kinds_select_operations() -> TestResult {
    in_new_process(|| {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let kernel = fill(test)?;
            for (kinds, recorded) in [
                (TraceActivities::KERNELS, vec![TraceItemKind::Kernel]),
                (
                    TraceActivities::COPIES | TraceActivities::MEMSETS,
                    vec![TraceItemKind::Copy, TraceItemKind::Memset],
                ),
                (TraceActivities::empty(), vec![]),
            ] {
                let options = TraceOptions::new()
                    .with_activities(&cupti()?)
                    .with_activity_kinds(kinds)
                    .without_calls();
                let trace = Trace::with_options(options)?;
                let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
                launch(&kernel, &stream, &mut buffer)?;
                assert_eq!(buffer.to_vec()?, [5; 64]);
                let timeline = trace.finish();
                for kind in [
                    TraceItemKind::Kernel,
                    TraceItemKind::Copy,
                    TraceItemKind::Memset,
                    TraceItemKind::Allocation,
                ] {
                    let is_recorded = !items_with_kind(&timeline, kind).is_empty();
                    assert_eq!(is_recorded, recorded.contains(&kind), "{kind} in {kinds:?}");
                }
            }
            Ok(())
        })
    })
}

/// A trace reuses the buffers of the previous one and zeroes them: the simulated CUPTI drops
/// records in buffers that are not zero.
#[test]
fn consecutive_traces_lose_no_record() -> TestResult {
    in_new_process(|| {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let kernel = fill(test)?;
            let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
            for _ in 0..5 {
                let trace = Trace::with_options(TraceOptions::new().with_activities(&cupti()?))?;
                for _ in 0..10 {
                    launch(&kernel, &stream, &mut buffer)?;
                }
                stream.synchronize()?;
                let timeline = trace.finish();
                assert_eq!(items_with_kind(&timeline, TraceItemKind::Kernel).len(), 10);
                assert_eq!(timeline.work_dropped(), 0);
            }
            Ok(())
        })
    })
}

#[test]
fn second_trace_of_activities_is_refused() -> TestResult {
    in_new_process(|| {
        let cupti = cupti()?;
        let options = TraceOptions::new().with_activities(&cupti);
        let trace = Trace::with_options(options.clone())?;
        let error = Trace::with_options(options.clone()).expect_err("one trace records activities");
        assert!(matches!(error, TraceError::Activities(_)), "{error}");
        assert!(
            error.to_string().starts_with("Trace::with_options: "),
            "{error}"
        );
        drop(trace.finish());
        drop(Trace::with_options(options)?.finish());
        Ok(())
    })
}

/// The client of another profiler is named, with the advice to run without it.
#[test]
fn attached_profiler_is_named() -> TestResult {
    in_new_process(|| {
        use curium_sys::cupti::{CUpti_CallbackDomain, CUpti_CallbackId};

        unsafe extern "C" fn ignore(
            _: *mut std::ffi::c_void,
            _: CUpti_CallbackDomain,
            _: CUpti_CallbackId,
            _: *const std::ffi::c_void,
        ) {
        }
        let cupti = cupti()?;
        let mut subscriber = std::ptr::null_mut();
        let subscribe = cupti.api().cuptiSubscribe.ok_or("no `cuptiSubscribe`")?;
        // SAFETY: `subscriber` is valid for writes, and the callback ignores its arguments.
        let code = unsafe { subscribe(&raw mut subscriber, Some(ignore), std::ptr::null_mut()) };
        assert_eq!(code.0, 0);
        let error = Trace::with_options(TraceOptions::new().with_activities(&cupti))
            .expect_err("one client at a time");
        let message = error.to_string();
        assert!(
            message.contains("another profiler is attached"),
            "{message}"
        );
        assert_eq!(error.class(), curium_driver::ErrorClass::Usage);
        Ok(())
    })
}

#[test]
fn missing_cupti_is_an_error_with_advice() -> TestResult {
    let absent = std::path::Path::new("/absent/libcupti.so.13");
    // SAFETY: there is no such library.
    let error = unsafe { Cupti::load_from(absent) }.expect_err("the file is absent");
    let message = TraceError::from(error).to_string();
    assert!(
        message.contains("/absent/libcupti.so.13") && message.contains("CUPTI"),
        "{message}"
    );
    Ok(())
}

/// CUPTI of CUDA 11.7 reports 17, and its records lack fields.
#[test]
#[cfg(target_os = "linux")]
fn cupti_that_is_too_old_is_rejected() -> TestResult {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let source = "int cuptiGetVersion(unsigned *version) { *version = 17; return 0; }\n\
                  int cuptiActivityRegisterCallbacks(void) { return 0; }\n";
    let library = std::env::temp_dir().join(format!("libcupti-{}.so", std::process::id()));
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-x", "c", "-", "-o"])
        .arg(&library)
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut compiler) = compiler else {
        return skip("no C compiler `cc`");
    };
    let mut input = compiler.stdin.take().ok_or("stdin is not piped")?;
    input.write_all(source.as_bytes())?;
    drop(input);
    assert!(compiler.wait()?.success());
    // SAFETY: the library has no initializer, and its functions have the signatures of CUPTI's as
    // far as they are called.
    let result = unsafe { Cupti::load_from(&library) };
    std::fs::remove_file(&library)?;
    let message = result.expect_err("it is too old").to_string();
    assert!(
        message.contains("too old (CUDA 11.7; CUDA 11.8 or newer is required)"),
        "{message}"
    );
    Ok(())
}

/// The pictures are well-formed, and contain the names and the rows.
#[driver_test]
fn pictures_contain_the_names(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let trace = Trace::start();
    trace.on_stream(&stream, "step <1> & \"more\"", || Ok(()))?;
    let timeline = trace.finish();
    for picture in [timeline.to_svg(), timeline.to_html()] {
        assert!(
            picture.contains("work: step &lt;1&gt; &amp; &quot;more&quot;"),
            "{picture}"
        );
        assert!(picture.contains("device 0, stream "));
        assert_well_formed(&picture)?;
    }
    assert!(timeline.to_html().contains("<td>step &lt;1&gt;"));
    Ok(())
}

/// Checks that each element is closed in the order of its start.
fn assert_well_formed(text: &str) -> TestResult {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').ok_or("no end of the tag")?;
        let name = tag.split_whitespace().next().ok_or("no name in the tag")?;
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !name.starts_with('!') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    Ok(())
}

pub(crate) mod operations {
    use curium_diagnostics::Trace;

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[("Trace::on_stream and Timeline::write", |fixture| {
        let trace = Trace::start();
        trace.on_stream(&fixture.stream, "nothing", || Ok(()))?;
        trace
            .finish()
            .write(std::io::sink())
            .expect("a sink accepts everything");
        made(())
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
