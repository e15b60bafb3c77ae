//! Memory usage over time.

use std::collections::BTreeMap;

use super::{AllocationLog, EventKind};

/// The memory usage after an event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct UsageSample {
    /// The time in nanoseconds since the start of the log.
    pub nanoseconds: u64,
    /// The bytes in use.
    pub live_bytes: u64,
    /// The number of live allocations.
    pub live: u64,
    /// The distance in bytes from the start of the first to the end of the last live allocation.
    /// Unused memory within it is fragmented.
    pub span_bytes: u64,
}

impl AllocationLog {
    /// Returns the memory usage after each event. Frees without a matching allocation are ignored.
    #[must_use]
    pub fn usage(&self) -> Vec<UsageSample> {
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let mut live_bytes = 0;
        let samples = self.events.iter().map(|event| {
            match event.kind {
                EventKind::Allocate => {
                    live_bytes += event.bytes as u64;
                    live_bytes -= live
                        .insert(event.address, event.bytes as u64)
                        .unwrap_or_default();
                }
                EventKind::Free => live_bytes -= live.remove(&event.address).unwrap_or_default(),
                _ => {}
            }
            let first = live.first_key_value().map_or(0, |(address, _)| *address);
            let end = live
                .last_key_value()
                .map_or(0, |(address, bytes)| address + bytes);
            UsageSample {
                nanoseconds: event.nanoseconds,
                live_bytes,
                live: live.len() as u64,
                span_bytes: end - first,
            }
        });
        samples.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_follows_the_events() {
        let log: AllocationLog =
            "curium allocation log 1\n1 allocate 0x1000 100 1 1\n2 allocate 0x2000 50 1 1\n\
             3 free 0x1000 100 1 1\n4 free 0x9000 7 1 1\n5 fail 0x0 7 1 1\n"
                .parse()
                .expect("the log is well formed");
        let usage: Vec<_> = log
            .usage()
            .iter()
            .map(|sample| (sample.live_bytes, sample.live, sample.span_bytes))
            .collect();
        assert_eq!(
            usage,
            [
                (100, 1, 100),
                (150, 2, 0x1000 + 50),
                (50, 1, 50),
                (50, 1, 50),
                (50, 1, 50)
            ]
        );
    }
}
