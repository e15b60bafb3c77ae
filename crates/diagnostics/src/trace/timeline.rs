//! The result of a trace.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::json;
use super::picture;

/// The kind of a [`TraceItem`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum TraceItemKind {
    /// A call of the driver.
    Call,
    /// A `tracing` span, from its entry to its exit.
    Span,
    /// A kernel, also one inside a graph.
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Memset,
    /// The call that makes a stream wait for an event. The duration is that of the call.
    Wait,
    /// A wait that hazard tracking has inserted, at the time of its insertion.
    HazardWait,
    /// An allocation, at the time of the call.
    Allocation,
    /// A deallocation, at the time of the call.
    Free,
    /// Work enqueued within [`Trace::on_stream`](crate::Trace::on_stream).
    Work,
}

/// The row of a [`TraceItem`] in viewers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum TraceRow {
    /// A host thread.
    Thread {
        /// A number of the thread within the process.
        number: u64,
    },
    /// A stream.
    Stream {
        /// The ordinal of the device.
        device: i32,
        /// A number of the stream: CUPTI's if the trace records activities. 0 stands for calls that
        /// use no stream.
        stream: u64,
    },
}

/// An item of a [`Timeline`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TraceItem {
    /// The kind.
    pub kind: TraceItemKind,
    /// The name of the function, the kernel, the span or the work, or a description.
    pub name: Arc<str>,
    /// The thread or the stream.
    pub row: TraceRow,
    /// The start, since the start of the trace.
    pub start: Duration,
    /// The duration.
    pub duration: Duration,
    /// The number of bytes of copies, fills, allocations and hazards.
    pub bytes: Option<u64>,
    /// The node of operations inside graphs.
    pub graph_node: Option<u64>,
    /// The result code of calls.
    pub code: Option<u32>,
}

/// The items of a kind with the same name. See [`Timeline::aggregate`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TraceAggregate {
    /// The kind.
    pub kind: TraceItemKind,
    /// The name.
    pub name: Arc<str>,
    /// The number of items.
    pub count: u64,
    /// The sum of the durations.
    pub total: Duration,
    /// The shortest duration.
    pub min: Duration,
    /// The longest duration.
    pub max: Duration,
    /// The sum of the durations, divided by that of all items of the same side: of the host or of
    /// the devices. Work of [`Trace::on_stream`](crate::Trace::on_stream) consists of other items,
    /// and counts as a side of its own.
    pub share: f64,
}

/// The items that a [`Trace`](crate::Trace) recorded, ordered by their start.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub(super) items: Vec<TraceItem>,
    pub(super) thread_names: BTreeMap<u64, String>,
    pub(super) calls_dropped: u64,
    pub(super) work_dropped: u64,
    pub(super) work_lost: u64,
}

/// The items whose durations are compared with each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Side {
    Host,
    Device,
    Work,
}

impl TraceItem {
    /// Returns the end, since the start of the trace.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.start + self.duration
    }
}

impl TraceItemKind {
    /// Returns the category in trace viewers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Span => "span",
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Memset => "memset",
            Self::Wait => "wait",
            Self::HazardWait => "hazard wait",
            Self::Allocation => "allocation",
            Self::Free => "free",
            Self::Work => "work",
        }
    }

    fn side(self) -> Side {
        match self {
            Self::Call | Self::Span => Side::Host,
            Self::Work => Side::Work,
            _ => Side::Device,
        }
    }
}

impl fmt::Display for TraceItemKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl TraceAggregate {
    /// Returns the mean duration.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let nanoseconds = self.total.as_nanos() / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

impl Timeline {
    /// Returns the items, ordered by their start.
    #[must_use]
    pub fn items(&self) -> &[TraceItem] {
        &self.items
    }

    /// Returns the number of host calls that exceeded the capacity of the trace.
    #[must_use]
    pub fn calls_dropped(&self) -> u64 {
        self.calls_dropped
    }

    /// Returns the number of other items that exceeded the capacity of the trace, or of CUPTI's
    /// buffers.
    #[must_use]
    pub fn work_dropped(&self) -> u64 {
        self.work_dropped
    }

    /// Returns the number of operations without an end: they had not completed, or their context
    /// has failed.
    #[must_use]
    pub fn work_lost(&self) -> u64 {
        self.work_lost
    }

    /// Returns the items that overlap the interval from `start` to `end`, both since the start of
    /// the trace. They keep their times.
    #[must_use]
    pub fn between(&self, start: Duration, end: Duration) -> Self {
        let items = self.items.iter();
        let overlapping = items.filter(|item| item.start <= end && item.end() >= start);
        Self {
            items: overlapping.cloned().collect(),
            ..self.clone_without_items()
        }
    }

    fn clone_without_items(&self) -> Self {
        Self {
            items: Vec::new(),
            thread_names: self.thread_names.clone(),
            calls_dropped: self.calls_dropped,
            work_dropped: self.work_dropped,
            work_lost: self.work_lost,
        }
    }

