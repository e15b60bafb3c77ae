//! The driver's error log: [`LogReader`](curium_driver::LogReader), listeners, and log lines in
//! errors.

use std::ffi::{c_char, c_uint};
use std::sync::Arc;

use curium_driver::{CudaVersion, Driver, Error, Function, LogLevel};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUlogIterator, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test, skip};
use parking_lot::Mutex;

/// Returns the error of a call that fails on every driver.
fn failure(test: &TestDriver) -> Error {
    test.driver()
        .device(1_000)
        .expect_err("there are not that many devices")
}

fn driver_log(error: &Error) -> Option<&str> {
    match error {
        Error::Call(error) => error.driver_log.as_deref(),
        _ => None,
    }
}

/// A log line with more information than the error code.
const DETAILED_LINE: &str = "[11:07:41.060][77][CUDA][E] the ordinal is for later";

/// Returns the driver of a test, with a log that always ends with [`DETAILED_LINE`] and the
/// description of the code.
fn driver_with_detailed_log(test: &TestDriver) -> TestResult<Driver> {
    unsafe extern "C" fn dump(
        _: *mut CUlogIterator,
        text: *mut c_char,
        size: *mut usize,
        _: c_uint,
    ) -> CUresult {
        let log = format!(
            "{DETAILED_LINE}\n[11:07:41.060][77][CUDA][E] Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGet\n"
        );
        // SAFETY: the caller passes a buffer of 4 KiB, and a size that is valid for writes.
        unsafe { std::ptr::copy_nonoverlapping(log.as_ptr(), text.cast(), log.len()) };
        // SAFETY: the caller passes a buffer of 4 KiB, and a size that is valid for writes.
        unsafe { size.write(log.len()) };
        CUresult::CUDA_SUCCESS
    }
    let mut api = test.driver().api().clone();
    api.cuLogsDumpToMemory = Some(dump);
    // SAFETY: the table is that of the test's driver with another log, and the driver is dropped
    // with the test.
    Ok(unsafe { Driver::from_api(api) }?)
}

/// Returns `true` if the driver supports the log.
fn has_log(test: &TestDriver) -> bool {
    test.driver().has(Function::cuLogsCurrent)
}

#[simulator_test]
fn error_contains_its_driver_log(test: &TestDriver, _: &Simulator) -> TestResult {
    let driver = driver_with_detailed_log(test)?;
    let error = driver
        .device(1_000)
        .expect_err("there are not that many devices");
    assert_eq!(driver_log(&error), Some(DETAILED_LINE));
    assert!(
        error
            .to_string()
            .ends_with(&format!("\ndriver log: {DETAILED_LINE}")),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn error_omits_log_lines_that_repeat_it(test: &TestDriver) {
    let error = failure(test);
    let text = error.to_string();
    assert_eq!(
        text.matches("CUDA_ERROR_INVALID_DEVICE").count(),
        1,
        "{text}"
    );
    if test.simulator().is_some() {
        assert_eq!(driver_log(&error), None, "{text}");
    }
}

/// An error of a lost context does not repeat the log of an earlier one.
#[simulator_test]
fn lost_context_error_repeats_no_log(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let driver = driver_with_detailed_log(test)?;
    let sticky_failure = || {
        simulator
            .inject(Fault::on(Function::cuDeviceGet).returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
        driver.device(0).expect_err("the call fails")
    };
    assert_eq!(driver_log(&sticky_failure()), Some(DETAILED_LINE));
    assert_eq!(driver_log(&sticky_failure()), None);
    Ok(())
}

#[simulator_test]
fn error_takes_only_its_own_log_lines(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let get = simulator.api().cuDeviceGet.ok_or("no `cuDeviceGet`")?;
    let mut device = 0;
    // SAFETY: `device` is valid for writes.
    let code = unsafe { get(&raw mut device, 2_000) };
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_DEVICE);
    simulator.inject(
        Fault::on(Function::cuDeviceGetCount).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
    );
    let error = test.driver().device_count().expect_err("the call fails");
    assert_eq!(driver_log(&error), None, "{error}");
    Ok(())
}

/// A log is read only when a call has failed and is not observed.
#[simulator_test]
fn log_is_read_after_failures_only(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let dump = Function::cuLogsDumpToMemory;
    test.assert_calls(dump, 0, || -> TestResult<_> { Ok(test.device().name()?) })?;
    let observed = Arc::new(Mutex::new(Vec::new()));
    let guard = curium_driver::observe_calls({
        let observed = Arc::clone(&observed);
        move |call: &curium_driver::Call<'_>| observed.lock().push(call.function)
    });
    test.assert_calls(dump, 1, || failure(test));
    drop(guard);
    assert!(!observed.lock().contains(&dump));
    assert_eq!(
        simulator.calls(Function::cuLogsCurrent),
        1,
        "the end of the log is queried once"
    );
    Ok(())
}

#[simulator_test]
fn log_that_cannot_be_read_does_not_change_the_error(test: &TestDriver, simulator: &Simulator) {
    simulator.inject(Fault::on(Function::cuLogsDumpToMemory).returns(CUresult::CUDA_ERROR_UNKNOWN));
    let error = failure(test);
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
    assert_eq!(driver_log(&error), None);
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 8)))]
fn driver_without_a_log_gives_errors_without_one(test: &TestDriver, _: &Simulator) {
    assert_eq!(driver_log(&failure(test)), None);
    let error = test
        .driver()
        .log_reader()
        .expect_err("the driver is too old");
    assert!(
        error
            .to_string()
            .contains("cuLogsCurrent needs a driver for CUDA 12.9"),
        "{error}"
    );
}

