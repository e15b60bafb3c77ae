//! Measures what a trace costs a program that only launches kernels, beside CUPTI with handlers
//! that discard its records.
//!
//! ```text
//! cargo bench -p curium-tests --bench trace [-- LAUNCHES]
//! ```
//!
//! Each line is the median of several rounds, which alternate, so that a change of the clock rate
//! affects all of them. The difference of a line of `Trace` and the line of CUPTI with the same
//! records is what Curium adds. CUPTI stays attached to the process once it was used, so the first
//! line is measured before.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose
//! times are not those of hardware. On a GPU, a last trace with a copy, a graph and two streams
//! shows the recorded operations.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::ptr;
use std::time::{Duration, Instant};

use curium_diagnostics::{Cupti, Trace, TraceActivities, TraceOptions};
use curium_driver::sys::cupti::{
    CUcontext, CUpti_ActivityAttribute, CUpti_ActivityKind, CUptiResult,
};
use curium_driver::{Driver, Graph, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{Samples, uses_cuda};
use parking_lot::Mutex;

/// A kernel that does nothing.
const PTX: &str = ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";

/// The number of rounds of each measurement.
const ROUNDS: usize = 11;

/// The size in bytes of a buffer for records, as in a trace: CUPTI may return a buffer to handlers
/// that were registered later.
const BUFFER_BYTES: usize = 4 << 20;

/// The kinds of records that a trace contains.
const TRACE_KINDS: &[CUpti_ActivityKind] = &[
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
];

/// The kind of kernels, which may run concurrently.
const KERNELS: &[CUpti_ActivityKind] = &[CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL];

/// The kinds of kernels and of host calls.
const KERNELS_AND_CALLS: &[CUpti_ActivityKind] = &[
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER,
];

/// The recording that is measured.
#[derive(Clone, Copy)]
enum Setting {
    /// Nothing is recorded.
    None,
    /// CUPTI alone records these kinds.
    Cupti {
        kinds: &'static [CUpti_ActivityKind],
        /// Buffers are passed to CUPTI with zeros, instead of being cleared by it.
        zeroed: bool,
    },
    /// A trace of device operations, without calls.
    Operations(TraceActivities),
    /// A trace of calls, without device operations.
    Calls,
    /// A trace of calls and device operations.
    Both,
}

const SETTINGS: &[(&str, Setting)] = &[
    ("nothing", Setting::None),
    (
        "CUPTI: kernels",
        Setting::Cupti {
            kinds: KERNELS,
            zeroed: false,
        },
    ),
    (
        "CUPTI: kernels, buffers with zeros",
        Setting::Cupti {
            kinds: KERNELS,
            zeroed: true,
        },
    ),
    (
        "CUPTI: kinds of a trace, buffers with zeros",
        Setting::Cupti {
            kinds: TRACE_KINDS,
            zeroed: true,
        },
    ),
    (
        "CUPTI: kernels and driver calls",
        Setting::Cupti {
            kinds: KERNELS_AND_CALLS,
            zeroed: true,
        },
    ),
    (
        "Trace: kernels",
        Setting::Operations(TraceActivities::KERNELS),
    ),
    (
        "Trace: device operations",
        Setting::Operations(TraceActivities::all()),
    ),
    ("Trace: calls", Setting::Calls),
    ("Trace: calls and device operations", Setting::Both),
];

/// Buffers for CUPTI alone.
static BUFFERS: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes `--bench`.
    let launches = std::env::args().skip(1).find(|text| text != "--bench");
    let default_launches = if uses_cuda() { 20_000 } else { 200 };
    let launches = launches.map_or(Ok(default_launches), |text| text.parse())?;
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        let simulator = Simulator::new(Config::new())?;
        // SAFETY: the functions are the simulator's, which the driver keeps.
        unsafe { Driver::from_api_with_owner(simulator.api(), simulator) }?
    };
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let nothing = Library::from_ptx(&driver, PTX)?.kernel::<()>("nothing")?;
    let program = Program {
        stream,
        nothing,
        launches,
    };
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let time = program.run()?;
        // The first round loads the kernel.
        if round > 0 {
            times.push(time);
        }
    }
    let base = print("nothing, before CUPTI is attached", &times, launches, None);
    let cupti = if uses_cuda() {
        Cupti::load()?
    } else {
        curium_sim_libraries::cupti()
    };
    println!("{cupti:?}, {}", driver.device(0)?.name()?);
    let mut times = vec![Vec::new(); SETTINGS.len()];
    for round in 0..=ROUNDS {
        for ((_, setting), times) in SETTINGS.iter().zip(&mut times) {
            let time = program.measure(*setting, &cupti)?;
            // The first round attaches CUPTI.
            if round > 0 {
                times.push(time);
            }
        }
    }
    for ((name, _), times) in SETTINGS.iter().zip(&times) {
        print(name, times, launches, Some(base));
    }
    if uses_cuda() {
        program.show(&cupti)?;
    }
    Ok(())
}

/// Prints the time of a launch, and the overhead compared to `base`. Returns the median in
/// nanoseconds.
fn print(name: &str, times: &[Duration], launches: u32, base: Option<f64>) -> f64 {
    let samples: Samples = times
        .iter()
        .map(|time| time.as_secs_f64() * 1e9 / f64::from(launches))
        .collect();
    let median = samples.median();
    let overhead = (median / base.unwrap_or(median) - 1.0) * 100.0;
    println!("{name:45} {samples} per launch, {overhead:+6.1} %");
    median
}

/// A program that launches kernels.
struct Program {
    stream: Stream,
    nothing: Kernel<()>,
    launches: u32,
}

