//! The threads that run queued work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curium_ptx::exec::Report;
use curium_sys::CUresult;

use crate::context::ticket::{Target, Ticket};
use crate::driver::Driver;
use crate::driver::locked::Locked;
use crate::driver::schedule::{DeviceWork, Next, Wait, Work};
use crate::host_function::HostFunction;
use crate::race::Races;
use crate::result::Result;
use crate::{activity, origin};

/// The pause of a worker before it polls a condition again.
const PAUSE: Duration = Duration::from_micros(100);

impl Driver {
    fn start_workers(&self) {
        let driver = self.shared().expect("a call keeps the driver alive");
        for _ in 0..self.config().workers.max(1) {
            let driver = Arc::clone(&driver);
            self.threads
                .lock()
                .push(thread::spawn(move || run_worker(driver.lock())));
        }
        self.threads
            .lock()
            .push(thread::spawn(move || call_host_functions(driver.lock())));
    }
}

impl Locked<'_> {
    /// Wakes the workers, and starts them on the first use.
    pub(crate) fn wake_workers(&mut self) {
        if !self.workers_started {
            self.workers_started = true;
            self.driver.start_workers();
        }
        if !self.schedule.has_timed_waiter() {
            self.driver.changed().notify_all();
        }
    }

    /// Waits until none of `tickets` is pending, or the driver ends.
    pub(crate) fn wait(mut self, tickets: &[Ticket]) -> Result<Self> {
        self.schedule.add_goals(tickets);
        while self.schedule.is_any_pending(tickets) && self.schedule.has_single_choice() {
            self = self.run_inline();
        }
        if self.schedule.is_any_pending(tickets) {
            self.driver.changed().notify_all();
            self.schedule.sleepers += 1;
            while self.schedule.is_any_pending(tickets) {
                self.wait_for_change();
            }
            self.schedule.sleepers -= 1;
        }
        self.schedule.record_host_wait(tickets);
        if !self.driver.output().is_empty() {
            let driver = self.unlock();
            driver.output().flush();
            self = driver.lock();
        }
        if self.schedule.is_closed() {
            Err(CUresult::CUDA_ERROR_DEINITIALIZED)
        } else {
            Ok(self)
        }
    }

    /// Runs the only operation that can run on the calling thread, because waking a worker takes
    /// longer than a small kernel.
    fn run_inline(mut self) -> Self {
        match self.schedule.next(Instant::now()) {
            Next::Run(ticket, target, Work::Device(work)) => self.run(ticket, target, work),
            Next::Run(ticket, _, work) => {
                self.schedule.put_back(ticket, work);
                self
            }
            Next::Stop | Next::Wait(_) => self,
        }
    }

    /// Runs an operation, unless its device has failed, and completes it.
    fn run(mut self, ticket: Ticket, target: Target, work: DeviceWork) -> Self {
        if self.contexts.sticky_error(target.device).is_none() {
            let races = self.schedule.races().map(Arc::clone);
            let location = self.contexts.activity_location(target);
            let driver = self.unlock();
            if let Some(races) = &races {
                races.enter(ticket);
            }
            let outcome = activity::on_stream(location, || {
                origin::within_stream(target.stream, || {
                    catch_unwind(AssertUnwindSafe(|| work(driver)))
                })
            });
            let race = races.and_then(|_| Races::leave());
            let result = match outcome {
                Ok(Ok(())) => driver.handle_report(race),
                Ok(Err(code)) => Err(code),
                // The work panicked; the panic hook has printed the message.
                Err(_) => Err(CUresult::CUDA_ERROR_UNKNOWN),
            };
            self = driver.lock();
            if let Err(code) = result {
                self.contexts.record_sticky_error(target.device, code);
            }
        }
        self.schedule.complete(ticket);
        if self.schedule.should_wake_sleepers() {
            self.driver.changed().notify_all();
        }
        self
    }

    /// Polls the condition of waiting work. Completes the work if the condition holds, and
    /// otherwise puts it back and pauses.
    fn poll_condition(mut self, ticket: Ticket, target: Target, mut wait: Wait) -> Self {
        if self.contexts.sticky_error(target.device).is_none() {
            let driver = self.unlock();
            let since = *wait.since.get_or_insert_with(Instant::now);
            let limit = driver.config().time_limit;
            let is_met = (wait.is_met)(driver).and_then(|is_met| {
                if !is_met && limit.is_some_and(|limit| since.elapsed() > limit) {
                    let report = Report::for_stream(target.stream, wait.access);
                    // If the report is no error, the stream continues as if the condition were met.
                    driver.handle_report(Some(report)).map(|()| true)
                } else {
                    Ok(is_met)
                }
            });
            self = driver.lock();
            match is_met {
                Ok(true) => self.schedule.merge_clocks(ticket),
                Ok(false) => {
                    self.schedule.put_back(ticket, Work::Wait(wait));
                    self.wait_for_change_or(PAUSE);
                    return self;
                }
                Err(code) => self.contexts.record_sticky_error(target.device, code),
            }
        }
        self.schedule.complete(ticket);
        self.driver.changed().notify_all();
        self
    }
}

/// Runs a worker until the driver ends.
fn run_worker(mut state: Locked<'_>) {
    loop {
        match state.schedule.next(Instant::now()) {
            Next::Stop => return,
            Next::Wait(None) => state.wait_for_change(),
            Next::Wait(Some(time)) => {
                state.schedule.watchers += 1;
                state.wait_for_change_or(time);
                state.schedule.watchers -= 1;
            }
            Next::Run(ticket, target, Work::Host(function)) => {
                state.schedule.queue_host_function(ticket, target, function);
                state.driver.changed().notify_all();
            }
            Next::Run(ticket, target, Work::Device(work)) => {
                state = state.run(ticket, target, work);
            }
            Next::Run(ticket, target, Work::Wait(wait)) => {
                state = state.poll_condition(ticket, target, wait);
            }
        }
    }
}

/// Runs the thread of host functions until the driver ends.
fn call_host_functions(mut state: Locked<'_>) {
    while !state.schedule.is_closed() {
        match state.schedule.next_host_function() {
            Some((ticket, target, function)) => {
                state = call_host_function(state, ticket, target, &function);
            }
            None => state.wait_for_change(),
        }
    }
}

fn call_host_function<'a>(
    mut state: Locked<'a>,
    ticket: Ticket,
    target: Target,
    function: &HostFunction,
) -> Locked<'a> {
    if state.contexts.sticky_error(target.device).is_none() {
        state.schedule.merge_clocks(ticket);
        let driver = state.unlock();
        function.call();
        state = driver.lock();
        state.schedule.merge_clocks(ticket);
    }
    state.schedule.complete(ticket);
    state.driver.changed().notify_all();
    state
}