#[simulator_test]
fn reader_reads_each_line_once(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut log = test.driver().log_reader()?;
    assert_eq!(log.read()?, "");
    drop(failure(test));
    assert!(log.read()?.contains("cuDeviceGet"));
    assert_eq!(log.read()?, "");
    let mut all = test.driver().log_from_start();
    assert!(all.read()?.contains("cuDeviceGet"));
    assert_eq!(all.read()?, "", "it continues where it stopped");
    Ok(())
}

#[simulator_test]
fn reader_writes_a_file(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut log = test.driver().log_reader()?;
    drop(failure(test));
    let path = std::env::temp_dir().join(format!("curium-log-{}", std::process::id()));
    log.write_to(&path)?;
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    assert!(text.contains("cuDeviceGet"), "{text}");
    Ok(())
}

#[simulator_test]
fn reader_names_a_file_that_it_cannot_write(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut log = test.driver().log_reader()?;
    let error = log
        .write_to("/no/such/folder/log")
        .expect_err("the folder is not there");
    assert!(error.to_string().contains("/no/such/folder/log"), "{error}");
    let error = log.write_to("a\0b").expect_err("no path has a NUL");
    assert!(error.to_string().contains("LogReader::write_to"), "{error}");
    Ok(())
}

/// A callback runs for failures until the listener is dropped.
#[simulator_test]
fn callback_runs_until_the_listener_drops(test: &TestDriver, _: &Simulator) -> TestResult {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let listener = test.driver().on_log({
        let lines = Arc::clone(&lines);
        move |level, text| lines.lock().push((level, text.to_owned()))
    })?;
    drop(failure(test));
    drop(listener);
    drop(failure(test));
    let lines = std::mem::take(&mut *lines.lock());
    // One failure may be logged in several lines; the last names the function.
    let named = lines
        .iter()
        .filter(|(level, text)| *level == LogLevel::Error && text.contains("cuDeviceGet"));
    assert_eq!(named.count(), 1, "{lines:?}");
    Ok(())
}

#[driver_test]
fn listener_panic_does_not_propagate(test: &TestDriver) -> TestResult {
    if !has_log(test) {
        return skip("the driver has no log");
    }
    let listener = test
        .driver()
        .on_log(|_, _| panic!("this panic is part of the test"))?;
    assert_eq!(
        failure(test).code(),
        Some(CUresult::CUDA_ERROR_INVALID_DEVICE)
    );
    listener.close()?;
    Ok(())
}

/// If the driver does not unregister a listener, `close` returns it, and it receives nothing more.
#[simulator_test]
fn unregistration_failure_silences_the_listener(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let received = Arc::new(Mutex::new(0));
    let listener = test.driver().on_log({
        let received = Arc::clone(&received);
        move |_, _| *received.lock() += 1
    })?;
    let function = Function::cuLogsUnregisterCallback;
    simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_NOT_PERMITTED));
    let (listener, error) = listener
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(function));
    drop(failure(test));
    assert_eq!(*received.lock(), 0);
    drop(listener);
    Ok(())
}

/// The content of the log after a failure is unspecified.
#[driver_test]
fn log_api_succeeds_on_every_driver(test: &TestDriver) -> TestResult {
    if !has_log(test) {
        return skip("the driver has no log");
    }
    let listener = test.driver().on_log(|_, _| {})?;
    let mut log = test.driver().log_reader()?;
    drop(failure(test));
    log.read()?;
    assert_eq!(log.read()?, "", "each line is read once");
    let path = std::env::temp_dir().join(format!("curium-whole-log-{}", std::process::id()));
    test.driver().log_from_start().write_to(&path)?;
    assert!(path.exists(), "no file");
    std::fs::remove_file(&path)?;
    listener.close()?;
    Ok(())
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Driver::log_reader", |fixture| {
            made(fixture.driver.log_reader()?)
        }),
        ("LogReader::read", |fixture| {
            made(fixture.driver.log_from_start().read()?)
        }),
        ("LogReader::write_to", |fixture| {
            let path =
                std::env::temp_dir().join(format!("curium-log-{:?}", std::thread::current().id()));
            let result = fixture.driver.log_reader()?.write_to(&path);
            // There is no file if the operation failed.
            let _ = std::fs::remove_file(path);
            made(result?)
        }),
        ("Driver::on_log", |fixture| {
            made(fixture.driver.on_log(|_, _| {})?)
        }),
        ("LogListener::close", |fixture| {
            fixture
                .driver
                .on_log(|_, _| {})?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
