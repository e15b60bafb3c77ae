//! Allocation events.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::str::FromStr;

use curium_memory::SegmentChangeKind;

/// An allocation, a free, or a failed allocation.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AllocationEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// The time in nanoseconds since the start of the log.
    pub nanoseconds: u64,
    /// The address. For a failed allocation, the free memory of the device in bytes, or 0 if
    /// unknown.
    pub address: u64,
    /// The requested size, or the size of the segment, in bytes.
    pub bytes: usize,
    /// The requested alignment; 1 for segments.
    pub alignment: usize,
    /// The stream number; 0 for segments, which all streams share.
    pub stream: u64,
    /// The call site, if known.
    pub site: Option<CallSite>,
}

/// The kind of an allocation event.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// An allocation.
    Allocate,
    /// A free.
    Free,
    /// A failed allocation.
    Fail,
    /// The resource allocated a segment upstream.
    AllocateSegment,
    /// The resource released a segment upstream.
    FreeSegment,
    /// The resource mapped physical memory.
    MapSegment,
    /// The resource unmapped physical memory.
    UnmapSegment,
}

/// A call site in source code.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct CallSite {
    /// The file.
    pub file: Cow<'static, str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl AllocationEvent {
    /// The header line of a log.
    pub(crate) const HEADER: &'static str = "curium allocation log 1";
}

impl EventKind {
    fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Fail => "fail",
            Self::AllocateSegment => "allocate-segment",
            Self::FreeSegment => "free-segment",
            Self::MapSegment => "map-segment",
            Self::UnmapSegment => "unmap-segment",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        const ALL: [EventKind; 7] = [
            EventKind::Allocate,
            EventKind::Free,
            EventKind::Fail,
            EventKind::AllocateSegment,
            EventKind::FreeSegment,
            EventKind::MapSegment,
            EventKind::UnmapSegment,
        ];
        ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns `true` for segment events.
    #[must_use]
    pub fn is_segment_event(self) -> bool {
        !matches!(self, Self::Allocate | Self::Free | Self::Fail)
    }
}

impl From<SegmentChangeKind> for EventKind {
    fn from(kind: SegmentChangeKind) -> Self {
        match kind {
            SegmentChangeKind::Allocate => Self::AllocateSegment,
            SegmentChangeKind::Free => Self::FreeSegment,
            SegmentChangeKind::Map => Self::MapSegment,
            SegmentChangeKind::Unmap => Self::UnmapSegment,
        }
    }
}

impl From<&'static Location<'static>> for CallSite {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: location.file().into(),
            line: location.line(),
            column: location.column(),
        }
    }
}

/// Parses a line of a log. The error describes the problem. The largest size of memory in a log, 16
/// TiB. No machine has more, and sums of as many as a log has do not overflow.
const MAX_BYTES: usize = 1 << 44;

/// The largest address in a log: addresses have 57 bits at most.
const MAX_ADDRESS: u64 = 1 << 57;

/// The longest time in a log, 73 years.
const MAX_NANOSECONDS: u64 = 1 << 61;

impl FromStr for AllocationEvent {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut fields = line.trim().splitn(7, ' ');
        let mut field = |name: &str| fields.next().ok_or_else(|| format!("missing {name}"));
        let nanoseconds = number(field("time")?, "time")?;
        let name = field("event")?;
        let kind = EventKind::from_name(name).ok_or_else(|| format!("invalid event {name:?}"))?;
        let address = address(field("address")?)?;
        let bytes = number(field("size")?, "size")?;
        let alignment = number(field("alignment")?, "alignment")?;
        let stream = number(field("stream")?, "stream")?;
        let site = fields.next().map(str::parse).transpose()?;
        // Only an allocation that failed may have had any size.
        if kind != EventKind::Fail && bytes > MAX_BYTES
            || alignment > MAX_BYTES
            || address > MAX_ADDRESS
            || nanoseconds > MAX_NANOSECONDS
        {
            return Err(format!(
                "out of range (time {nanoseconds}, address {address:#x}, size {bytes}, alignment {alignment})"
            ));
        }
        Ok(Self {
            kind,
            nanoseconds,
            address,
            bytes,
            alignment,
            stream,
            site,
        })
    }
}

impl FromStr for CallSite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_site(text).ok_or_else(|| format!("invalid call site {text:?}"))
    }
}

impl fmt::Display for AllocationEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            nanoseconds,
            address,
            bytes,
            alignment,
            stream,
            site,
        } = self;
        write!(
            formatter,
            "{nanoseconds} {} {address:#x} {bytes} {alignment} {stream}",
            kind.name()
        )?;
        site.as_ref()
            .map_or(Ok(()), |site| write!(formatter, " {site}"))
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

fn number<T: FromStr>(text: &str, name: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("invalid {name} {text:?}"))
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text
        .strip_prefix("0x")
        .ok_or_else(|| format!("invalid address {text:?}"))?;
    u64::from_str_radix(digits, 16).map_err(|_| format!("invalid address {text:?}"))
}
/// Parses `FILE:LINE:COLUMN`.
fn parse_site(text: &str) -> Option<CallSite> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    if file.is_empty() {
        return None;
    }
    Some(CallSite {
        file: file.to_owned().into(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}
