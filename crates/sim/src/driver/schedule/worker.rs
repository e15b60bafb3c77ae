//! The threads that run queued work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curium_ptx::exec::Report;
use curium_sys::CUresult;

use crate::context::ticket::{Target, Ticket};
use crate::driver::Driver;
use crate::driver::schedule::{Next, Wait, Work};
use crate::driver::state::State;
use crate::host_function::HostFunction;
use crate::lock::MutexGuard;
use crate::race::Races;
use crate::result::Result;
use crate::{activity, origin};

/// The pause of a worker before it polls a condition again.
const PAUSE: Duration = Duration::from_micros(100);

impl Driver {
    /// Wakes the workers, and starts them on the first use.
    pub(crate) fn wake_workers(&self, state: &mut State) {
        if !state.workers_started {
            state.workers_started = true;
            self.start_workers();
        }
        if !state.schedule.is_watched() {
            self.changed().notify_all();
        }
    }

    /// Waits until none of `tickets` is pending, or the driver ends.
    pub(crate) fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        tickets: &[Ticket],
    ) -> Result<MutexGuard<'a, State>> {
        state.schedule.demand(tickets);
        while state.schedule.is_any_pending(tickets) && state.schedule.has_single_choice() {
            state = self.help(state);
        }
        if state.schedule.is_any_pending(tickets) {
            self.changed().notify_all();
            state.schedule.sleepers += 1;
            while state.schedule.is_any_pending(tickets) {
                self.changed().wait(&mut state);
            }
            state.schedule.sleepers -= 1;
        }
        state.schedule.observe(tickets);
        if self.has_output() {
            drop(state);
            self.flush_output();
            state = self.lock();
        }
        if state.schedule.is_closed() {
            Err(CUresult::CUDA_ERROR_DEINITIALIZED)
        } else {
            Ok(state)
        }
    }

    /// Runs the only operation that can run on the calling thread, because waking a worker takes longer than a small kernel.
    fn help<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        match state.schedule.next(Instant::now()) {
            Next::Run(ticket, target, Work::Device(work)) => self.run(state, ticket, target, work),
            Next::Run(ticket, _, work) => {
                state.schedule.put_back(ticket, work);
                state
            }
            Next::Stop | Next::Wait(_) => state,
        }
    }

    fn start_workers(&self) {
        // The driver is alive: this is a call of one of its functions.
        let Some(driver) = self.shared() else { return };
        for _ in 0..self.config().workers.max(1) {
            let driver = Arc::clone(&driver);
            self.register_thread(thread::spawn(move || driver.work()));
        }
        self.register_thread(thread::spawn(move || driver.call_host_functions()));
    }

    /// Runs a worker until the driver ends.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            match state.schedule.next(Instant::now()) {
                Next::Stop => return,
                Next::Wait(None) => {
                    self.changed().wait(&mut state);
                }
                Next::Wait(Some(time)) => {
                    state.schedule.watchers += 1;
                    self.changed().wait_for(&mut state, time);
                    state.schedule.watchers -= 1;
                }
                Next::Run(ticket, target, Work::Host(function)) => {
                    state.schedule.queue_host_function(ticket, target, function);
                    self.changed().notify_all();
                }
                Next::Run(ticket, target, Work::Device(work)) => {
                    state = self.run(state, ticket, target, work);
                }
                Next::Run(ticket, target, Work::Wait(wait)) => {
                    state = self.poll_condition(state, ticket, target, wait);
                }
            }
        }
    }

    /// Runs an operation, unless its device has failed, and completes it.
    fn run<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        ticket: Ticket,
        target: Target,
        work: Box<dyn FnOnce(&Self) -> Result + Send>,
    ) -> MutexGuard<'a, State> {
        if state.sticky(target.device).is_none() {
            let races = state.schedule.races().map(Arc::clone);
            let location = state.activity_location(target);
            drop(state);
            if let Some(races) = &races {
                races.enter(ticket);
            }
            let outcome = activity::on_stream(location, || {
                origin::within_stream(target.stream, || {
                    catch_unwind(AssertUnwindSafe(|| work(self)))
                })
            });
            let outcome = outcome.map(|result| {
                result.and_then(|()| self.handle_report(races.and_then(|_| Races::leave())))
            });
            state = self.lock();
            if let Err(code) = outcome.unwrap_or(Err(CUresult::CUDA_ERROR_UNKNOWN)) {
                state.fail(target.device, code);
            }
        }
        state.schedule.complete(ticket);
        if state.schedule.concerns_sleepers() {
            self.changed().notify_all();
        }
        state
    }

    /// Polls the condition of waiting work. Completes the work if the condition holds, and otherwise puts it back and pauses.
    fn poll_condition<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        ticket: Ticket,
        target: Target,
        mut wait: Wait,
    ) -> MutexGuard<'a, State> {
        if state.sticky(target.device).is_none() {
            drop(state);
            let since = *wait.since.get_or_insert_with(Instant::now);
            let limit = self.config().time_limit;
            let answer = (wait.is_met)(self).and_then(|is_met| {
                if !is_met && limit.is_some_and(|limit| since.elapsed() > limit) {
                    let report = Report::for_stream(target.stream, wait.access);
                    self.handle_report(Some(report)).map(|()| true)
                } else {
                    Ok(is_met)
                }
            });
            state = self.lock();
            match answer {
                Ok(true) => state.schedule.exchange(ticket),
                Ok(false) => {
                    state.schedule.put_back(ticket, Work::Wait(wait));
                    self.changed().wait_for(&mut state, PAUSE);
                    return state;
                }
                Err(code) => state.fail(target.device, code),
            }
        }
        state.schedule.complete(ticket);
        self.changed().notify_all();
        state
    }

    /// Runs the thread of host functions until the driver ends.
    fn call_host_functions(&self) {
        let mut state = self.lock();
        while !state.schedule.is_closed() {
            match state.schedule.next_host_function() {
                Some((ticket, target, function)) => {
                    state = self.call_host_function(state, ticket, target, &function);
                }
                None => {
                    self.changed().wait(&mut state);
                }
            }
        }
    }

    fn call_host_function<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        ticket: Ticket,
        target: Target,
        function: &HostFunction,
    ) -> MutexGuard<'a, State> {
        if state.sticky(target.device).is_none() {
            state.schedule.exchange(ticket);
            drop(state);
            function.call();
            state = self.lock();
            state.schedule.exchange(ticket);
        }
        state.schedule.complete(ticket);
        self.changed().notify_all();
        state
    }
}
