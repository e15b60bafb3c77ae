//! The comparison of the last calls of the ranks after a timeout.

use std::fmt;

use crate::error::{RecentCall, RendezvousError, TimeoutError};
use crate::rendezvous::Exchange;

/// The number of calls that rank 0 sends.
const CALLS: usize = 16;

/// The number of bytes of a call: its number, the number of elements, the root, and the names of
/// the operation, of the type and of the reduction.
const CALL_BYTES: usize = 3 * 8 + 3 * NAME_BYTES;

/// The number of bytes of a name, which is filled with zeros.
const NAME_BYTES: usize = 16;

/// The root of an operation without one.
const NO_ROOT: u64 = u64::MAX;

/// A collective of this rank that differs from that of rank 0. See [`TimeoutError::compare_calls`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CallDifference {
    /// The rank.
    pub rank: usize,
    /// The number of the collective on the communicator, from 1.
    pub collective: u64,
    /// The call of this rank, such as `broadcast of 4 f32 (root 0)`; `None` if it has not called this
    /// collective.
    pub call: Option<Box<str>>,
    /// The call of rank 0; `None` if it has not called this collective.
    pub call_of_rank_0: Option<Box<str>>,
}

/// A call that was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct SentCall {
    collective: u64,
    count: u64,
    root: u64,
    name: [u8; NAME_BYTES],
    element: [u8; NAME_BYTES],
    /// Empty if the operation has no reduction.
    reduction: [u8; NAME_BYTES],
}

impl TimeoutError {
    /// Compares the last collectives of this rank with those of rank 0, after the operations of the
    /// ranks did not complete.
    ///
    /// Every rank whose operation timed out calls this, with the exchange of the job, such as its
    /// [`Rendezvous`](crate::Rendezvous). Returns the first collective that differs, or `None`:
    /// then another rank differs, or did not reach the operation. The ranks that differ from rank 0
    /// are the culprits, or rank 0 if all others differ.
    ///
    /// ```no_run
    /// # fn example(mut rendezvous: curium_nccl::Rendezvous, result: curium_nccl::Result<()>) {
    /// if let Err(curium_nccl::Error::Timeout(error)) = result {
    ///     match error.compare_calls(&mut rendezvous) {
    ///         Ok(Some(difference)) => eprintln!("{difference}"),
    ///         Ok(None) => {}
    ///         // Names the ranks that did not time out.
    ///         Err(missing) => eprintln!("{missing}"),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the exchange: [`RendezvousError::MissingRanks`] names the ranks that do not
    /// take part, because they have ended, or wait for something else.
    pub fn compare_calls(
        &self,
        exchange: &mut impl Exchange,
    ) -> Result<Option<CallDifference>, RendezvousError> {
        let own = sent_calls(&self.recent);
        let mut bytes = to_bytes(&own);
        exchange.broadcast(&mut bytes)?;
        let first = from_bytes(&bytes);
        Ok(difference(self.rank, &own, &first))
    }
}

impl fmt::Display for CallDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            collective,
            call,
            call_of_rank_0,
        } = self;
        let nothing = "nothing";
        let call = call.as_deref().unwrap_or(nothing);
        let first = call_of_rank_0.as_deref().unwrap_or(nothing);
        write!(
            formatter,
            "collective {collective}: rank {rank} called {call}, but rank 0 called {first}"
        )
    }
}

fn sent_calls(recent: &[RecentCall]) -> Vec<SentCall> {
    let collectives = recent.iter().filter_map(|call| {
        Some(SentCall {
            collective: call.collective?,
            count: call.count as u64,
            root: call.root.map_or(NO_ROOT, |root| root as u64),
            name: name(call.name),
            element: padded(call.element),
            reduction: padded(call.reduction.unwrap_or_default()),
        })
    });
    collectives.collect()
}

/// Returns the name of a collective without the part of this rank in it: the root calls
/// `gather_into`, and the others `gather`.
fn name(name: &str) -> [u8; NAME_BYTES] {
    let name = name
        .trim_end_matches("_into")
        .trim_end_matches("_from")
        .trim_end_matches("_in_place");
    padded(name)
}

