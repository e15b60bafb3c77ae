//! The schedule: the dependencies of work, and the choice of what runs next.
//!
//! Work is queued as a graph of tickets. Work in a stream waits for the earlier work of the stream,
//! and for what the rules of default streams and events add. The seed chooses among the work that
//! is ready.
//!
//! To make an order repeatable, queued work is held back until the host requests its result. A wait
//! releases the work that it depends on, and a query releases one operation. Otherwise work starts
//! only after a delay: with several workers [`PATIENCE`] after it was queued, with one worker when
//! nothing was queued for [`IDLENESS`].
//!
//! Waking a worker takes longer than a small kernel. A waiting thread therefore runs work itself if
//! nothing else can run, which changes no order.

pub(crate) mod worker;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use curium_ptx::exec::Access;

use crate::context::ticket::{Target, Ticket};
use crate::driver::Driver;
use crate::host_function::HostFunction;
use crate::race::Races;
use crate::random::Random;
use crate::result::Result;

/// The delay after which queued work starts without a request for its result.
const PATIENCE: Duration = Duration::from_millis(10);

/// The time without new work after which a single worker starts without a request. It is long,
/// because the order is repeatable only if everything that belongs together was queued before.
const IDLENESS: Duration = Duration::from_millis(200);

/// The length of the queue at which a single worker starts without a request.
const DEPTH: usize = 4096;

/// The time for which a single worker waits for a host function before it continues with other
/// streams.
const HOST_FUNCTION_GRACE: Duration = Duration::from_millis(10);

/// A condition that must hold before work continues.
pub(crate) type Condition = Box<dyn Fn(&Driver) -> Result<bool> + Send>;

/// The work of a device. An error is a fault of the device.
pub(crate) type DeviceWork = Box<dyn FnOnce(&Driver) -> Result + Send>;

/// The content of an operation.
pub(crate) enum Work {
    /// Runs on a worker.
    Device(DeviceWork),
    /// Runs on the thread of host functions.
    Host(HostFunction),
    /// Does nothing until the condition holds; the condition is polled.
    Wait(Wait),
}

/// Work that waits for a condition.
pub(crate) struct Wait {
    pub(crate) is_met: Condition,
    /// Its reads of the value that it waits for, if there is one.
    pub(crate) access: Option<Access>,
    /// The time of the first poll.
    pub(crate) since: Option<Instant>,
}

impl Wait {
    /// Creates a wait for any condition.
    pub(crate) fn new(is_met: Condition) -> Self {
        Self {
            is_met,
            access: None,
            since: None,
        }
    }

    /// Creates a wait for a value in memory.
    pub(crate) fn for_value(access: Access, is_met: Condition) -> Self {
        Self {
            access: Some(access),
            ..Self::new(is_met)
        }
    }
}

/// The next action of a worker.
pub(crate) enum Next {
    Run(Ticket, Target, Work),
    /// Nothing to run until the schedule changes or this much time has passed.
    Wait(Option<Duration>),
    Stop,
}

struct Node {
    pub(crate) target: Target,
    pub(crate) work: Option<Work>,
    stage: Stage,
    unmet: usize,
    dependents: Vec<Ticket>,
    submitted: Instant,
}

/// The state of queued work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    /// Running on a worker or on a waiting thread.
    Running,
    /// Passed to the thread of host functions.
    Called,
}

/// All work that has not completed.
pub(crate) struct Schedule {
    nodes: HashMap<Ticket, Node>,
    /// Work without dependencies, in the order in which it became ready.
    ready: Vec<Ticket>,
    host_functions: VecDeque<(Ticket, Target, HostFunction)>,
    /// Tickets that a thread waits for.
    goals: Vec<Ticket>,
    /// The number of work items that may run because of queries.
    released: usize,
    /// The host function that a single worker waits for.
    held: Option<(Ticket, Instant)>,
    single_worker: bool,
    /// The number of running work items, and of host functions that are being or about to be
    /// called.
    running: usize,
    called: usize,
    /// The number of workers that will check the schedule again without being woken.
    pub(crate) watchers: usize,
    /// The number of threads that sleep until their work has completed.
    pub(crate) sleepers: usize,
    random: Random,
    last: u64,
    /// The time at which work was last queued.
    latest: Option<Instant>,
    closed: bool,
    /// The race checker, if race checks are on.
    pub(crate) races: Option<Arc<Races>>,
}

impl Schedule {
    pub(crate) fn new(seed: u64, workers: u32, races: Option<Arc<Races>>) -> Self {
        Self {
            races,
            nodes: HashMap::new(),
            ready: Vec::new(),
            host_functions: VecDeque::new(),
            goals: Vec::new(),
            released: 0,
            held: None,
            single_worker: workers <= 1,
            running: 0,
            called: 0,
            watchers: 0,
            sleepers: 0,
            random: Random::new(seed),
            last: 0,
            latest: None,
            closed: false,
        }
    }

