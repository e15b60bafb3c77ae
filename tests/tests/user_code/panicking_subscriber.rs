//! A subscriber of `tracing` that panics whenever it is called, on all threads of the process.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{
    CallSpans, ContextOptions, Driver, Event, EventFlags, Function, Graph, GraphCache, GraphExec,
    LeakedMemory, Stream, observe_calls,
};
use curium_memory::{CachingResource, DeviceBuffer, PinnedBuffer, PinnedFlags, UnifiedBuffer};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use parking_lot::{Mutex, MutexGuard};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The time limit of an expected event on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// `true` while the subscriber is asked whether it is interested. Otherwise it is interested, and
/// panics at each event and span.
static PANICS_EARLY: AtomicBool = AtomicBool::new(false);
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Panics in every method that `tracing` calls on behalf of the program.
struct Panicking;

fn panic_on_purpose() -> ! {
    PANICS.fetch_add(1, Ordering::Relaxed);
    panic!("this panic is part of the test")
}

impl Subscriber for Panicking {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        if PANICS_EARLY.load(Ordering::Relaxed) {
            panic_on_purpose()
        }
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // The span must exist, so that the other methods are called.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        panic_on_purpose()
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {
        panic_on_purpose()
    }

    fn event(&self, _: &tracing::Event<'_>) {
        panic_on_purpose()
    }

    fn enter(&self, _: &Id) {
        panic_on_purpose()
    }

    fn exit(&self, _: &Id) {
        panic_on_purpose()
    }

    fn try_close(&self, _: Id) -> bool {
        panic_on_purpose()
    }
}

/// Installs the subscriber in all threads. The tests run one after the other, since they count its
/// panics.
fn with_subscriber() -> MutexGuard<'static, ()> {
    static INSTALL: Once = Once::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock();
    INSTALL.call_once(|| {
        // The output of hundreds of expected panics would hide a failure.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_expected = info
                .payload()
                .downcast_ref::<&str>()
                .is_some_and(|message| message.contains("part of the test"));
            if !is_expected {
                report(info);
            }
        }));
        let installed = tracing::subscriber::set_global_default(Panicking);
        assert!(installed.is_ok(), "no other test of this program has one");
    });
    turn
}

/// Runs `action` twice: with a subscriber that panics at events and spans, and with one that panics
/// before. Fails unless it panicked both times.
fn with_panics(mut action: impl FnMut() -> TestResult) -> TestResult {
    let _turn = with_subscriber();
    for panics_early in [false, true] {
        PANICS_EARLY.store(panics_early, Ordering::Relaxed);
        let before = PANICS.load(Ordering::Relaxed);
        action()?;
        // The last panic may be on a thread of the driver.
        assert!(
            eventually(|| PANICS.load(Ordering::Relaxed) > before),
            "the subscriber was not called"
        );
    }
    Ok(())
}

fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn simulator() -> TestResult<(Simulator, Driver)> {
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    Ok((simulator, driver))
}

fn primary_stream(driver: &Driver) -> TestResult<Stream> {
    Ok(driver.device(0)?.primary_context()?.stream()?)
}

/// A value whose destructor panics.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("this panic is part of the test")
        }
    }
}

#[test]
fn panicking_futures_resolve() -> TestResult {
    with_panics(|| {
        let (_simulator, driver) = simulator()?;
        let stream = primary_stream(&driver)?;
        for _ in 0..10 {
            let future = stream
                .launch_host_function(|| std::panic::panic_any("this panic is part of the test"))?;
            let later = stream.launch_host_function(|| 7)?;
            let error = pollster::block_on(future)
                .map(|()| "")
                .expect_err("it panics");
            assert!(error.to_string().contains("part of the test"), "{error}");
            assert_eq!(pollster::block_on(later)?, 7);
        }
        pollster::block_on(stream.completion())?;
        Ok(())
    })
}

#[test]
fn host_nodes_may_panic() -> TestResult {
    with_panics(|| {
        let (_simulator, driver) = simulator()?;
        let stream = primary_stream(&driver)?;
        let mut graph = Graph::new(stream.context())?;
        let owned = PanicsWhenDropped;
        graph.add_host(&[], move || {
            let _owned = &owned;
            panic!("this panic is part of the test")
        })?;
        let mut executable = graph.instantiate()?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        drop((graph, executable));
        // The stream works on.
        pollster::block_on(stream.launch_host_function(|| ())?)?;
        Ok(())
    })
}

#[test]
fn call_spans_do_not_abort() -> TestResult {
    with_panics(|| {
        let (_simulator, driver) = simulator()?;
        let guard = observe_calls(CallSpans::new());
        let stream = primary_stream(&driver)?;
        stream.synchronize()?;
        drop(stream);
        drop(guard);
        Ok(())
    })
}