fn padded(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (byte, letter) in bytes.iter_mut().zip(name.bytes()) {
        *byte = letter;
    }
    bytes
}

fn to_bytes(calls: &[SentCall]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CALLS * CALL_BYTES);
    for call in calls {
        bytes.extend(call.collective.to_be_bytes());
        bytes.extend(call.count.to_be_bytes());
        bytes.extend(call.root.to_be_bytes());
        bytes.extend(call.name);
        bytes.extend(call.element);
        bytes.extend(call.reduction);
    }
    bytes.resize(CALLS * CALL_BYTES, 0);
    bytes
}

fn from_bytes(bytes: &[u8]) -> Vec<SentCall> {
    let (calls, _) = bytes.as_chunks::<CALL_BYTES>();
    let calls = calls.iter().filter_map(|call| {
        let (collective, call) = call.split_first_chunk()?;
        let (count, call) = call.split_first_chunk()?;
        let (root, call) = call.split_first_chunk()?;
        let (name, call) = call.split_first_chunk()?;
        let (element, reduction) = call.split_first_chunk()?;
        Some(SentCall {
            collective: u64::from_be_bytes(*collective),
            count: u64::from_be_bytes(*count),
            root: u64::from_be_bytes(*root),
            name: *name,
            element: *element,
            reduction: reduction.try_into().ok()?,
        })
    });
    calls.filter(|call| call.collective != 0).collect()
}

/// Returns the first collective that differs, of those that both lists cover.
fn difference(rank: usize, own: &[SentCall], first: &[SentCall]) -> Option<CallDifference> {
    // Lists begin later if there were more calls.
    let begin = own
        .first()
        .map_or(1, |call| call.collective)
        .max(first.first().map_or(1, |call| call.collective));
    let end = last_collective(own).max(last_collective(first));
    let collective = (begin..=end).find(|number| call(own, *number) != call(first, *number))?;
    Some(CallDifference {
        rank,
        collective,
        call: call(own, collective).map(SentCall::describe),
        call_of_rank_0: call(first, collective).map(SentCall::describe),
    })
}

fn last_collective(calls: &[SentCall]) -> u64 {
    calls.last().map_or(0, |call| call.collective)
}

fn call(calls: &[SentCall], collective: u64) -> Option<&SentCall> {
    calls.iter().find(|call| call.collective == collective)
}

