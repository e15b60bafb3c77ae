//! Handles at the end of their thread, process or driver, after a fork, and after other code
//! destroyed the object. Each of these tests has a process of its own.
#![cfg(all(target_os = "linux", not(miri)))]

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use curium_driver::AsRawStream as _;
use curium_driver::{
    Context, ContextOptions, Driver, Error, Event, EventFlags, Function, Library, Stream, call,
    observe_calls, set_drop_observer,
};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{
    TestDriver, TestResult, in_fork, in_new_process, kernels, on_driver, on_incomplete_simulator,
    resume_panic, skip, stream_work, uses_cuda,
};
use parking_lot::Mutex;

use crate::operations::{self, Fixture};

/// One handle of every kind, with possibly pending work.
struct Everything {
    driver: Driver,
    context: Context,
    stream: Stream,
    event: Event,
    buffer: DeviceBuffer<u32>,
    pinned: PinnedBuffer<u8>,
    library: Library,
}

impl Everything {
    fn new(test: &TestDriver) -> Self {
        Self::prepare(test).expect("the driver works")
    }

    fn prepare(test: &TestDriver) -> curium_driver::Result<Self> {
        let context = test.context();
        let stream = context.stream()?;
        let event = Event::new(&context, EventFlags::empty())?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 1 << 16)?;
        stream_work::fill(&stream, &mut buffer, 7)?;
        event.record(&stream)?;
        let pinned = PinnedBuffer::zeroed(&context, 64, PinnedFlags::empty())?;
        let library = Library::from_ptx(&context, kernels::FILL)?;
        Ok(Self {
            driver: test.driver().clone(),
            context,
            stream,
            event,
            buffer,
            pinned,
            library,
        })
    }

    /// Returns `true` if every handle is still usable, as it must be until the process ends.
    fn is_live(&self) -> bool {
        self.driver.device_count().is_ok()
            && self.context.synchronize().is_ok()
            && self
                .stream
                .is_finished()
                .is_ok_and(|is_finished| is_finished)
            && self.event.is_finished().is_ok()
            && self
                .buffer
                .to_vec()
                .is_ok_and(|values| values.iter().all(|value| *value == 7))
            && self.pinned.byte_len() == 64
            && self
                .library
                .kernel::<(&mut [u32], u32, u32)>("fill")
                .is_ok()
    }
}

/// Ends the process, and with it the test, without running destructors.
fn exit_process() {
    std::process::exit(0);
}

/// Runs a test whose process ends with a live driver. The simulator is never dropped.
fn left_behind(test: impl FnOnce(&TestDriver)) {
    on_driver(|driver| {
        test(driver);
        exit_process();
    });
}

/// Collects the reports of drops from now on.
fn reports() -> Arc<Mutex<Vec<String>>> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reports);
    set_drop_observer(Some(Arc::new(move |error: &Error| {
        sink.lock().push(error.to_string());
    })));
    reports
}

fn taken(reports: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *reports.lock())
}

/// A process exits well with everything live in a static and on the stack.
#[test]
fn statics_survive_process_exit() {
    static EVERYTHING: OnceLock<Everything> = OnceLock::new();
    in_new_process(|| {
        left_behind(|test| {
            assert!(EVERYTHING.get_or_init(|| Everything::new(test)).is_live());
            std::mem::forget(Everything::new(test));
            let _local = Everything::new(test);
            std::process::exit(0);
        });
    });
}

/// A process exits well with everything live in a thread local.
#[test]
fn thread_locals_survive_exit() {
    thread_local! {
        static EVERYTHING: RefCell<Option<Everything>> = const { RefCell::new(None) };
    }
    in_new_process(|| {
        left_behind(|test| EVERYTHING.set(Some(Everything::new(test))));
    });
}

/// The objects that an exit handler drops, and the number of driver calls it observed.
static AT_EXIT: Mutex<Option<Everything>> = Mutex::new(None);
static CALLS_AT_EXIT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn drop_at_exit() {
    CALLS_AT_EXIT.store(0, Ordering::Relaxed);
    let guard = observe_calls(|_: &curium_driver::Call<'_>| {
        CALLS_AT_EXIT.fetch_add(1, Ordering::Relaxed);
    });
    drop(AT_EXIT.lock().take().expect("the test left it here"));
    drop(guard);
    if CALLS_AT_EXIT.load(Ordering::Relaxed) > 0 {
        std::process::abort();
    }
}