#[test]
fn observers_may_panic() -> TestResult {
    with_panics(|| {
        let (_simulator, driver) = simulator()?;
        let spans = observe_calls(CallSpans::new());
        let guard = observe_calls(|_: &curium_driver::Call<'_>| {
            std::panic::panic_any("this panic is part of the test")
        });
        let stream = primary_stream(&driver)?;
        let buffer = DeviceBuffer::from_slice(&stream, &[1, 2, 3])?;
        assert_eq!(buffer.to_vec()?, [1, 2, 3]);
        drop((buffer, stream, guard, spans));
        Ok(())
    })
}

/// Drops the result of `make` while `function` fails.
fn drop_while_failing<T>(
    function: Function,
    make: impl Fn(&Driver) -> TestResult<T>,
) -> TestResult<LeakedMemory> {
    let (simulator, driver) = simulator()?;
    let value = make(&driver)?;
    simulator.inject(
        Fault::on(function)
            .always()
            .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    drop(value);
    Ok(driver.leaked_memory())
}

/// Memory that cannot be freed is counted, although the report of the leak panics.
#[test]
fn memory_leaks_are_counted() -> TestResult {
    const BYTES: usize = 1 << 20;
    with_panics(|| {
        let leaked = [
            drop_while_failing(Function::cuMemFreeAsync, |driver| {
                Ok(DeviceBuffer::<u8>::zeroed(&primary_stream(driver)?, BYTES)?)
            })?,
            drop_while_failing(Function::cuMemFreeHost, |driver| {
                let context = driver.device(0)?.primary_context()?;
                Ok(PinnedBuffer::<u8>::zeroed(
                    &context,
                    BYTES,
                    PinnedFlags::empty(),
                )?)
            })?,
            drop_while_failing(Function::cuMemFree_v2, |driver| {
                Ok(UnifiedBuffer::<u8>::zeroed(
                    &primary_stream(driver)?,
                    BYTES,
                )?)
            })?,
        ];
        for memory in leaked {
            assert_eq!(memory, LeakedMemory::new(1, BYTES as u64));
        }
        Ok(())
    })
}

#[test]
fn failed_drops_do_not_panic() -> TestResult {
    with_panics(|| {
        drop_while_failing(Function::cuStreamDestroy_v2, primary_stream)?;
        drop_while_failing(Function::cuEventDestroy_v2, |driver| {
            Ok(Event::new(
                &driver.device(0)?.primary_context()?,
                EventFlags::empty(),
            )?)
        })?;
        drop_while_failing(Function::cuCtxDestroy_v2, |driver| {
            Ok(driver.device(0)?.create_context(ContextOptions::new())?)
        })?;
        drop_while_failing(
            Function::cuGraphExecDestroy,
            |driver| -> TestResult<GraphExec> {
                Ok(Graph::new(&driver.device(0)?.primary_context()?)?.instantiate()?)
            },
        )?;
        Ok(())
    })
}

/// Each wait between streams is an event of `tracing`, also in the destructor of a buffer.
#[test]
fn many_streams_free_buffers() -> TestResult {
    with_panics(|| {
        let (simulator, driver) = simulator()?;
        {
            let streams = [
                primary_stream(&driver)?,
                primary_stream(&driver)?,
                primary_stream(&driver)?,
            ];
            let caching = CachingResource::new(streams[0].context())?;
            let mut plain = DeviceBuffer::<u8>::zeroed(&streams[0], 1 << 16)?;
            let mut cached = DeviceBuffer::<u8, _>::zeroed_in(&streams[0], 1 << 16, &caching)?;
            for (value, stream) in (1..).zip(&streams) {
                plain.on_mut(stream).fill(value)?;
                cached.on_mut(stream).fill(value)?;
            }
            assert!(plain.to_vec()?.iter().all(|value| *value == 3));
            assert!(cached.to_vec()?.iter().all(|value| *value == 3));
        }
        assert_eq!(driver.leaked_memory(), LeakedMemory::default());
        drop(driver);
        assert!(eventually(|| simulator.live_objects().is_empty()));
        Ok(())
    })
}

#[test]
fn graph_caches_work() -> TestResult {
    with_panics(|| {
        let (_simulator, driver) = simulator()?;
        let stream = primary_stream(&driver)?;
        let mut buffer = DeviceBuffer::<u8>::zeroed(&stream, 16)?;
        let mut cache = GraphCache::new();
        for value in [1, 1, 2] {
            cache.run(&stream, "fill", value, |stream| {
                buffer.on_mut(stream).fill(value)
            })?;
        }
        assert_eq!(buffer.to_vec()?, [2; 16]);
        Ok(())
    })
}