impl SentCall {
    fn describe(&self) -> Box<str> {
        let names = [&self.name, &self.element, &self.reduction];
        let names = names.map(|name| String::from_utf8_lossy(name));
        let [name, element, reduction] = names.each_ref().map(|name| name.trim_end_matches('\0'));
        let call = format!("{name} of {} {element}", self.count);
        let root = match self.root {
            NO_ROOT => String::new(),
            root => format!("root {root}"),
        };
        match (reduction, &*root) {
            ("", "") => call.into(),
            ("", detail) | (detail, "") => format!("{call} ({detail})").into(),
            (reduction, root) => format!("{call} ({reduction}, {root})").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

    /// An exchange whose other ranks receive the bytes of rank 0.
    struct Copied<'a> {
        rank: usize,
        bytes: &'a mut Vec<u8>,
    }

    impl Exchange for Copied<'_> {
        fn rank(&self) -> usize {
            self.rank
        }

        fn world_size(&self) -> usize {
            4
        }

        fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), RendezvousError> {
            match self.rank {
                0 => *self.bytes = bytes.to_vec(),
                _ => bytes.copy_from_slice(self.bytes),
            }
            Ok(())
        }
    }

    fn timed_out(rank: usize, calls: &[(&'static str, usize)]) -> TimeoutError {
        let mut collective = 0;
        let recent = (1..).zip(calls).map(|(number, (name, count))| {
            let is_collective = *name != "send";
            collective += u64::from(is_collective);
            RecentCall {
                number,
                collective: is_collective.then_some(collective),
                name,
                count: *count,
                element: "f32",
                reduction: (*name == "all_reduce").then_some("Sum"),
                root: None,
            }
        });
        TimeoutError {
            operation: "Communicator::synchronize",
            outstanding: Box::default(),
            recent: recent.collect(),
            rank,
            size: 4,
            waited: Duration::from_secs(1),
        }
    }

    fn compare(first: &TimeoutError, other: &TimeoutError) -> TestResult<Option<CallDifference>> {
        let mut bytes = Vec::new();
        let mut exchange = Copied {
            rank: 0,
            bytes: &mut bytes,
        };
        assert_eq!(first.compare_calls(&mut exchange)?, None);
        let mut exchange = Copied {
            rank: other.rank,
            bytes: &mut bytes,
        };
        Ok(other.compare_calls(&mut exchange)?)
    }

    #[test]
    fn first_collective_that_differs_is_named() -> TestResult {
        let first = timed_out(
            0,
            &[
                ("broadcast_from", 4),
                ("all_reduce", 64),
                ("gather_into", 8),
            ],
        );
        let same = timed_out(
            1,
            &[
                ("broadcast", 4),
                ("send", 3),
                ("all_reduce", 64),
                ("gather", 8),
            ],
        );
        assert_eq!(compare(&first, &same)?, None);
        let other = timed_out(2, &[("broadcast", 4), ("all_reduce", 65), ("gather", 8)]);
        let difference = compare(&first, &other)?.ok_or("no difference in the count")?;
        let text = "collective 2: rank 2 called all_reduce of 65 f32 (Sum), but rank 0 called all_reduce of 64 f32 (Sum)";
        assert_eq!(difference.to_string(), text);
        Ok(())
    }

    #[test]
    fn other_types_reductions_and_roots_are_named() -> TestResult {
        let first = timed_out(0, &[("broadcast_from", 4), ("all_reduce", 64)]);
        let mut other = timed_out(1, &[("broadcast", 4), ("all_reduce", 64)]);
        other.recent[1].element = "f64";
        let difference = compare(&first, &other)?.ok_or("no difference in the type")?;
        let text = "collective 2: rank 1 called all_reduce of 64 f64 (Sum), but rank 0 called all_reduce of 64 f32 (Sum)";
        assert_eq!(difference.to_string(), text);
        other.recent[1] = RecentCall {
            reduction: Some("Max"),
            ..first.recent[1]
        };
        let difference = compare(&first, &other)?.ok_or("no difference in the reduction")?;
        let text = "collective 2: rank 1 called all_reduce of 64 f32 (Max), but rank 0 called all_reduce of 64 f32 (Sum)";
        assert_eq!(difference.to_string(), text);
        other.recent[0].root = Some(3);
        let difference = compare(&first, &other)?.ok_or("no difference in the root")?;
        let text = "collective 1: rank 1 called broadcast of 4 f32 (root 3), but rank 0 called broadcast of 4 f32";
        assert_eq!(difference.to_string(), text);
        Ok(())
    }

    #[test]
    fn rank_that_is_behind_called_nothing() -> TestResult {
        let first = timed_out(0, &[("broadcast", 4), ("all_reduce", 64)]);
        let behind = timed_out(3, &[("broadcast", 4)]);
        let difference = compare(&first, &behind)?.ok_or("no missing call")?;
        let text =
            "collective 2: rank 3 called nothing, but rank 0 called all_reduce of 64 f32 (Sum)";
        assert_eq!(difference.to_string(), text);
        let difference = compare(
            &behind,
            &timed_out(1, &[("broadcast", 4), ("all_reduce", 64)]),
        )?;
        assert_eq!(
            difference.and_then(|difference| difference.call_of_rank_0),
            None
        );
        Ok(())
    }

    /// Lists of 16 calls begin later than the first call.
    #[test]
    fn only_common_calls_are_compared() {
        let calls = |numbers: std::ops::RangeInclusive<u64>| -> Vec<SentCall> {
            numbers
                .map(|collective| SentCall {
                    collective,
                    count: 1,
                    root: NO_ROOT,
                    name: name("all_reduce"),
                    element: padded("f32"),
                    reduction: padded("Sum"),
                })
                .collect()
        };
        assert_eq!(difference(1, &calls(3..=18), &calls(5..=18)), None);
        let behind = difference(1, &calls(3..=18), &calls(5..=20));
        assert_eq!(behind.map(|difference| difference.collective), Some(19));
        assert_eq!(from_bytes(&to_bytes(&calls(5..=20))), calls(5..=20));
    }
}
