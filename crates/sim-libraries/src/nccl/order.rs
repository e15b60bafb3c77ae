//! The order of operations on streams, which shows deadlocks.
//!
//! An operation ends when every rank has reached it, and delays what follows on its streams. If one
//! stream has operation A before operation B, and another has B before A, neither can end. The
//! operations of a group progress together and have no order. Work that is captured is not
//! considered, nor is the order between streams.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use parking_lot::Mutex;

use super::clique::Channel;

/// An operation of a communicator on all of its ranks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct OperationKey {
    /// The number of the communicator.
    pub(super) communicator: u64,
    pub(super) channel: Channel,
    /// The number of the call.
    pub(super) call: u64,
}

/// An operation of a rank on a stream, from its call to its end.
#[derive(Clone, Debug)]
struct Entry {
    operation: OperationKey,
    /// The call, such as `ncclAllReduce(…)`.
    call: String,
    rank: usize,
    group: u64,
}

/// The operations of each stream that have not ended, in the order of their calls.
#[derive(Debug, Default)]
struct Order {
    streams: HashMap<u64, VecDeque<Entry>>,
    /// The streams of each operation.
    streams_of: HashMap<OperationKey, Vec<u64>>,
    groups: u64,
}

/// An operation of a rank that is ordered on its stream. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Ordered {
    stream: u64,
    operation: OperationKey,
    rank: usize,
}

/// An operation that is called before another one on a stream.
struct Step {
    stream: u64,
    before: Entry,
    after: Entry,
}

static ORDER: Mutex<Option<Order>> = Mutex::new(None);

/// Starts a group, whose operations have no order among each other.
pub(super) fn start_group() -> u64 {
    let mut order = ORDER.lock();
    let order = order.get_or_insert_default();
    order.groups += 1;
    order.groups
}

impl Ordered {
    /// Adds an operation of a rank to a stream. The error describes the deadlock that it causes,
    /// with the communicators that take part.
    pub(super) fn new(
        stream: u64,
        operation: OperationKey,
        call: String,
        rank: usize,
        group: u64,
    ) -> Result<Self, (String, Vec<u64>)> {
        let mut order = ORDER.lock();
        let order = order.get_or_insert_default();
        let entry = Entry {
            operation,
            call,
            rank,
            group,
        };
        if let Some(steps) = order.deadlock(stream, &entry) {
            return Err(describe(&steps));
        }
        order.streams.entry(stream).or_default().push_back(entry);
        order.streams_of.entry(operation).or_default().push(stream);
        Ok(Self {
            stream,
            operation,
            rank,
        })
    }
}

impl Drop for Ordered {
    fn drop(&mut self) {
        let mut order = ORDER.lock();
        let Some(order) = order.as_mut() else { return };
        if let Some(entries) = order.streams.get_mut(&self.stream) {
            let position = entries
                .iter()
                .position(|entry| entry.operation == self.operation && entry.rank == self.rank);
            position.map(|position| entries.remove(position));
            if entries.is_empty() {
                order.streams.remove(&self.stream);
            }
        }
        if let Some(streams) = order.streams_of.get_mut(&self.operation) {
            let position = streams.iter().position(|stream| *stream == self.stream);
            position.map(|position| streams.swap_remove(position));
            if streams.is_empty() {
                order.streams_of.remove(&self.operation);
            }
        }
    }
}

impl Order {
    /// Returns the steps from a new operation of a stream back to one that precedes it there.
    fn deadlock(&self, stream: u64, new: &Entry) -> Option<Vec<Step>> {
        let earlier: Vec<&Entry> = self
            .streams
            .get(&stream)?
            .iter()
            .filter(|entry| entry.group != new.group)
            .collect();
        if earlier.is_empty() {
            return None;
        }
        let mut previous: HashMap<OperationKey, Step> = HashMap::new();
        let mut visited = HashSet::from([new.operation]);
        let mut pending = vec![new.operation];
        while let Some(operation) = pending.pop() {
            if let Some(before) = earlier.iter().find(|entry| entry.operation == operation)
                && operation != new.operation
            {
                let mut steps = vec![Step {
                    stream,
                    before: (*before).clone(),
                    after: new.clone(),
                }];
                let mut current = operation;
                while let Some(step) = previous.remove(&current) {
                    current = step.before.operation;
                    steps.push(step);
                }
                return Some(steps);
            }
            for step in self.steps_after(operation) {
                if visited.insert(step.after.operation) {
                    pending.push(step.after.operation);
                    previous.insert(step.after.operation, step);
                }
            }
        }
        None
    }

