//! Races between streams: two pieces of work that nothing orders access the same memory, and one of them writes.
//!
//! [`Order`] knows what comes after what, [`Marks`] who accessed each word of an allocation last. Both are kept only if somebody asked for
//! them. A race is found whatever the order in which the work happened to run.

mod clock;
mod mark;
mod marks;
mod order;
mod watch;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::mark::{Mark, Party, Rival, Step};
pub(crate) use self::marks::Marks;
use self::order::Order;
pub(crate) use self::watch::LaunchWatch;
use self::watch::Watch;
pub(crate) use crate::exec::Use;
use crate::exec::{Access, Conflict, Fault, FaultKind, StreamRace};
use crate::schedule::{Place, Ticket};

/// Everything that finding races takes.
#[derive(Debug, Default)]
pub(crate) struct Races {
    order: Mutex<Order>,
    /// Counts what the host has learnt: who has exchanged what it knows since the last change need not do so again.
    version: AtomicU64,
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
    /// The first race of a copy or a fill.
    found: Option<(Conflict, Access)>,
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
        self.order().begin(ticket);
        let current = Current { races: Arc::clone(self), ticket, accessor: None, found: None };
        CURRENT.set(Some(current));
    }

    /// Ends what [`Races::enter`] began, and returns what a copy or a fill did wrong.
    pub(crate) fn leave() -> Option<Fault> {
        let (conflict, access) = CURRENT.take()?.found?;
        Some(Fault::of_transfer(FaultKind::StreamRace(conflict), access))
    }

    /// Completes work.
    pub(crate) fn complete(&self, ticket: Ticket) {
        self.order().complete(ticket);
    }

    /// Has work and the host know all that either knows: it told or learnt something through memory, or the host ran as part of it.
    pub(crate) fn exchange(&self, ticket: Ticket) {
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

    /// The work that belongs to a place, has been queued, and that the host has not waited for.
    pub(crate) fn unobserved(&self, belongs: impl Fn(&Place) -> bool) -> Vec<Ticket> {
        self.order().unobserved(belongs)
    }

    /// What a report says of the two that race.
    pub(crate) fn describe(&self, conflict: Conflict) -> Option<StreamRace> {
        let order = self.order();
        let (own, other) = (order.party(conflict.own)?, order.party(conflict.other)?);
        Some(StreamRace {
            name: Box::from(&*own.name),
            stream: own.place.stream,
            other: Box::from(&*other.name),
            other_stream: other.place.stream,
            other_wrote: conflict.other_wrote,
        })
    }
}

impl Accessor {
    /// The mark behind an access of a word, and whom it races with.
    fn step(&self, mark: Mark, how: Use, bytes: u8) -> (Mark, Option<Rival>) {
        self.races.order().step(mark, Step { own: self.party, how, bytes })
    }

    fn conflict(&self, with: Rival) -> Conflict {
        Conflict { own: self.party, other: with.party, other_wrote: with.wrote }
    }
}

/// The launch of a kernel that this thread begins as part of its work; nobody, if races are not looked for.
pub(crate) fn launch(kernel: &str) -> Option<Accessor> {
    CURRENT.with_borrow(|current| enroll(current.as_ref()?, &format!("kernel `{kernel}`")))
}

fn enroll(current: &Current, name: &str) -> Option<Accessor> {
    let party = current.races.order().enroll(current.ticket, name)?;
    Some(Accessor { races: Arc::clone(&current.races), ticket: current.ticket, party })
}

/// Notes what this thread accesses as part of its work, by a copy or a fill.
pub(crate) fn note(name: &'static str, marks: &Marks, address: u64, offset: u64, size: u64, how: Use) {
    CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return };
        if current.accessor.as_ref().is_none_or(|(known, _)| *known != name) {
            current.accessor = enroll(current, name).map(|accessor| (name, accessor));
        }
        let Some((_, accessor)) = &current.accessor else { return };
        let mut watch = Watch::new(accessor.clone());
        if let Some((at, conflict)) = watch.note(marks, offset..offset + size, how) {
            let left = size - (at - offset);
            let access = Access {
                address: address + (at - offset),
                size: u32::try_from(left).unwrap_or(u32::MAX),
                write: how != Use::Read,
            };
            current.found.get_or_insert((conflict, access));
        }
    });
}

/// Has the work of this thread, if it is work, and the host know all that either knows.
pub(crate) fn exchange_here() {
    CURRENT.with_borrow(|current| {
        current.iter().for_each(|current| current.races.exchange(current.ticket));
    });
}
