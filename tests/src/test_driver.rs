//! The driver that a test runs on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Context, Device, Driver, Function, MemoryHandleTypes, Stream};
use curium_sim::{Config, Simulator};
use parking_lot::Mutex;

use crate::called::noting_calls;
use crate::gate::HeldUp;
use crate::test_result::{TestOutcome, skip};

/// The driver of one test: a simulator of its own, or this machine's driver.
pub struct TestDriver {
    driver: Driver,
    simulator: Option<Simulator>,
    may_leak: AtomicBool,
}

/// The time limit for work that was not waited for, after which the objects it holds count as
/// leaked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns `true` if the tests run on this machine's driver (`CURIUM_TEST_DRIVER=cuda`).
///
/// # Panics
///
/// Panics if the variable names another driver.
#[must_use]
pub fn uses_cuda() -> bool {
    match std::env::var("CURIUM_TEST_DRIVER").as_deref() {
        Ok("cuda") => true,
        Ok("sim" | "") | Err(_) => false,
        Ok(other) => panic!("CURIUM_TEST_DRIVER is {other:?}; it may be \"cuda\" or \"sim\""),
    }
}

/// Returns the handle types that the simulator supports for sharing memory: file descriptors on
/// Linux, and none elsewhere.
#[must_use]
pub fn shared_handle_types() -> MemoryHandleTypes {
    if cfg!(target_os = "linux") {
        MemoryHandleTypes::POSIX_FILE_DESCRIPTOR
    } else {
        MemoryHandleTypes::empty()
    }
}

/// Returns `true` if the simulators of all tests detect races (`CURIUM_TEST_RACES=1`).
#[must_use]
pub fn looks_for_races() -> bool {
    std::env::var_os("CURIUM_TEST_RACES").is_some_and(|value| value == "1")
}

/// Runs a test that applies to every driver.
///
/// On this machine's driver the tests run one at a time: they share its context, and a call of one
/// test that waits for the device blocks the calls of the others, which may include the one it
/// waits for. A test that blocks work ends at its first [`Gate`](crate::Gate) if launches wait.
///
/// # Panics
///
/// Panics if the test panics, makes the library [leak memory](Driver::leaked_memory), or leaks an
/// object of its simulator.
pub fn on_driver<R: TestOutcome>(test: impl FnOnce(&TestDriver) -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    if uses_cuda() {
        let _turn = TURN.lock();
        let run = || {
            let driver = Driver::load().expect("CURIUM_TEST_DRIVER=cuda needs a driver");
            TestDriver::new(driver, None).expect_no_leak(test)
        };
        catch_unwind(AssertUnwindSafe(|| noting_calls(run))).unwrap_or_else(|panic| {
            if !panic.is::<HeldUp>() {
                resume_unwind(panic);
            }
            skip("this test blocks work, and launches wait here")
        })
    } else {
        simulate(Config::new(), |driver| driver.expect_no_leak(test))
    }
}

/// Runs a test that requires a certain configuration, injected faults or call counts: on the
/// simulator only.
pub fn on_simulator<R: TestOutcome>(
    config: Config,
    test: impl FnOnce(&TestDriver, &Simulator) -> R,
) -> R {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    simulate(config, |driver| {
        let simulator = driver.simulator().expect("this driver is a simulator");
        test(driver, simulator)
    })
}

/// Runs a test that calls functions the simulator may not support yet: on the simulator only.
pub fn on_incomplete_simulator<R: TestOutcome>(
    config: Config,
    test: impl FnOnce(&TestDriver) -> R,
) -> R {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let driver = simulated(config);
    let outcome = test(&driver);
    if !outcome.is_failure() {
        driver.assert_nothing_leaks();
    }
    outcome
}

fn simulate<R: TestOutcome>(config: Config, test: impl FnOnce(&TestDriver) -> R) -> R {
    let driver = simulated(config);
    let outcome = test(&driver);
    if !outcome.is_failure() {
        driver.assert_clean();
    }
    outcome
}

