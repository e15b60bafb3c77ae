//! The happens-before order of queued work.
//!
//! Each operation belongs to a chain, in which it is ordered after the previous one. A vector clock
//! records the operations before it. The host has a clock too, of the operations that it has waited
//! for, and its later operations are ordered after them. All threads of the host count as one,
//! because their synchronization cannot be observed.
//!
//! Operations may also communicate through memory: a kernel with a fence, or a written value that
//! others wait for. Such an operation and the host merge their clocks. The recorded order therefore
//! contains every order of the program, and a race next to such an operation may be missed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::clock::{Clock, Moment};
use super::mark::{MAX_PARTIES, Mark, Party, RacingAccess, Readers, Step};
use crate::context::ticket::{Target, Ticket};

/// The recorded order of all work.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The operations that have not completed, or that the host has not waited for.
    operations: HashMap<Ticket, Operation>,
    /// The time of the last operation in each chain.
    chains: Vec<u32>,
    host: Arc<Clock>,
    /// The accessors of memory by their numbers, from 1 on.
    parties: Vec<Member>,
    readers: Readers,
}

/// A queued operation.
#[derive(Debug)]
struct Operation {
    target: Target,
    moment: Moment,
    /// The final clocks of the operations that it waits for.
    after: Vec<LastClock>,
    /// Its own clock since it was queued.
    clock: Clock,
    last: LastClock,
}

/// The clock of an operation after its completion.
type LastClock = Arc<OnceLock<Clock>>;

/// An accessor of memory.
#[derive(Clone, Debug)]
pub(super) struct Member {
    moment: Moment,
    pub(super) ticket: Ticket,
    pub(super) target: Target,
    pub(super) name: Arc<str>,
}

impl Order {
    /// Adds an operation that is queued after others.
    pub(super) fn submit(&mut self, ticket: Ticket, target: Target, after: &[Ticket]) {
        let before: Vec<&Operation> = after
            .iter()
            .filter_map(|ticket| self.operations.get(ticket))
            .collect();
        let continued_chain = before
            .iter()
            .map(|operation| operation.moment)
            .find(|moment| self.chains[moment.chain as usize] == moment.time)
            .map(|moment| moment.chain);
        let after = before
            .iter()
            .map(|operation| Arc::clone(&operation.last))
            .collect();
        let chain = continued_chain
            .or_else(|| self.reusable_chain())
            .unwrap_or_else(|| {
                self.chains.push(0);
                self.chains.len() as u32 - 1
            });
        self.chains[chain as usize] += 1;
        let moment = Moment {
            chain,
            time: self.chains[chain as usize],
        };
        let mut clock = Clock::clone(&self.host);
        clock.advance_to(moment);
        self.operations.insert(
            ticket,
            Operation {
                target,
                moment,
                after,
                clock,
                last: LastClock::default(),
            },
        );
    }

    /// Returns a chain that the host has waited for completely.
    fn reusable_chain(&self) -> Option<u32> {
        (0..)
            .zip(&self.chains)
            .map(|(chain, &time)| Moment { chain, time })
            .find(|moment| self.host.is_after(*moment))
            .map(|moment| moment.chain)
    }

    /// Begins an operation: all operations that it waits for have completed.
    pub(super) fn begin(&mut self, ticket: Ticket) {
        if let Some(operation) = self.operations.get_mut(&ticket) {
            for before in operation.after.drain(..) {
                if let Some(clock) = before.get() {
                    operation.clock.join(clock);
                }
            }
        }
    }

    /// Completes an operation.
    pub(super) fn complete(&mut self, ticket: Ticket) {
        self.begin(ticket);
        if let Some(operation) = self.operations.get_mut(&ticket) {
            // Operations complete once.
            _ = operation.last.set(operation.clock.clone());
        }
    }

    /// Merges the clocks of the host and of an operation. Returns `true` if this changes the host's
    /// clock.
    pub(super) fn exchange(&mut self, ticket: Ticket) -> bool {
        let Some(operation) = self.operations.get_mut(&ticket) else {
            return false;
        };
        let has_changed = Arc::make_mut(&mut self.host).join(&operation.clock);
        operation.clock.join(&self.host);
        has_changed
    }

    /// Records that the host has waited for operations, and discards completed operations that are
    /// ordered before the host.
    pub(super) fn observe(&mut self, tickets: &[Ticket]) {
        let host = Arc::make_mut(&mut self.host);
        for clock in tickets
            .iter()
            .filter_map(|ticket| self.operations.get(ticket)?.last.get())
        {
            host.join(clock);
        }
        self.operations.retain(|_, operation| {
            operation.last.get().is_none() || !host.is_after(operation.moment)
        });
    }

    /// Returns the operations of a stream or context that the host has not waited for.
    pub(super) fn unobserved(&self, belongs: impl Fn(&Target) -> bool) -> Vec<Ticket> {
        self.operations
            .iter()
            .filter(|(_, operation)| belongs(&operation.target))
            .map(|(ticket, _)| *ticket)
            .collect()
    }