    /// Returns the operations that follow one on its streams: those of the next group.
    fn steps_after(&self, operation: OperationKey) -> Vec<Step> {
        let mut steps = Vec::new();
        for stream in self.streams_of.get(&operation).into_iter().flatten() {
            let Some(entries) = self.streams.get(stream) else {
                continue;
            };
            let Some(position) = entries
                .iter()
                .position(|entry| entry.operation == operation)
            else {
                continue;
            };
            let before = &entries[position];
            let mut followers = entries
                .iter()
                .skip(position + 1)
                .filter(|entry| entry.group != before.group);
            let Some(first) = followers.next() else {
                continue;
            };
            let rest = followers.take_while(|entry| entry.group == first.group);
            for after in std::iter::once(first).chain(rest) {
                steps.push(Step {
                    stream: *stream,
                    before: before.clone(),
                    after: after.clone(),
                });
            }
        }
        steps
    }
}

/// Describes a deadlock, and returns the communicators that take part.
fn describe(steps: &[Step]) -> (String, Vec<u64>) {
    let mut text = String::from("deadlock: the operations can never run, because ");
    let mut communicators = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let Step {
            stream,
            before,
            after,
        } = step;
        let separator = if index == 0 { "" } else { ", and " };
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{separator}rank {} calls {} before {} on stream {stream}",
            before.rank,
            before.named(),
            after.named()
        );
        communicators.extend([before.operation.communicator, after.operation.communicator]);
    }
    communicators.sort_unstable();
    communicators.dedup();
    (text, communicators)
}

impl Entry {
    fn named(&self) -> String {
        let OperationKey {
            communicator, call, ..
        } = self.operation;
        format!(
            "operation {call} of communicator {communicator}, {}",
            self.call
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of communicators and streams that no other test uses.
    const UNUSED: u64 = 1 << 40;

    fn call(
        stream: u64,
        communicator: u64,
        rank: usize,
        group: u64,
    ) -> Result<Ordered, (String, Vec<u64>)> {
        let operation = OperationKey {
            communicator: UNUSED + communicator,
            channel: Channel::Collective,
            call: 1,
        };
        Ordered::new(
            UNUSED + stream,
            operation,
            "ncclAllReduce".to_owned(),
            rank,
            group,
        )
    }

    #[test]
    fn opposite_orders_are_a_deadlock() {
        let _first = [
            call(1, 1, 0, start_group()).expect("conflict with no other call"),
            call(1, 2, 0, start_group()).expect("it follows"),
        ];
        let _second = call(2, 2, 1, start_group()).expect("conflict with no other call");
        let (text, communicators) = call(2, 1, 1, start_group()).expect_err("neither can end");
        assert!(
            text.contains("rank 1 calls operation 1 of communicator")
                && text.contains("rank 0 calls"),
            "{text}"
        );
        assert_eq!(communicators, [UNUSED + 1, UNUSED + 2]);
    }

    /// A circle of three streams.
    #[test]
    fn circle_is_a_deadlock() {
        let mut all = Vec::new();
        for stream in 0..3 {
            all.push(
                call(10 + stream, 10 + stream, 0, start_group())
                    .expect("conflict with no other call"),
            );
        }
        for stream in 0..2 {
            all.push(call(10 + stream, 11 + stream, 1, start_group()).expect("no circle yet"));
        }
        let (text, _) = call(12, 10, 1, start_group()).expect_err("the circle is closed");
        assert_eq!(text.matches(" calls ").count(), 3, "{text}");
    }

    #[test]
    fn groups_and_ended_operations_have_no_order() {
        let group = start_group();
        let _grouped = [call(20, 20, 0, group), call(20, 21, 0, group)];
        let _other = call(21, 21, 1, start_group()).expect("conflict with no other call");
        drop(call(21, 20, 1, start_group()).expect("a group has no order"));
        let ended = call(22, 22, 0, start_group()).expect("conflict with no other call");
        let _next = call(22, 23, 0, start_group()).expect("it follows");
        drop(ended);
        let _third = call(23, 23, 1, start_group()).expect("conflict with no other call");
        drop(call(23, 22, 1, start_group()).expect("the other has ended"));
    }
}
