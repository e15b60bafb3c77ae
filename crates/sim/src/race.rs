//! Races between streams: two pieces of work that nothing orders access the same memory, and one of them writes.
//!
//! [`Order`] knows what comes after what, [`Marks`] who accessed each word of an allocation last. Both are kept only if somebody asked for
//! them. A race is found whatever the order in which the work happened to run.

mod clock;
mod host;
mod mark;
mod marks;
mod order;
mod watch;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use self::host::Before;
use self::mark::{Mark, Rival, Step};
pub(crate) use self::mark::{NOBODY, Party};
pub(crate) use self::marks::Marks;
use self::order::Order;
use self::watch::Watch;
pub(crate) use self::watch::{LaunchWatch, Marked};
pub(crate) use crate::exec::Use;
use crate::exec::{Access, Conflict, Report, ReportKind, StreamRace};
use crate::schedule::{Place, Ticket};

/// Everything that finding races takes.
#[derive(Debug, Default)]
pub(crate) struct Races {
    order: Mutex<Order>,
    /// Counts what the host has learnt: who has exchanged what it knows since the last change need not do so again.
    version: AtomicU64,
    /// Counts whatever may change memory or tell the host something: work that begins or ends, and exchanges.
    turn: AtomicU64,
    /// How much work is running.
    running: AtomicU64,
}

/// Who accesses memory as part of a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Accessor {
    races: Arc<Races>,
    ticket: Ticket,
    party: Party,
}

/// The piece of work that a thread runs.
#[derive(Debug)]
struct Current {
    races: Arc<Races>,
    ticket: Ticket,
    /// What accesses memory now, and what it is called.
    accessor: Option<(&'static str, Accessor)>,
    /// The first thing that a copy or a fill did wrong.
    found: Option<Report>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Races {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in work that is queued behind others.
    pub(crate) fn submit(&self, ticket: Ticket, place: Place, after: &[Ticket]) {
        self.order().submit(ticket, place, after);
    }

    /// Has the accesses of this thread be those of a piece of work, until [`Races::leave`].
    pub(crate) fn enter(self: &Arc<Self>, ticket: Ticket) {
        self.running.fetch_add(1, Ordering::AcqRel);
        self.advance();
        self.order().begin(ticket);
        let current = Current { races: Arc::clone(self), ticket, accessor: None, found: None };
        CURRENT.set(Some(current));
    }

    /// Ends what [`Races::enter`] began, and returns what a copy or a fill did wrong.
    pub(crate) fn leave() -> Option<Report> {
        let current = CURRENT.take()?;
        current.races.running.fetch_sub(1, Ordering::AcqRel);
        current.found
    }

    /// Returns a number for what queued work does.
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

    /// Has work and the host know all that either knows: it told or learnt something through memory, or the host ran as part of it.
    pub(crate) fn exchange(&self, ticket: Ticket) {
        self.advance();
        let mut order = self.order();
        order.begin(ticket);
        if order.exchange(ticket) {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// The host has waited for work.
    pub(crate) fn observe(&self, tickets: &[Ticket]) {
        self.order().observe(tickets);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the work that belongs to a place, has been queued, and that the host has not waited for.
    pub(crate) fn unobserved(&self, belongs: impl Fn(&Place) -> bool) -> Vec<Ticket> {
        self.order().unobserved(belongs)
    }

    /// Returns what a report says of the two that race.
    pub(crate) fn describe(&self, conflict: Conflict) -> Option<StreamRace> {
        let order = self.order();
        let (own, other) = (order.party(conflict.own)?, order.party(conflict.other)?);
        Some(StreamRace {
            name: Box::from(&*own.name),
            stream: own.place.stream,
            other: Box::from(&*other.name),
            other_stream: other.place.stream,
            other_wrote: conflict.other_wrote,
            conflict,
        })
    }
}

#[cfg(test)]
impl Races {
    /// Returns a launch behind all those that were made here before, by the ticket of this number.
    pub(crate) fn next_launch(self: &Arc<Self>, number: u64) -> Accessor {
        let place = Place { device: 0, context: crate::handle::Id::from_number(0), stream: 0 };
        let ticket = Ticket::from_number(number);
        self.submit(ticket, place, &[Ticket::from_number(number - 1)]);
        let party = self.order().enroll(ticket, "launch").expect("there are numbers left");
        self.complete(ticket);
        Accessor { races: Arc::clone(self), ticket, party }
    }
}

impl Accessor {
    /// Returns the mark behind an access of a word, and whom it races with.
    fn step(&self, mark: Mark, how: Use, bytes: u8) -> (Mark, Option<Rival>) {
        self.races.order().step(mark, Step { own: self.party, how, bytes })
    }

    fn conflict(&self, with: Rival) -> Conflict {
        Conflict { own: self.party, other: with.party, other_wrote: with.wrote }
    }
}

/// Returns the launch of a kernel that this thread begins as part of its work; nobody, if races are not looked for.
pub(crate) fn launch(kernel: &str) -> Option<Accessor> {
    CURRENT.with_borrow(|current| enroll(current.as_ref()?, &format!("kernel `{kernel}`")))
}

fn enroll(current: &Current, name: &str) -> Option<Accessor> {
    let party = current.races.order().enroll(current.ticket, name)?;
    Some(Accessor { races: Arc::clone(&current.races), ticket: current.ticket, party })
}

/// Notes what this thread accesses as part of its work, by a copy or a fill: a range of an allocation that begins at `base`.
pub(crate) fn note(name: &'static str, marks: &Marks, base: u64, range: Range<u64>, how: Use) {
    note_with(name, base..base + range.end, how, |watch| watch.note(marks, range, how));
}

/// Notes that the work of this thread frees an allocation.
pub(crate) fn note_free(marks: &Marks, base: u64, size: u64) {
    note_with("free", base..base + size, Use::Write, |watch| watch.note_all(marks));
}

/// Has notes taken of an access to memory of addresses, and keeps the race that is found.
fn note_with(
    name: &'static str,
    memory: Range<u64>,
    how: Use,
    take: impl FnOnce(&mut Watch) -> Option<(u64, Conflict)>,
) {
    CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return };
        if current.accessor.as_ref().is_none_or(|(known, _)| *known != name) {
            current.accessor = enroll(current, name).map(|accessor| (name, accessor));
        }
        let Some((_, accessor)) = &current.accessor else { return };
        if let Some((at, conflict)) = take(&mut Watch::new(accessor.clone())) {
            let address = memory.start + at;
            let size = u32::try_from(memory.end - address).unwrap_or(u32::MAX);
            let access = Access { address, size, write: how != Use::Read };
            let report = || Report::of_transfer(ReportKind::StreamRace, access, Some(conflict));
            current.found.get_or_insert_with(report);
        }
    });
}

/// Notes that the host changed what the work of this thread copies.
pub(crate) fn note_host(access: Access) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.found.get_or_insert_with(|| Report::of_transfer(ReportKind::HostRace, access, None));
        }
    });
}

/// Has the work of this thread, if it is work, and the host know all that either knows.
pub(crate) fn exchange_here() {
    CURRENT.with_borrow(|current| {
        current.iter().for_each(|current| current.races.exchange(current.ticket));
    });
}