fn simulated(mut config: Config) -> TestDriver {
    config.race_checks |= looks_for_races();
    config.uninitialized_checks |=
        std::env::var_os("CURIUM_TEST_UNINITIALIZED").is_some_and(|value| value == "1");
    let simulator = Simulator::new(config).expect("failed to create a simulator");
    // SAFETY: the simulator implements the driver's functions; it ends after the test, which keeps
    // no reference to it.
    let driver = unsafe { Driver::from_api(simulator.api()) }.expect("the simulator initializes");
    TestDriver::new(driver, Some(simulator))
}

impl TestDriver {
    fn new(driver: Driver, simulator: Option<Simulator>) -> Self {
        Self {
            driver,
            simulator,
            may_leak: AtomicBool::new(false),
        }
    }

    /// Declares that the library cannot free some memory of the test, because other code has freed
    /// it.
    pub fn may_leak(&self) {
        self.may_leak.store(true, Ordering::Relaxed);
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the simulator, if the driver is one.
    #[must_use]
    pub fn simulator(&self) -> Option<&Simulator> {
        self.simulator.as_ref()
    }

    /// Returns the first device.
    ///
    /// # Panics
    ///
    /// Panics if there is no device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.driver.device(0).expect("no device")
    }

    /// Returns the primary context of the first device.
    ///
    /// # Panics
    ///
    /// Panics if the driver call fails.
    #[must_use]
    pub fn context(&self) -> Context {
        self.device()
            .primary_context()
            .expect("the device has a primary context")
    }

    /// Returns a stream of the primary context.
    ///
    /// # Panics
    ///
    /// Panics if the driver call fails.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.context().stream().expect("failed to create a stream")
    }

    /// Asserts the number of calls of `function` that `operation` makes, if the driver counts
    /// calls.
    ///
    /// # Panics
    ///
    /// Panics if the number differs.
    #[track_caller]
    pub fn assert_calls<T>(
        &self,
        function: Function,
        expected: u64,
        operation: impl FnOnce() -> T,
    ) -> T {
        let Some(simulator) = self.simulator() else {
            return operation();
        };
        let before = simulator.calls(function);
        let value = operation();
        let after = simulator.calls(function);
        assert_eq!(after - before, expected, "calls of {function}");
        value
    }

    /// Runs a test, during which the library must not leak memory. Other tests that use this
    /// machine's driver wait meanwhile, so the leak is this test's.
    fn expect_no_leak<R: TestOutcome>(&self, test: impl FnOnce(&Self) -> R) -> R {
        let before = self.driver.leaked_memory();
        let outcome = test(self);
        if outcome.is_failure() {
            return outcome;
        }
        let after = self.driver.leaked_memory();
        // Memory of a lost context cannot be freed.
        let is_expected =
            after == before || self.may_leak.load(Ordering::Relaxed) || self.is_lost();
        assert!(
            is_expected,
            "the library leaks memory in this test: {before:?}, then {after:?}"
        );
        outcome
    }

    fn is_lost(&self) -> bool {
        let synchronized = self
            .device()
            .primary_context()
            .and_then(|context| context.synchronize());
        synchronized.is_err_and(|error| error.is_sticky())
    }

    /// Asserts that the simulator has no live objects and supported every call.
    fn assert_clean(&self) {
        self.assert_nothing_leaks();
        let unsupported = self
            .simulator()
            .map(Simulator::unsupported_calls)
            .unwrap_or_default();
        assert_eq!(
            unsupported,
            [],
            "the simulator does not support calls of this test"
        );
    }

    fn assert_nothing_leaks(&self) {
        let Some(simulator) = self.simulator() else {
            return;
        };
        let deadline = Instant::now() + PATIENCE;
        while !simulator.live_handles().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(
            simulator.live_handles().is_empty(),
            "the test leaks: {}",
            simulator.live_handles()
        );
    }
}