    /// Returns the durations of the items by kind and name, the largest sum first.
    #[must_use]
    pub fn aggregate(&self) -> Vec<TraceAggregate> {
        let mut aggregates: HashMap<(TraceItemKind, &str), TraceAggregate> = HashMap::new();
        let mut sums: HashMap<Side, Duration> = HashMap::new();
        for item in &self.items {
            *sums.entry(item.kind.side()).or_default() += item.duration;
            let aggregate = aggregates
                .entry((item.kind, &item.name))
                .or_insert_with(|| TraceAggregate {
                    kind: item.kind,
                    name: Arc::clone(&item.name),
                    count: 0,
                    total: Duration::ZERO,
                    min: Duration::MAX,
                    max: Duration::ZERO,
                    share: 0.0,
                });
            aggregate.count += 1;
            aggregate.total += item.duration;
            aggregate.min = aggregate.min.min(item.duration);
            aggregate.max = aggregate.max.max(item.duration);
        }
        let mut aggregates: Vec<_> = aggregates.into_values().collect();
        for aggregate in &mut aggregates {
            let sum = sums[&aggregate.kind.side()];
            if !sum.is_zero() {
                aggregate.share = aggregate.total.as_secs_f64() / sum.as_secs_f64();
            }
        }
        aggregates.sort_by(|one, other| {
            other
                .total
                .cmp(&one.total)
                .then_with(|| (one.kind, &one.name).cmp(&(other.kind, &other.name)))
        });
        aggregates
    }

    /// Writes the items as JSON in the trace event format, which Perfetto and `chrome://tracing`
    /// open.
    ///
    /// The trace reports what is missing: the fields `calls_dropped`, `work_dropped` and
    /// `work_lost` are the numbers that the methods of these names return.
    ///
    /// # Errors
    ///
    /// An error of `writer`.
    pub fn write(&self, mut writer: impl io::Write) -> io::Result<()> {
        json::write(&mut writer, self)
    }

    /// Draws the items as an SVG picture: a row for each thread and stream, with the time from left
    /// to right. Items that are too short to be visible are merged; [`between`](Self::between)
    /// selects a part of the time.
    #[must_use]
    pub fn to_svg(&self) -> String {
        picture::svg(self)
    }

    /// Draws the items as a self-contained HTML page: the picture of [`to_svg`](Self::to_svg) and
    /// the table of [`aggregate`](Self::aggregate).
    #[must_use]
    pub fn to_html(&self) -> String {
        picture::html(self)
    }

    /// Returns the rows that have items, threads first.
    pub(super) fn rows(&self) -> Vec<TraceRow> {
        let mut rows: Vec<_> = self.items.iter().map(|item| item.row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Returns the name of a row in viewers, without its device.
    pub(super) fn row_name(&self, row: TraceRow) -> String {
        match row {
            TraceRow::Thread { number } => self
                .thread_names
                .get(&number)
                .cloned()
                .unwrap_or_else(|| format!("thread {number}")),
            TraceRow::Stream { stream: 0, .. } => "no stream".to_owned(),
            TraceRow::Stream { stream, .. } => format!("stream {stream}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::trace) fn item(
        kind: TraceItemKind,
        name: &str,
        row: TraceRow,
        microseconds: std::ops::Range<u64>,
    ) -> TraceItem {
        TraceItem {
            kind,
            name: name.into(),
            row,
            start: Duration::from_micros(microseconds.start),
            duration: Duration::from_micros(microseconds.end - microseconds.start),
            bytes: None,
            graph_node: None,
            code: None,
        }
    }

    pub(in crate::trace) const HOST: TraceRow = TraceRow::Thread { number: 1 };
    pub(in crate::trace) const STREAM: TraceRow = TraceRow::Stream {
        device: 0,
        stream: 7,
    };

    fn timeline() -> Timeline {
        Timeline {
            items: vec![
                item(TraceItemKind::Call, "cuLaunchKernel", HOST, 0..4),
                item(TraceItemKind::Kernel, "saxpy", STREAM, 5..15),
                item(TraceItemKind::Kernel, "saxpy", STREAM, 20..50),
                item(TraceItemKind::Copy, "copy host to device", STREAM, 60..120),
            ],
            ..Timeline::default()
        }
    }

    #[test]
    fn aggregates_have_counts_sums_and_shares() {
        let aggregates = timeline().aggregate();
        let names: Vec<_> = aggregates
            .iter()
            .map(|aggregate| &*aggregate.name)
            .collect();
        assert_eq!(names, ["copy host to device", "saxpy", "cuLaunchKernel"]);
        let saxpy = &aggregates[1];
        assert_eq!(saxpy.count, 2);
        assert_eq!(saxpy.total, Duration::from_micros(40));
        assert_eq!(saxpy.mean(), Duration::from_micros(20));
        assert_eq!(saxpy.min, Duration::from_micros(10));
        assert_eq!(saxpy.max, Duration::from_micros(30));
        assert!((saxpy.share - 0.4).abs() < 1e-12);
        assert!((aggregates[2].share - 1.0).abs() < 1e-12);
    }

    #[test]
    fn interval_selects_the_items_that_overlap() {
        let selected = timeline().between(Duration::from_micros(15), Duration::from_micros(30));
        let starts: Vec<_> = selected
            .items()
            .iter()
            .map(|item| item.start.as_micros())
            .collect();
        assert_eq!(starts, [5, 20]);
    }
}