// SAFETY: `atexit` of the C library has this signature.
unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

#[test]
fn drops_at_exit_make_no_calls() {
    in_new_process(|| {
        // Exit handlers run in reverse order: this one after the driver's, like a destructor of
        // another library.
        assert_eq!(atexit(drop_at_exit), 0);
        left_behind(|test| {
            *AT_EXIT.lock() = Some(Everything::new(test));
        });
    });
}

#[test]
fn ending_thread_drops_locals() {
    thread_local! {
        static EVERYTHING: RefCell<Option<Everything>> = const { RefCell::new(None) };
    }
    in_new_process(|| {
        on_driver(|test| {
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| EVERYTHING.set(Some(Everything::new(test))));
                resume_panic(thread.join());
            });
            // The simulator must have no live handles at the end.
        });
    });
}

/// A child of a fork gets an error from every operation and drops in silence.
#[test]
fn forked_child_gets_errors() {
    in_new_process(|| {
        on_driver(|test| {
            let mut fixture = Fixture::new(test);
            let reports = reports();
            in_fork(|| {
                for (name, operation) in operations::solitary() {
                    assert!(
                        operation(&mut fixture).is_err(),
                        "{name} works in the child"
                    );
                }
                for (name, operation) in operations::all() {
                    let error = operation(&mut fixture)
                        .err()
                        .unwrap_or_else(|| panic!("{name} works in the child"));
                    assert!(matches!(error, Error::Fork(_)), "{name}: {error}");
                    let function = error.function().expect("the error has a function").name();
                    assert!(
                        error
                            .to_string()
                            .starts_with(&format!("{function}: not called ")),
                        "{error}"
                    );
                }
                drop(Driver::load().map(|driver| {
                    driver
                        .device_count()
                        .expect_err("the driver does not work on this machine")
                }));
                drop(fixture);
                assert_eq!(taken(&reports), [""; 0]);
            });
            // The objects that the child dropped are still live here.
            let mut fixture = Fixture::new(test);
            for (name, operation) in operations::all() {
                drop(
                    operation(&mut fixture)
                        .unwrap_or_else(|error| panic!("{name} in the parent: {error}")),
                );
            }
            set_drop_observer(None);
        });
    });
}

#[test]
fn forked_child_exits() {
    in_new_process(|| {
        on_driver(|test| {
            let everything = Everything::new(test);
            in_fork(|| std::process::exit(i32::from(everything.is_live())));
            assert!(everything.is_live(), "the parent continues");
        });
    });
}

