//! Races between streams: two unordered operations access the same memory, and one of them writes.
//!
//! [`Order`] records the happens-before order, and [`Marks`] the last accesses to each word of an
//! allocation. Both are kept only if race checks are on. A race is found regardless of the order in
//! which the work ran.

mod clock;
mod host;
mod mark;
mod marks;
mod order;
mod watch;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use curium_ptx::exec::AccessKind;
use curium_ptx::exec::{Access, Conflict, Report, ReportKind, StreamRace};

pub(crate) use self::host::HostSnapshot;
use self::mark::{Mark, RacingAccess, Step};
pub(crate) use self::mark::{NOBODY, Party};
pub(crate) use self::marks::Marks;
use self::order::Order;
use self::watch::Watch;
pub(crate) use self::watch::{LaunchWatch, Marked};
use crate::context::ticket::{Target, Ticket};
use crate::lock::{Mutex, MutexGuard, Rank};

/// The state of the race checker.
#[derive(Debug)]
pub(crate) struct Races {
    order: Mutex<Order>,
    /// The version of the host's clock: a thread that has exchanged clocks at this version need not
    /// repeat it.
    version: AtomicU64,
    /// Counts every event that may change memory or inform the host: the start and the end of work,
    /// and exchanges.
    turn: AtomicU64,
    /// The number of running operations.
    running: AtomicU64,
}

/// The operation on whose behalf memory is accessed.
#[derive(Clone, Debug)]
pub(crate) struct Accessor {
    races: Arc<Races>,
    ticket: Ticket,
    party: Party,
}

/// The operation that a thread runs.
#[derive(Debug)]
struct Current {
    races: Arc<Races>,
    ticket: Ticket,
    /// The current accessor and its name.
    accessor: Option<(&'static str, Accessor)>,
    /// The first error of a copy or a fill.
    report: Option<Report>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Default for Races {
    fn default() -> Self {
        Self {
            order: Mutex::new(Rank::RaceOrder, Order::default()),
            version: AtomicU64::default(),
            turn: AtomicU64::default(),
            running: AtomicU64::default(),
        }
    }
}

impl Races {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock()
    }

    /// Adds an operation that is queued after others.
    pub(crate) fn submit(&self, ticket: Ticket, target: Target, after: &[Ticket]) {
        self.order().submit(ticket, target, after);
    }

    /// Attributes the accesses of this thread to an operation until [`Races::leave`].
    pub(crate) fn enter(self: &Arc<Self>, ticket: Ticket) {
        self.running.fetch_add(1, Ordering::AcqRel);
        self.advance();
        self.order().begin(ticket);
        let current = Current {
            races: Arc::clone(self),
            ticket,
            accessor: None,
            report: None,
        };
        CURRENT.set(Some(current));
    }

    /// Ends [`Races::enter`], and returns the error of a copy or a fill.
    pub(crate) fn leave() -> Option<Report> {
        let current = CURRENT.take()?;
        current.races.running.fetch_sub(1, Ordering::AcqRel);
        current.report
    }

    /// Returns a number for the accesses of a queued operation.
    pub(crate) fn enroll(&self, ticket: Ticket, name: &str) -> Option<Party> {
        self.order().enroll(ticket, name)
    }

    /// Completes work.
    pub(crate) fn complete(&self, ticket: Ticket) {
        self.advance();
        self.order().complete(ticket);
    }

    fn advance(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
    }

    fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    fn running(&self) -> u64 {
        self.running.load(Ordering::Acquire)
    }

    /// Merges the clocks of an operation and of the host: they communicated through memory, or the
    /// host ran as part of the operation.
    pub(crate) fn exchange(&self, ticket: Ticket) {
        self.advance();
        let mut order = self.order();
        order.begin(ticket);
        if order.exchange(ticket) {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Records that the host has waited for work.
    pub(crate) fn observe(&self, tickets: &[Ticket]) {
        self.order().observe(tickets);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the queued operations of a stream or context that the host has not waited for.
    pub(crate) fn unobserved(&self, belongs: impl Fn(&Target) -> bool) -> Vec<Ticket> {
        self.order().unobserved(belongs)
    }

    /// Returns the description of a race for a report.
    pub(crate) fn describe(&self, conflict: Conflict) -> Option<StreamRace> {
        let order = self.order();
        let party = order.party(conflict.own)?;
        let other = order.party(conflict.other)?;
        let mut race = StreamRace::new(conflict);
        race.name = Box::from(&*party.name);
        race.stream = party.target.stream;
        race.other = Box::from(&*other.name);
        race.other_stream = other.target.stream;
        Some(race)
    }
}

impl Accessor {
    /// Returns the mark after an access of a word, and the access that it races with.
    fn step(&self, mark: Mark, how: AccessKind, bytes: u8) -> (Mark, Option<RacingAccess>) {
        self.races.order().step(
            mark,
            Step {
                party: self.party,
                how,
                bytes,
            },
        )
    }

    fn conflict(&self, racing: RacingAccess) -> Conflict {
        Conflict {
            own: self.party,
            other: racing.party,
            other_wrote: racing.wrote,
        }
    }
}

/// Starts a kernel launch as part of this thread's work; `None` if race checks are off.
pub(crate) fn launch(kernel: &str) -> Option<Accessor> {
    CURRENT.with_borrow(|current| enroll(current.as_ref()?, &format!("kernel `{kernel}`")))
}

fn enroll(current: &Current, name: &str) -> Option<Accessor> {
    let party = current.races.order().enroll(current.ticket, name)?;
    Some(Accessor {
        races: Arc::clone(&current.races),
        ticket: current.ticket,
        party,
    })
}

/// Records an access of a copy or a fill by this thread: a range of an allocation that begins at
/// `base`.
pub(crate) fn record(
    name: &'static str,
    marks: &Marks,
    base: u64,
    range: Range<u64>,
    how: AccessKind,
) {
    record_with(name, base..base + range.end, how, |watch| {
        watch.record(marks, range, how)
    });
}

/// Records that the work of this thread frees an allocation.
pub(crate) fn record_free(marks: &Marks, base: u64, size: u64) {
    record_with("free", base..base + size, AccessKind::Write, |watch| {
        watch.record_all(marks)
    });
}

/// Records an access, and keeps the race that it finds.
fn record_with(
    name: &'static str,
    memory: Range<u64>,
    how: AccessKind,
    access_marks: impl FnOnce(&mut Watch) -> Option<(u64, Conflict)>,
) {
    CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return };
        if current
            .accessor
            .as_ref()
            .is_none_or(|(accessor_name, _)| *accessor_name != name)
        {
            current.accessor = enroll(current, name).map(|accessor| (name, accessor));
        }
        let Some((_, accessor)) = &current.accessor else {
            return;
        };
        if let Some((offset, conflict)) = access_marks(&mut Watch::new(accessor.clone())) {
            let address = memory.start + offset;
            let access = Access {
                address,
                size: u32::try_from(memory.end - address).unwrap_or(u32::MAX),
                write: how != AccessKind::Read,
            };
            current.report.get_or_insert_with(|| {
                Report::for_transfer(ReportKind::StreamRace, access, Some(conflict))
            });
        }
    });
}

/// Records that the host changed the source of a copy of this thread.
pub(crate) fn record_host_race(access: Access) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current
                .report
                .get_or_insert_with(|| Report::for_transfer(ReportKind::HostRace, access, None));
        }
    });
}

/// Merges the clocks of this thread's work, if any, and of the host.
pub(crate) fn exchange_here() {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            current.races.exchange(current.ticket);
        }
    });
}
