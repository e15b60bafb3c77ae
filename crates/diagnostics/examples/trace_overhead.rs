//! Measures what a trace costs a program that only launches kernels.
//!
//! ```text
//! cargo run --release -p curium-diagnostics --example trace_overhead [LAUNCHES]
//! ```
//!
//! Each line is the median of several rounds on this machine's GPU. Rounds alternate, so that a change of the clock rate affects all of them.
//! A last trace with a copy, a graph and two streams shows the recorded operations.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use curium_diagnostics::{Cupti, Trace, TraceOptions};
use curium_driver::{Driver, Graph, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;

/// A kernel that does nothing.
const PTX: &str = ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";

/// The number of rounds of each measurement.
const ROUNDS: usize = 11;

/// The traces that are compared.
const SETTINGS: [(&str, Setting); 4] = [
    ("no trace", Setting::None),
    ("calls", Setting::Calls),
    ("device operations", Setting::Activities),
    ("calls and device operations", Setting::Both),
];

#[derive(Clone, Copy)]
enum Setting {
    None,
    Calls,
    Activities,
    Both,
}

fn main() -> Result<(), Box<dyn Error>> {
    let launches = env::args().nth(1).map_or(Ok(20_000), |text| text.parse())?;
    let driver = Driver::load()?;
    let cupti = Cupti::load()?;
    println!("{cupti:?}, {}", driver.device(0)?.name()?);
    let context = driver.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let nothing = Library::from_ptx(&driver, PTX)?.kernel::<()>("nothing")?;
    let mut times = [(); SETTINGS.len()].map(|()| Vec::new());
    for round in 0..=ROUNDS {
        for ((_, setting), times) in SETTINGS.iter().zip(&mut times) {
            let time = measure(*setting, &cupti, &stream, &nothing, launches)?;
            // The first round loads the kernel and starts CUPTI.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let mut base = None;
    for ((name, _), times) in SETTINGS.iter().zip(&mut times) {
        times.sort_unstable();
        let nanoseconds = times[times.len() / 2].as_secs_f64() * 1e9 / f64::from(launches);
        let base = *base.get_or_insert(nanoseconds);
        let overhead = (nanoseconds / base - 1.0) * 100.0;
        println!("{name:30} {nanoseconds:8.0} ns per launch, {overhead:+6.1} %");
    }
    show(&cupti, &stream, &nothing)
}

/// Returns the time of the launches and of the wait for them.
fn measure(
    setting: Setting,
    cupti: &Cupti,
    stream: &Stream,
    nothing: &Kernel<()>,
    launches: u32,
) -> Result<Duration, Box<dyn Error>> {
    let activities = TraceOptions::new().with_activities(cupti);
    let trace = match setting {
        Setting::None => None,
        Setting::Calls => Some(Trace::start()),
        Setting::Activities => Some(Trace::with_options(activities.without_calls())?),
        Setting::Both => Some(Trace::with_options(activities)?),
    };
    let start = Instant::now();
    for _ in 0..launches {
        launch(nothing, stream)?;
    }
    stream.synchronize()?;
    let time = start.elapsed();
    if let Some(trace) = trace {
        drop(trace.finish());
    }
    Ok(time)
}

fn launch(nothing: &Kernel<()>, stream: &Stream) -> curium_driver::Result<()> {
    // SAFETY: the kernel accesses no memory.
    unsafe { nothing.launch(stream, LaunchConfig::new(1, 32), ()) }
}

/// Prints the operations of a small program.
fn show(cupti: &Cupti, stream: &Stream, nothing: &Kernel<()>) -> Result<(), Box<dyn Error>> {
    let trace = Trace::with_options(TraceOptions::new().with_activities(cupti))?;
    let buffer = DeviceBuffer::from_slice(stream, &[1_u32; 1 << 20])?;
    let other = stream.context().stream()?;
    let mut copy = DeviceBuffer::<u32>::zeroed(&other, 1 << 20)?;
    copy.copy_from_device(&buffer)?;
    let graph = Graph::capture(stream.context(), |stream| {
        launch(nothing, stream)?;
        launch(nothing, stream)
    })?;
    let mut executable = graph.instantiate()?;
    trace.on_stream(stream, "three launches of a graph", || {
        for _ in 0..3 {
            executable.launch(stream)?;
        }
        Ok(())
    })?;
    assert_eq!(copy.to_vec()?.len(), 1 << 20);
    drop(copy);
    drop(buffer);
    stream.synchronize()?;
    other.synchronize()?;
    let timeline = trace.finish();
    for item in timeline.items() {
        println!(
            "{:12.3?} {:12.3?} {:12} {:?} {} {:?} {:?}",
            item.start, item.duration, item.kind, item.row, item.name, item.bytes, item.graph_node
        );
    }
    println!(
        "dropped {}, lost {}",
        timeline.work_dropped(),
        timeline.work_lost()
    );
    std::fs::write("timeline.html", timeline.to_html())?;
    Ok(())
}