impl Program {
    /// Returns the time of the launches and of the wait for them, without the end of the recording.
    fn measure(&self, setting: Setting, cupti: &Cupti) -> Result<Duration, Box<dyn Error>> {
        let options = TraceOptions::new().with_activities(cupti);
        let options = match setting {
            Setting::None => return self.run(),
            Setting::Cupti { kinds, zeroed } => {
                let alone = CuptiAlone::start(cupti, kinds, zeroed)?;
                let time = self.run()?;
                alone.finish()?;
                return Ok(time);
            }
            Setting::Operations(kinds) => options.without_calls().with_activity_kinds(kinds),
            Setting::Calls => TraceOptions::new(),
            Setting::Both => options,
        };
        let trace = Trace::with_options(options)?;
        let time = self.run()?;
        drop(trace.finish());
        Ok(time)
    }

    fn run(&self) -> Result<Duration, Box<dyn Error>> {
        let start = Instant::now();
        for _ in 0..self.launches {
            self.launch(&self.stream)?;
        }
        self.stream.synchronize()?;
        Ok(start.elapsed())
    }

    fn launch(&self, stream: &Stream) -> curium_driver::Result<()> {
        // SAFETY: the kernel accesses no memory.
        unsafe { self.nothing.launch(stream, LaunchConfig::new(1, 32), ()) }
    }

    /// Prints the operations of a small program.
    fn show(&self, cupti: &Cupti) -> Result<(), Box<dyn Error>> {
        let stream = &self.stream;
        let trace = Trace::with_options(TraceOptions::new().with_activities(cupti))?;
        let buffer = DeviceBuffer::from_slice(stream, &[1_u32; 1 << 20])?;
        let other = stream.context().stream()?;
        let mut copy = DeviceBuffer::<u32>::zeroed(&other, 1 << 20)?;
        copy.copy_from_device(&buffer)?;
        let graph = Graph::capture(stream.context(), |stream| {
            self.launch(stream)?;
            self.launch(stream)
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
                item.start,
                item.duration,
                item.kind,
                item.row,
                item.name,
                item.bytes,
                item.graph_node
            );
        }
        println!(
            "dropped {}, lost {}",
            timeline.work_dropped(),
            timeline.work_lost()
        );
        Ok(())
    }
}

/// CUPTI with handlers that discard its records, as the shortest program in C would use it.
struct CuptiAlone<'a> {
    cupti: &'a Cupti,
    enabled: Vec<CUpti_ActivityKind>,
}

impl<'a> CuptiAlone<'a> {
    fn start(
        cupti: &'a Cupti,
        kinds: &[CUpti_ActivityKind],
        zeroed: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let api = cupti.api();
        let set_attribute = api.cuptiActivitySetAttribute;
        if let Some(set_attribute) = set_attribute {
            let mut size = 1;
            let mut value = u8::from(zeroed);
            // SAFETY: the attribute is a byte.
            let _ = unsafe {
                set_attribute(
                    CUpti_ActivityAttribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
                    &raw mut size,
                    (&raw mut value).cast(),
                )
            };
        }
        let register = api
            .cuptiActivityRegisterCallbacks
            .ok_or("no `cuptiActivityRegisterCallbacks`")?;
        // SAFETY: the functions have the signatures of callbacks.
        check(unsafe { register(Some(request_buffer), Some(complete_buffer)) })?;
        let enable = api.cuptiActivityEnable.ok_or("no `cuptiActivityEnable`")?;
        let mut enabled = Vec::new();
        for &kind in kinds {
            // SAFETY: the kind is a valid value. The simulator has no records of some kinds.
            if unsafe { enable(kind) } == CUptiResult::CUPTI_SUCCESS {
                enabled.push(kind);
            }
        }
        Ok(Self { cupti, enabled })
    }

    fn finish(self) -> Result<(), Box<dyn Error>> {
        let api = self.cupti.api();
        let disable = api
            .cuptiActivityDisable
            .ok_or("no `cuptiActivityDisable`")?;
        for kind in self.enabled {
            // SAFETY: the kind was enabled.
            check(unsafe { disable(kind) })?;
        }
        let flush = api
            .cuptiActivityFlushAll
            .ok_or("no `cuptiActivityFlushAll`")?;
        // SAFETY: the call takes no pointer.
        check(unsafe { flush(1) })
    }
}

fn check(result: CUptiResult) -> Result<(), Box<dyn Error>> {
    match result {
        CUptiResult::CUPTI_SUCCESS => Ok(()),
        result => Err(format!("{result:?}").into()),
    }
}

unsafe extern "C" fn request_buffer(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let memory = BUFFERS
        .lock()
        .pop()
        .unwrap_or_else(|| vec![0; BUFFER_BYTES / 8].into_boxed_slice());
    // SAFETY: CUPTI passes a pointer that is valid for writes.
    unsafe { buffer.write(Box::into_raw(memory).cast()) };
    // SAFETY: CUPTI passes a pointer that is valid for writes.
    unsafe { size.write(BUFFER_BYTES) };
    // SAFETY: CUPTI passes a pointer that is valid for writes. 0 stands for no limit.
    unsafe { max_records.write(0) };
}

unsafe extern "C" fn complete_buffer(
    _: CUcontext,
    _: u32,
    buffer: *mut u8,
    _: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    let words = ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), BUFFER_BYTES / 8);
    // SAFETY: the buffer was made by `request_buffer` with this size, and CUPTI no longer uses it.
    let mut memory = unsafe { Box::from_raw(words) };
    memory[..valid.div_ceil(8)].fill(0);
    BUFFERS.lock().push(memory);
}