    /// Queues work that waits for those of `after` that have not completed.
    pub(crate) fn submit(&mut self, target: Target, after: &[Ticket], work: Work) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        if let Some(races) = &self.races {
            races.submit(ticket, target, after);
        }
        let mut unmet = 0;
        for before in after {
            if let Some(node) = self
                .nodes
                .get_mut(before)
                .filter(|node| !node.dependents.contains(&ticket))
            {
                node.dependents.push(ticket);
                unmet += 1;
            }
        }
        if unmet == 0 {
            self.ready.push(ticket);
        }
        let submitted = Instant::now();
        self.latest = Some(submitted);
        let node = Node {
            target,
            work: Some(work),
            stage: Stage::Queued,
            unmet,
            dependents: Vec::new(),
            submitted,
        };
        self.nodes.insert(ticket, node);
        ticket
    }

    /// Returns `true` if waiting for work has an effect: the work has not completed, or the order
    /// is recorded.
    pub(crate) fn needs_wait(&self, ticket: Ticket) -> bool {
        self.races.is_some() || self.is_pending(ticket)
    }

    pub(crate) fn is_pending(&self, ticket: Ticket) -> bool {
        self.nodes.contains_key(&ticket)
    }

    pub(crate) fn is_any_pending(&self, tickets: &[Ticket]) -> bool {
        tickets.iter().any(|ticket| self.is_pending(*ticket))
    }

    /// Returns the pending work of a stream or context, and completed work that the host has not
    /// waited for.
    pub(crate) fn unobserved(&self, belongs: impl Fn(&Target) -> bool) -> Vec<Ticket> {
        self.races.as_ref().map_or_else(
            || self.pending(&belongs),
            |races| races.unobserved(&belongs),
        )
    }

    /// Records that the host has found work completed.
    pub(crate) fn record_host_wait(&self, tickets: &[Ticket]) {
        if let Some(races) = &self.races {
            races.observe(tickets);
        }
    }

    /// Records that work and the host may have communicated.
    pub(crate) fn merge_clocks(&self, ticket: Ticket) {
        if let Some(races) = &self.races {
            races.exchange(ticket);
        }
    }

    /// Returns the race checker.
    pub(crate) fn races(&self) -> Option<&Arc<Races>> {
        self.races.as_ref()
    }

    /// Returns the pending work of a stream or context.
    pub(crate) fn pending(&self, belongs: impl Fn(&Target) -> bool) -> Vec<Ticket> {
        self.nodes
            .iter()
            .filter(|(_, node)| belongs(&node.target))
            .map(|(ticket, _)| *ticket)
            .collect()
    }

    /// Lets work run until all of `tickets` have completed.
    pub(crate) fn add_goals(&mut self, tickets: &[Ticket]) {
        self.goals.extend(
            tickets
                .iter()
                .filter(|ticket| self.nodes.contains_key(ticket)),
        );
    }

    /// Lets one operation run.
    pub(crate) fn release_one(&mut self) {
        self.released = 1;
    }

    /// Drops the queued work and stops the schedule.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.ready.clear();
        self.host_functions.clear();
        self.goals.clear();
        self.nodes.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns `true` if new work requires no wake-up: a worker will check the queue in time.
    pub(crate) fn has_timed_waiter(&self) -> bool {
        self.watchers > 0 && self.goals.is_empty() && self.released == 0 && self.nodes.len() < DEPTH
    }

    /// Returns `true` if a sleeping thread has work to run, or its wait has ended.
    pub(crate) fn should_wake_sleepers(&self) -> bool {
        self.sleepers > 0 || !self.ready.is_empty()
    }

    /// Returns `true` if only one device operation can run, and everything else waits for it.
    pub(crate) fn has_single_choice(&self) -> bool {
        let [ticket] = self.ready[..] else {
            return false;
        };
        let is_device_work = matches!(
            self.nodes.get(&ticket),
            Some(Node {
                work: Some(Work::Device(_)),
                ..
            })
        );
        is_device_work && self.running == 0 && self.called == 0 && !self.closed
    }

    /// Returns the next action of a worker.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        if self.closed {
            return Next::Stop;
        }
        if self.single_worker && self.running > 0 {
            return Next::Wait(None);
        }
        if let Some(wait) = self.wait_for_host_function(now) {
            return Next::Wait(Some(wait));
        }
        if let Some(wait) = self.hold_back(now) {
            return Next::Wait(wait);
        }
        self.released = self.released.saturating_sub(1);
        let chosen = self.random.below(self.ready.len());
        let ticket = self.ready.remove(chosen);
        let Some(node) = self.nodes.get_mut(&ticket) else {
            return Next::Wait(Some(Duration::ZERO));
        };
        let Some(work) = node.work.take() else {
            return Next::Wait(Some(Duration::ZERO));
        };
        let is_host_function = matches!(work, Work::Host(_));
        node.stage = if is_host_function {
            Stage::Called
        } else {
            Stage::Running
        };
        if is_host_function {
            self.called += 1;
            self.held = Some((ticket, now + HOST_FUNCTION_GRACE));
        } else {
            self.running += 1;
            self.held = None;
        }
        Next::Run(ticket, node.target, work)
    }

    /// Returns the time for which the only worker still waits for the host function that it
    /// started.
    fn wait_for_host_function(&self, now: Instant) -> Option<Duration> {
        let (ticket, until) = self.held.filter(|_| self.single_worker)?;
        let remaining = until
            .checked_duration_since(now)
            .filter(|remaining| !remaining.is_zero())?;
        self.is_pending(ticket).then_some(remaining)
    }

    /// Returns the time for which nothing may run yet; `None` if something may.
    fn hold_back(&self, now: Instant) -> Option<Option<Duration>> {
        let Some(oldest) = self
            .ready
            .iter()
            .filter_map(|ticket| self.nodes.get(ticket))
            .map(|node| node.submitted)
            .min()
        else {
            return Some(None);
        };
        if !self.goals.is_empty() || self.released > 0 {
            return None;
        }
        let (since, patience) = match (self.single_worker, self.latest) {
            (true, Some(_)) if self.nodes.len() >= DEPTH => return None,
            (true, Some(latest)) => (latest, IDLENESS),
            _ => (oldest, PATIENCE),
        };
        let remaining = patience
            .checked_sub(now.duration_since(since))
            .filter(|remaining| !remaining.is_zero());
        remaining.map(Some)
    }

    pub(crate) fn queue_host_function(
        &mut self,
        ticket: Ticket,
        target: Target,
        function: HostFunction,
    ) {
        self.host_functions.push_back((ticket, target, function));
    }

    pub(crate) fn next_host_function(&mut self) -> Option<(Ticket, Target, HostFunction)> {
        self.host_functions.pop_front()
    }

    /// Puts back work whose condition does not hold.
    pub(crate) fn put_back(&mut self, ticket: Ticket, work: Work) {
        if let Some(node) = self.nodes.get_mut(&ticket) {
            node.work = Some(work);
            node.stage = Stage::Queued;
            self.running -= 1;
            self.ready.push(ticket);
        }
    }

    /// Marks work as completed and releases its dependents.
    pub(crate) fn complete(&mut self, ticket: Ticket) {
        self.goals.retain(|goal| *goal != ticket);
        self.races.iter().for_each(|races| races.complete(ticket));
        let Some(node) = self.nodes.remove(&ticket) else {
            return;
        };
        match node.stage {
            Stage::Queued => {}
            Stage::Running => self.running -= 1,
            Stage::Called => self.called -= 1,
        }
        for dependent in node.dependents {
            if let Some(waiting) = self.nodes.get_mut(&dependent) {
                waiting.unmet -= 1;
                if waiting.unmet == 0 {
                    self.ready.push(dependent);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Id;

    const TARGET: fn() -> Target = || Target {
        device: 0,
        context: Id::from_number(0),
        stream: 0,
    };

    fn nothing() -> Work {
        Work::Device(Box::new(|_| Ok(())))
    }

    unsafe extern "C" fn unused(_data: *mut std::ffi::c_void) {}

    /// Runs everything as the only worker and returns the order.
    fn order(schedule: &mut Schedule) -> Vec<u64> {
        let mut order = Vec::new();
        while let Next::Run(ticket, _, _) = schedule.next(Instant::now()) {
            order.push(ticket.0);
            schedule.complete(ticket);
        }
        order
    }

    fn three_streams(seed: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(seed, 1, None);
        let mut tails = [None; 3];
        for n in 0..30 {
            let tail = &mut tails[n % 3];
            let after: Vec<Ticket> = tail.iter().copied().collect();
            *tail = Some(schedule.submit(TARGET(), &after, nothing()));
        }
        schedule.add_goals(&tails.into_iter().flatten().collect::<Vec<_>>());
        order(&mut schedule)
    }

    #[test]
    fn seed_determines_the_order() {
        assert_eq!(three_streams(7), three_streams(7));
        assert_ne!(three_streams(7), three_streams(8));
    }

    #[test]
    fn work_runs_after_its_dependencies() {
        for seed in 0..50 {
            let order = three_streams(seed);
            for ticket in 1..=27 {
                let position = order.iter().position(|other| *other == ticket);
                let next_position = order.iter().position(|other| *other == ticket + 3);
                assert!(position < next_position, "{order:?}");
            }
        }
    }

    #[test]
    fn work_is_held_back_until_a_request_or_a_timeout() {
        let mut schedule = Schedule::new(0, 2, None);
        let ticket = schedule.submit(TARGET(), &[], nothing());
        let now = schedule.nodes[&ticket].submitted;
        assert!(matches!(schedule.next(now), Next::Wait(Some(PATIENCE))));
        assert!(matches!(schedule.next(now + PATIENCE), Next::Run(..)));
    }

    #[test]
    fn single_worker_starts_when_the_host_is_idle() {
        let mut schedule = Schedule::new(0, 1, None);
        let ticket = schedule.submit(TARGET(), &[], nothing());
        let now = schedule.nodes[&ticket].submitted;
        assert!(matches!(schedule.next(now + PATIENCE), Next::Wait(Some(_))));
        schedule.latest = Some(now + IDLENESS);
        assert!(matches!(
            schedule.next(now + IDLENESS),
            Next::Wait(Some(IDLENESS))
        ));
        assert!(matches!(schedule.next(now + 2 * IDLENESS), Next::Run(..)));
        let mut schedule = Schedule::new(0, 1, None);
        for _ in 0..DEPTH {
            schedule.submit(TARGET(), &[], nothing());
        }
        assert!(matches!(schedule.next(now), Next::Run(..)));
    }

    #[test]
    fn grant_runs_one_operation() {
        let mut schedule = Schedule::new(0, 1, None);
        let first = schedule.submit(TARGET(), &[], nothing());
        schedule.submit(TARGET(), &[first], nothing());
        let now = schedule.nodes[&first].submitted;
        schedule.release_one();
        assert!(matches!(schedule.next(now), Next::Run(..)));
        schedule.complete(first);
        assert!(matches!(schedule.next(now), Next::Wait(Some(_))));
    }

    #[test]
    fn waiting_thread_runs_work_only_without_a_choice() {
        let mut schedule = Schedule::new(0, 2, None);
        let now = Instant::now();
        let first = schedule.submit(TARGET(), &[], nothing());
        let second = schedule.submit(TARGET(), &[first], nothing());
        schedule.add_goals(&[second]);
        assert!(schedule.has_single_choice());
        // The running work may be a dependency of the rest.
        assert!(matches!(schedule.next(now), Next::Run(..)));
        let third = schedule.submit(TARGET(), &[], nothing());
        assert!(!schedule.has_single_choice());
        schedule.complete(first);
        // The seed chooses which of the two is next.
        assert!(!schedule.has_single_choice());
        let Next::Run(chosen, ..) = schedule.next(now) else {
            panic!("one was demanded")
        };
        schedule.complete(chosen);
        assert!([second, third].contains(&chosen) && schedule.has_single_choice());
    }

    #[test]
    fn waiting_thread_yields_to_host_functions() {
        let mut schedule = Schedule::new(0, 2, None);
        let function =
            HostFunction::new(Some(unused), std::ptr::null_mut()).expect("it has a function");
        let function = schedule.submit(TARGET(), &[], Work::Host(function));
        schedule.add_goals(&[function]);
        assert!(!schedule.has_single_choice());
        assert!(matches!(
            schedule.next(Instant::now()),
            Next::Run(_, _, Work::Host(_))
        ));
        schedule.submit(TARGET(), &[], nothing());
        assert!(!schedule.has_single_choice());
        schedule.complete(function);
        assert!(schedule.has_single_choice());
    }

    #[test]
    fn single_worker_yields_to_a_waiting_thread() {
        let mut schedule = Schedule::new(0, 1, None);
        let first = schedule.submit(TARGET(), &[], nothing());
        let second = schedule.submit(TARGET(), &[], nothing());
        schedule.add_goals(&[first, second]);
        let now = Instant::now();
        let Next::Run(running, ..) = schedule.next(now) else {
            panic!("both were demanded")
        };
        assert!(matches!(schedule.next(now), Next::Wait(None)));
        schedule.complete(running);
        assert!(schedule.should_wake_sleepers());
        assert!(matches!(schedule.next(now), Next::Run(..)));
    }

    #[test]
    fn closed_schedule_drops_its_work() {
        let mut schedule = Schedule::new(0, 1, None);
        let ticket = schedule.submit(TARGET(), &[], nothing());
        schedule.close();
        assert!(!schedule.is_pending(ticket));
        assert!(matches!(schedule.next(Instant::now()), Next::Stop));
    }
}