    /// Returns a number for an accessor that is part of an operation, or `None` if all numbers are
    /// used.
    pub(super) fn enroll(&mut self, ticket: Ticket, name: &str) -> Option<Party> {
        let operation = self
            .operations
            .get(&ticket)
            .filter(|_| self.parties.len() < MAX_PARTIES as usize)?;
        let name = match self.parties.last() {
            Some(last) if *last.name == *name => Arc::clone(&last.name),
            _ => name.into(),
        };
        self.parties.push(Member {
            moment: operation.moment,
            ticket,
            target: operation.target,
            name,
        });
        Some(self.parties.len() as Party)
    }

    pub(super) fn party(&self, party: Party) -> Option<&Member> {
        self.parties.get((party as usize).checked_sub(1)?)
    }

    /// Returns the mark after a step, and the access that the step races with.
    pub(super) fn step(&mut self, mark: Mark, step: Step) -> (Mark, Option<RacingAccess>) {
        let Self {
            parties,
            operations,
            readers,
            ..
        } = self;
        let accessor = parties.get((step.party as usize).wrapping_sub(1));
        let Some(operation) = accessor.and_then(|accessor| operations.get(&accessor.ticket)) else {
            return (mark, None);
        };
        mark.after(step, readers, |party| {
            parties
                .get((party as usize).wrapping_sub(1))
                .is_none_or(|other| operation.clock.is_after(other.moment))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark::WHOLE;
    use super::*;
    use crate::handle::Id;
    use curium_ptx::exec::AccessKind;

    const TARGET: fn() -> Target = || Target {
        device: 0,
        context: Id::from_number(0),
        stream: 0,
    };

    /// An order whose operations are named by numbers.
    struct Work(Order);

    impl Work {
        fn submit(&mut self, ticket: u64, after: &[u64]) {
            let after: Vec<Ticket> = after.iter().copied().map(Ticket::from_number).collect();
            self.0.submit(Ticket::from_number(ticket), TARGET(), &after);
        }

        fn run(&mut self, ticket: u64) -> Party {
            self.0.begin(Ticket::from_number(ticket));
            let party = self
                .0
                .enroll(Ticket::from_number(ticket), "work")
                .expect("there are numbers left");
            self.0.complete(Ticket::from_number(ticket));
            party
        }

        /// Returns `true` if a party races with another that wrote.
        fn races(&mut self, party: Party, other: Party) -> bool {
            let step = Step {
                party,
                how: AccessKind::Write,
                bytes: WHOLE,
            };
            self.0.step(Mark::written_by(other), step).1.is_some()
        }
    }

    #[test]
    fn work_is_ordered_after_indirect_dependencies() {
        let mut work = Work(Order::default());
        work.submit(1, &[]);
        work.submit(2, &[1]);
        work.submit(3, &[1]);
        work.submit(4, &[2, 3]);
        let [one, two, three, four] = [1, 2, 3, 4].map(|ticket| work.run(ticket));
        assert!(work.races(two, three) && work.races(three, two));
        for (party, other) in [
            (two, one),
            (three, one),
            (four, one),
            (four, two),
            (four, three),
            (one, one),
        ] {
            assert!(!work.races(party, other), "{party} {other}");
        }
        assert!(
            work.races(one, two),
            "work does not come after what follows it"
        );
    }

    #[test]
    fn completed_work_still_orders_its_dependents() {
        let mut work = Work(Order::default());
        work.submit(1, &[]);
        let one = work.run(1);
        work.submit(2, &[1]);
        work.submit(3, &[]);
        let [two, three] = [2, 3].map(|ticket| work.run(ticket));
        assert!(!work.races(two, one) && work.races(three, one));
    }

    #[test]
    fn queued_work_is_after_observed_work() {
        let mut work = Work(Order::default());
        work.submit(1, &[]);
        work.submit(2, &[]);
        let [one, two] = [1, 2].map(|ticket| work.run(ticket));
        work.0.observe(&[Ticket::from_number(1)]);
        assert_eq!(work.0.unobserved(|_| true), [Ticket::from_number(2)]);
        work.submit(3, &[]);
        let three = work.run(3);
        assert!(!work.races(three, one) && work.races(three, two));
        assert_eq!(work.0.chains.len(), 2, "chains are used again");
    }

    #[test]
    fn work_queued_before_a_wait_is_not_ordered_by_it() {
        let mut work = Work(Order::default());
        work.submit(1, &[]);
        work.submit(2, &[]);
        let one = work.run(1);
        work.0.observe(&[Ticket::from_number(1)]);
        let two = work.run(2);
        assert!(work.races(two, one));
    }

    #[test]
    fn exchange_orders_signaling_work() {
        let mut work = Work(Order::default());
        for ticket in 1..=3 {
            work.submit(ticket, &[]);
        }
        work.0.begin(Ticket::from_number(1));
        assert!(work.0.exchange(Ticket::from_number(1)));
        let one = work.run(1);
        work.0.exchange(Ticket::from_number(2));
        let [two, three] = [2, 3].map(|ticket| work.run(ticket));
        assert!(!work.races(two, one) && work.races(three, one));
    }
}