/// Handles that other code released are reported and nothing else happens.
#[test]
fn released_handles_are_reported() -> TestResult {
    if uses_cuda() {
        // The driver crashes when some handles are destroyed twice.
        return Ok(());
    }
    in_new_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            test.may_leak();
            let context = test.context();
            let stream = context.stream()?;
            let event = Event::new(&context, EventFlags::empty())?;
            let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
            let library = Library::from_ptx(&context, kernels::FILL)?;
            let pinned = PinnedBuffer::<u8>::zeroed(&context, 8, PinnedFlags::empty())?;
            let driver = test.driver();
            stream.synchronize()?;
            let _live = "the handle is live";
            // SAFETY: the handle is live; the destruction without its owner's knowledge is the
            // subject of the test, on a driver that validates handles.
            unsafe { call!(driver, cuMemFree_v2(buffer.as_pointer().as_raw())) }?;
            // SAFETY: the handle is live; the destruction without its owner's knowledge is the
            // subject of the test, on a driver that validates handles.
            unsafe { call!(driver, cuEventDestroy_v2(event.as_raw())) }?;
            // SAFETY: the handle is live; the destruction without its owner's knowledge is the
            // subject of the test, on a driver that validates handles.
            unsafe { call!(driver, cuLibraryUnload(library.as_raw())) }?;
            // SAFETY: the handle is live; the destruction without its owner's knowledge is the
            // subject of the test, on a driver that validates handles.
            unsafe { call!(driver, cuMemFreeHost(pinned.as_ptr().cast_mut().cast())) }?;
            // SAFETY: the handle is live; the destruction without its owner's knowledge is the
            // subject of the test, on a driver that validates handles.
            unsafe { call!(driver, cuStreamDestroy_v2(stream.as_raw())) }?;
            stream.synchronize().expect_err("the stream is gone");
            event.record(&stream).expect_err("the event is gone");
            library
                .kernel::<(&mut [u32], u32, u32)>("fill")
                .map(drop)
                .expect_err("the library is gone");
            let reports = reports();
            let (buffer, error) = buffer
                .close()
                .expect_err("the memory is freed")
                .into_parts();
            assert!(error.function().is_some(), "{error}");
            drop((buffer, event, library, pinned));
            let after = taken(&reports);
            assert_eq!(after.len(), 4, "each is reported once: {after:#?}");
            drop(stream);
            assert_eq!(taken(&reports).len(), 1, "the stream is reported once");
            set_drop_observer(None);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A context that other code destroyed is an error of everything made in it.
#[test]
fn destroyed_context_fails() -> TestResult {
    if uses_cuda() {
        // The driver's behavior for the streams of such a context is not documented.
        return Ok(());
    }
    in_new_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            test.may_leak();
            let context = test.device().create_context(ContextOptions::new())?;
            let stream = context.stream()?;
            let event = Event::new(&context, EventFlags::empty())?;
            let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
            stream.synchronize()?;
            // SAFETY: as above: the effect is the subject of the test.
            unsafe { call!(test.driver(), cuCtxDestroy_v2(context.as_raw())) }?;
            let errors = [
                context.synchronize().expect_err("the context is gone"),
                context.stream().map(drop).expect_err("the context is gone"),
                stream
                    .synchronize()
                    .expect_err("the stream was destroyed with it"),
                event
                    .record(&stream)
                    .expect_err("the event was destroyed with it"),
                buffer
                    .to_vec()
                    .map(drop)
                    .expect_err("the stream was destroyed with it"),
                DeviceBuffer::<u32>::zeroed(&stream, 4)
                    .map(drop)
                    .expect_err("the stream was destroyed with it"),
            ];
            for error in errors {
                assert!(error.function().is_some(), "{error}");
            }
            let reports = reports();
            let leaked = buffer.as_pointer();
            drop((buffer, event, stream, context));
            let reports = taken(&reports);
            assert_eq!(reports.len(), 4, "each is reported once: {reports:#?}");
            set_drop_observer(None);
            // Memory of a pool outlives the context.
            let stream = test.stream();
            // SAFETY: the memory was allocated in a stream that is gone, and is freed once.
            unsafe {
                call!(
                    test.driver(),
                    cuMemFreeAsync(leaked.as_raw(), stream.as_raw())
                )
            }?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A driver that is deinitialized is an error of every operation and of no drop.
#[test]
fn deinitialized_driver_fails() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    in_new_process(|| -> TestResult {
        on_incomplete_simulator(Config::new(), |test| -> TestResult {
            let simulator = test.simulator().ok_or("not a simulator")?;
            let mut fixture = Fixture::new(test);
            let everything = Everything::new(test);
            let reports = reports();
            for function in Function::all() {
                simulator.inject(
                    Fault::on(function)
                        .always()
                        .returns(CUresult::CUDA_ERROR_DEINITIALIZED),
                );
            }
            for (name, operation) in operations::all() {
                let error = operation(&mut fixture)
                    .err()
                    .unwrap_or_else(|| panic!("{name} works without a driver"));
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_DEINITIALIZED),
                    "{name}: {error}"
                );
            }
            assert!(!everything.is_live());
            drop((fixture, everything));
            assert_eq!(
                taken(&reports),
                [""; 0],
                "unloading the driver is not reported"
            );
            set_drop_observer(None);
            // Memory that could not be freed is no leak of this test: the process ends here.
            exit_process();
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}
