//! [`NotificationListener`](curium_driver::NotificationListener): notifications of a device.

use std::sync::{Arc, Mutex};

use curium_driver::{Function, Notification};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{on_driver, on_simulator};

#[test]
fn callback_runs_for_its_device_until_the_listener_is_dropped() {
    on_simulator(Config::new().with_devices(2), |test, simulator| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let listener = test
            .device()
            .on_notification(move |what| ear.lock().expect("no panic").push(what));
        let listener = listener.expect("an asynchronous notification can be registered");
        assert_eq!(simulator.live_handles().listeners, 1);
        simulator.notify_over_budget(0, 4096);
        simulator.notify_over_budget(1, 1);
        drop(listener);
        simulator.notify_over_budget(0, 2);
        assert_eq!(
            *heard.lock().expect("no panic"),
            [Notification::OverBudget { bytes: 4096 }]
        );
        assert_eq!(
            Arc::strong_count(&heard),
            1,
            "the closure is dropped with the listener"
        );
    });
}

#[test]
fn panic_of_a_listener_does_not_reach_the_driver_or_other_listeners() {
    on_simulator(Config::new(), |test, simulator| {
        let heard = Arc::new(Mutex::new(0));
        let ear = Arc::clone(&heard);
        let panicking = test
            .device()
            .on_notification(|_| panic!("this panic is part of the test"));
        let panicking = panicking.expect("an asynchronous notification can be registered");
        let counting = test
            .device()
            .on_notification(move |_| *ear.lock().expect("no panic") += 1);
        let counting = counting.expect("an asynchronous notification can be registered");
        simulator.notify_over_budget(0, 1);
        simulator.notify_over_budget(0, 1);
        assert_eq!(*heard.lock().expect("no panic"), 2);
        panicking.close().expect("the driver agrees");
        counting.close().expect("the driver agrees");
    });
}

#[test]
fn listener_that_the_driver_does_not_register_leaves_nothing() {
    on_simulator(Config::new(), |test, simulator| {
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
    });
}

#[test]
fn listener_that_the_driver_keeps_is_given_back_silent() {
    on_simulator(Config::new(), |test, simulator| {
        let heard = Arc::new(Mutex::new(0));
        let ear = Arc::clone(&heard);
        let listener = test
            .device()
            .on_notification(move |_| *ear.lock().expect("no panic") += 1);
        let listener = listener.expect("an asynchronous notification can be registered");
        let function = Function::cuDeviceUnregisterAsyncNotification;
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_NOT_PERMITTED));
        let (listener, error) = listener
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(function));
        simulator.notify_over_budget(0, 1);
        assert_eq!(*heard.lock().expect("no panic"), 0);
        drop(listener);
    });
}

#[test]
fn device_can_be_listened_to() {
    on_driver(|test| {
        let listener = test
            .device()
            .on_notification(|_| {})
            .expect("an asynchronous notification can be registered");
        listener.close().expect("the driver agrees");
    });
}

pub(crate) mod operations {
    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
