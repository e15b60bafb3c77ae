//! [`NotificationListener`](curium_driver::NotificationListener): notifications of a device.

use std::sync::Arc;

use curium_driver::{Function, Notification};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};
use parking_lot::Mutex;

/// A callback runs for its device until the listener is dropped.
#[simulator_test(Config::new().with_devices(2))]
fn callback_runs_for_its_device(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let listener = test
        .device()
        .on_notification(move |what| ear.lock().push(what))?;
    assert_eq!(simulator.live_handles().listeners, 1);
    simulator.notify_over_budget(0, 4096);
    simulator.notify_over_budget(1, 1);
    drop(listener);
    simulator.notify_over_budget(0, 2);
    assert_eq!(*heard.lock(), [Notification::OverBudget { bytes: 4096 }]);
    assert_eq!(
        Arc::strong_count(&heard),
        1,
        "the closure is dropped with the listener"
    );
    Ok(())
}

/// A panic of a listener does not reach the driver or other listeners.
#[simulator_test]
fn listener_panic_is_contained(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let heard = Arc::new(Mutex::new(0));
    let ear = Arc::clone(&heard);
    let panicking = test
        .device()
        .on_notification(|_| panic!("this panic is part of the test"))?;
    let counting = test.device().on_notification(move |_| *ear.lock() += 1)?;
    simulator.notify_over_budget(0, 1);
    simulator.notify_over_budget(0, 1);
    assert_eq!(*heard.lock(), 2);
    panicking.close()?;
    counting.close()?;
    Ok(())
}

/// A listener that the driver does not register leaves nothing.
#[simulator_test]
fn failed_registration_leaves_nothing(test: &TestDriver, simulator: &Simulator) {
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let function = Function::cuDeviceRegisterAsyncNotification;
    simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    let error = test
        .device()
        .on_notification(move |_| drop(Arc::clone(&held)))
        .expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(function));
    assert_eq!(Arc::strong_count(&token), 1, "the closure is dropped");
}

/// A listener that the driver keeps is returned silent.
#[simulator_test]
fn unregistration_failure_silences_the_listener(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let heard = Arc::new(Mutex::new(0));
    let ear = Arc::clone(&heard);
    let listener = test.device().on_notification(move |_| *ear.lock() += 1)?;
    let function = Function::cuDeviceUnregisterAsyncNotification;
    simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_NOT_PERMITTED));
    let (listener, error) = listener
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(function));
    simulator.notify_over_budget(0, 1);
    assert_eq!(*heard.lock(), 0);
    drop(listener);
    Ok(())
}

#[driver_test]
fn device_can_be_listened_to(test: &TestDriver) -> TestResult {
    let listener = test.device().on_notification(|_| {})?;
    listener.close()?;
    Ok(())
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Device::on_notification", |fixture| {
            made(fixture.device.on_notification(|_| {})?)
        }),
        ("NotificationListener::close", |fixture| {
            fixture
                .device
                .on_notification(|_| {})?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
