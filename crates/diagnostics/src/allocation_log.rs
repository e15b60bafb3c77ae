//! Allocation logs.

mod event;
mod replay;
mod simulate_caching;
mod usage;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use curium_driver::CudaError;

pub use self::event::{AllocationEvent, CallSite, EventKind};
pub use self::replay::Replay;
pub use self::simulate_caching::CacheSample;
pub use self::usage::UsageSample;

/// A log of allocations and frees, in the order in which they happened, as recorded by an
/// [`AllocationRecorder`](crate::AllocationRecorder).
///
/// The text form has a header line and one line per event:
///
/// ```text
/// curium allocation log 1
/// 1200 allocate 0x7f0000000000 4096 256 1 src/model.rs:10:5
/// 1900 free 0x7f0000000000 4096 256 1
/// 2500 fail 0x0 99999999999 256 1 src/model.rs:12:5
/// 2700 map-segment 0x7f0002000000 33554432 1 0
/// ```
///
/// The columns are: time in nanoseconds since the start of the log, event kind, address, requested
/// bytes, alignment, stream number and, if known, the call site.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AllocationLog {
    events: Vec<AllocationEvent>,
}

/// The error for a line of a log that cannot be parsed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line} of the allocation log: {reason}")]
#[non_exhaustive]
pub struct ParseLogError {
    /// The line number, counted from 1.
    pub line: usize,
    /// The problem.
    pub reason: String,
}

impl AllocationLog {
    /// Creates a log from events.
    #[must_use]
    pub fn new(events: Vec<AllocationEvent>) -> Self {
        Self { events }
    }

    /// Returns the events, oldest first.
    #[must_use]
    pub fn events(&self) -> &[AllocationEvent] {
        &self.events
    }

    /// Returns the allocations without a matching free, by address.
    #[must_use]
    pub fn live(&self) -> Vec<AllocationEvent> {
        let mut live = HashMap::new();
        for event in &self.events {
            match event.kind {
                EventKind::Allocate => drop(live.insert(event.address, event.clone())),
                EventKind::Free => drop(live.remove(&event.address)),
                _ => {}
            }
        }
        let mut live: Vec<_> = live.into_values().collect();
        live.sort_by_key(|event| event.address);
        live
    }
}

impl FromStr for AllocationLog {
    type Err = ParseLogError;

    fn from_str(text: &str) -> Result<Self, ParseLogError> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, AllocationEvent::HEADER)) => {}
            first => {
                let line = first.map_or("nothing", |(_, line)| line);
                let expected = AllocationEvent::HEADER;
                return Err(ParseLogError {
                    line: 1,
                    reason: format!("expected the header {expected:?}, found {line:?}"),
                });
            }
        }
        let mut events = Vec::new();
        for (index, line) in lines {
            if line.trim().is_empty() {
                continue;
            }
            events.push(line.parse().map_err(|reason| ParseLogError {
                line: index + 1,
                reason,
            })?);
        }
        Ok(Self::new(events))
    }
}

impl fmt::Display for AllocationLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", AllocationEvent::HEADER)?;
        self.events
            .iter()
            .try_for_each(|event| writeln!(formatter, "{event}"))
    }
}

impl CudaError for ParseLogError {}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "curium allocation log 1\n\
        1200 allocate 0x7f0000000000 4096 256 1 a file.rs:10:5\n\
        1900 free 0x7f0000000000 4096 256 1\n\
        2000 allocate 0x200 1 1 18446744073709551615\n\
        2500 fail 0x0 99999999999 256 1 C:\\x.rs:12:5\n";

    #[test]
    fn log_survives_writing_and_reading() {
        let log: AllocationLog = TEXT.parse().expect("the log is well formed");
        assert_eq!(log.to_string(), TEXT);
        let sites: Vec<_> = log
            .events()
            .iter()
            .map(|event| event.site.clone())
            .collect();
        let site = sites[0]
            .as_ref()
            .expect("the first line has a line of code");
        assert_eq!((&*site.file, site.line, site.column), ("a file.rs", 10, 5));
        assert_eq!(sites[3].as_ref().map(|site| &*site.file), Some("C:\\x.rs"));
        assert_eq!(
            log.live()
                .iter()
                .map(|event| event.address)
                .collect::<Vec<_>>(),
            [0x200]
        );
    }

    #[test]
    fn invalid_line_is_an_error_with_its_number() {
        let cases = [
            ("", "line 1 of the allocation log: expected the header"),
            ("curium allocation log 2\n", "line 1 of"),
            (
                "curium allocation log 1\n1 alloc 0x0 1 1 1\n",
                "line 2 of the allocation log: invalid event \"alloc\"",
            ),
            (
                "curium allocation log 1\n\n1 free 7 1 1 1\n",
                "line 3 of the allocation log: invalid address \"7\"",
            ),
            (
                "curium allocation log 1\n1 free 0x7 1 1\n",
                "line 2 of the allocation log: missing stream",
            ),
            (
                "curium allocation log 1\n-1 free 0x7 1 1 1\n",
                "line 2 of the allocation log: invalid time \"-1\"",
            ),
            (
                "curium allocation log 1\n1 free 0x7 1 1 1 x.rs\n",
                "line 2 of the allocation log: invalid call site \"x.rs\"",
            ),
        ];
        for (text, expected) in cases {
            let error = text
                .parse::<AllocationLog>()
                .expect_err("the log is not well formed")
                .to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
