//! The driver's own log: [`LogReader`](curium_driver::LogReader), listeners, and what errors take along.

use std::sync::{Arc, Mutex};

use curium_driver::{CudaVersion, Error, Function, LogLevel};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{TestDriver, on_driver, on_simulator};

/// The error of a call that fails on every driver.
fn failure(test: &TestDriver) -> Error {
    test.driver().device(1_000).expect_err("there are not that many devices")
}

fn driver_log(error: &Error) -> Option<&str> {
    match error {
        Error::Call(error) => error.driver_log.as_deref(),
        _ => None,
    }
}

/// Whether the driver is new enough to have a log.
fn has_log(test: &TestDriver) -> bool {
    test.driver().has(Function::cuLogsCurrent)
}

#[test]
fn error_carries_what_the_driver_logged_about_its_call() {
    on_simulator(Config::new(), |test, _| {
        let error = failure(test);
        let log = driver_log(&error).expect("the driver logs failures");
        assert!(log.contains("[cuDeviceGet]") && log.lines().count() == 1, "{log}");
        assert!(error.to_string().ends_with(&format!("the driver's log: {log}")), "{error}");
    });
}

#[test]
fn error_does_not_repeat_what_an_earlier_one_carried() {
    on_simulator(Config::new(), |test, simulator| {
        drop(failure(test));
        simulator.inject(Fault::on(Function::cuDeviceGetCount).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
        let error = test.driver().device_count().expect_err("the call fails");
        let log = driver_log(&error).expect("the driver logs failures");
        assert!(log.contains("[cuDeviceGetCount]") && log.lines().count() == 1, "{log}");
    });
}

#[test]
fn error_takes_no_line_of_another_function() {
    on_simulator(Config::new(), |test, simulator| {
        let get = simulator.api().cuDeviceGet.expect("the simulator has it");
        let mut device = 0;
        // SAFETY: `device` is a valid place for the answer.
        let code = unsafe { get(&raw mut device, 2_000) };
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_DEVICE);
        simulator.inject(Fault::on(Function::cuDeviceGetCount).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
        let error = test.driver().device_count().expect_err("the call fails");
        let log = driver_log(&error).expect("the driver logs failures");
        assert!(!log.contains("[cuDeviceGet]"), "{log}");
    });
}

#[test]
fn log_is_read_only_when_a_call_has_failed_and_is_not_observed() {
    on_simulator(Config::new(), |test, simulator| {
        let dump = Function::cuLogsDumpToMemory;
        test.assert_calls(dump, 0, || test.device().name().expect("the device has a name"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let eye = Arc::clone(&seen);
        let guard = curium_driver::observe_calls(move |call: &curium_driver::Call<'_>| {
            eye.lock().expect("no panic").push(call.function);
        });
        test.assert_calls(dump, 1, || failure(test));
        drop(guard);
        assert!(!seen.lock().expect("no panic").contains(&dump));
        assert_eq!(simulator.calls(Function::cuLogsCurrent), 1, "it is asked where the log ends once");
    });
}

#[test]
fn log_that_cannot_be_read_leaves_the_error_as_it_is() {
    on_simulator(Config::new(), |test, simulator| {
        simulator.inject(Fault::on(Function::cuLogsDumpToMemory).returns(CUresult::CUDA_ERROR_UNKNOWN));
        let error = failure(test);
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
        assert_eq!(driver_log(&error), None);
    });
}

#[test]
fn driver_without_a_log_gives_errors_without_one() {
    on_simulator(Config::new().with_driver_version(CudaVersion::new(12, 8)), |test, _| {
        assert_eq!(driver_log(&failure(test)), None);
        let error = test.driver().log_reader().expect_err("the driver is too old");
        assert!(error.to_string().contains("cuLogsCurrent needs a driver for CUDA 12.9"), "{error}");
    });
}

#[test]
fn reader_reads_each_line_once() {
    on_driver(|test| {
        if !has_log(test) {
            return;
        }
        let mut log = test.driver().log_reader().expect("the driver has a log");
        assert_eq!(log.read().expect("it can be read"), "");
        drop(failure(test));
        assert!(log.read().expect("it can be read").contains("cuDeviceGet"));
        assert_eq!(log.read().expect("it can be read"), "");
        let mut all = test.driver().log_from_start();
        assert!(all.read().expect("it can be read").contains("cuDeviceGet"));
        assert_eq!(all.read().expect("it can be read"), "", "it goes on where it was");
    });
}

#[test]
fn reader_writes_a_file_and_names_one_that_it_cannot_write() {
    on_driver(|test| {
        if !has_log(test) {
            return;
        }
        let mut log = test.driver().log_reader().expect("the driver has a log");
        drop(failure(test));
        let path = std::env::temp_dir().join(format!("curium-log-{}", std::process::id()));
        log.write_to(&path).expect("the folder is writable");
        let text = std::fs::read_to_string(&path).expect("the file is there");
        std::fs::remove_file(&path).expect("the file is ours");
        assert!(text.contains("cuDeviceGet"), "{text}");
        let error = log.write_to("/no/such/folder/log").expect_err("the folder is not there");
        assert!(error.to_string().contains("/no/such/folder/log"), "{error}");
        let error = log.write_to("a\0b").expect_err("no path has a NUL");
        assert!(error.to_string().contains("LogReader::write_to"), "{error}");
    });
}

#[test]
fn listener_hears_of_failures_until_it_is_dropped() {
    on_driver(|test| {
        if !has_log(test) {
            return;
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let listener = test.driver().on_log(move |level, text| {
            ear.lock().expect("no panic").push((level, text.to_owned()));
        });
        let listener = listener.expect("the driver takes a callback");
        drop(failure(test));
        drop(listener);
        drop(failure(test));
        let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
        // One failure may be told in several lines, of which the last names the function.
        let named = heard.iter().filter(|(level, text)| *level == LogLevel::Error && text.contains("cuDeviceGet"));
        assert_eq!(named.count(), 1, "{heard:?}");
    });
}

#[test]
fn panic_of_a_listener_ends_there() {
    on_driver(|test| {
        if !has_log(test) {
            return;
        }
        let listener = test.driver().on_log(|_, _| panic!("this panic is part of the test"));
        let listener = listener.expect("the driver takes a callback");
        assert_eq!(failure(test).code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
        listener.close().map_err(|(_, error)| error).expect("the driver agrees");
    });
}

#[test]
fn listener_that_the_driver_keeps_is_given_back_silent() {
    on_simulator(Config::new(), |test, simulator| {
        let heard = Arc::new(Mutex::new(0));
        let ear = Arc::clone(&heard);
        let listener = test.driver().on_log(move |_, _| *ear.lock().expect("no panic") += 1);
        let listener = listener.expect("the driver takes a callback");
        let function = Function::cuLogsUnregisterCallback;
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_NOT_PERMITTED));
        let (listener, error) = listener.close().expect_err("the driver refuses once");
        assert_eq!(error.function(), Some(function));
        drop(failure(test));
        assert_eq!(*heard.lock().expect("no panic"), 0);
        drop(listener);
    });
}
