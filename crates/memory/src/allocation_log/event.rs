//! One allocation or free.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::str::FromStr;

/// An allocation, a free, or an allocation that failed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AllocationEvent {
    /// What happened.
    pub kind: EventKind,
    /// When, in nanoseconds since the beginning of the log.
    pub nanoseconds: u64,
    /// The address. Of a failure, how many bytes of the device were free, or 0 if that is not known.
    pub address: u64,
    /// How many bytes were asked for, or the segment has.
    pub bytes: usize,
    /// What alignment was asked for; 1 for segments.
    pub alignment: usize,
    /// The number of the stream; 0 for segments, which are every stream's.
    pub stream: u64,
    /// Who asked, if that is known.
    pub site: Option<Site>,
}

/// What happened to memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// It was allocated.
    Allocate,
    /// It was freed.
    Free,
    /// There was none.
    Fail,
    /// The resource took a segment from another.
    AllocateSegment,
    /// It gave the segment back there.
    FreeSegment,
    /// The resource had physical memory mapped behind its addresses.
    MapSegment,
    /// It had that taken away.
    UnmapSegment,
}

/// A line of code.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Site {
    /// The file.
    pub file: Cow<'static, str>,
    /// The line, counted from 1 on.
    pub line: u32,
    /// The column, counted from 1 on.
    pub column: u32,
}

impl AllocationEvent {
    /// The first line of a log.
    pub(crate) const HEADER: &'static str = "curium allocation log 1";
}

impl EventKind {
    #[inline]
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

    #[inline]
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

    /// Whether it is about a segment, and not about memory that somebody asked for.
    #[must_use]
    #[inline]
    pub fn is_segment_event(self) -> bool {
        !matches!(self, Self::Allocate | Self::Free | Self::Fail)
    }
}

impl From<&'static Location<'static>> for Site {
    #[inline]
    fn from(location: &'static Location<'static>) -> Self {
        Self { file: location.file().into(), line: location.line(), column: location.column() }
    }
}

/// Reads a line of a log; the error is what is wrong.
impl FromStr for AllocationEvent {
    type Err = String;

    #[inline]
    fn from_str(line: &str) -> Result<Self, String> {
        let mut fields = line.trim().splitn(7, ' ');
        let mut field = |name: &str| fields.next().ok_or_else(|| format!("the {name} is missing"));
        let nanoseconds = number(field("time")?, "time")?;
        let name = field("event")?;
        let kind = EventKind::from_name(name).ok_or_else(|| format!("{name:?} is no event"))?;
        let address = address(field("address")?)?;
        let bytes = number(field("size")?, "size")?;
        let alignment = number(field("alignment")?, "alignment")?;
        let stream = number(field("stream")?, "stream")?;
        let site = fields.next().map(str::parse).transpose()?;
        Ok(Self { kind, nanoseconds, address, bytes, alignment, stream, site })
    }
}

impl FromStr for Site {
    type Err = String;

    #[inline]
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.rsplitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (column, line, file) = (part().parse(), part().parse(), part());
        match (line, column) {
            (Ok(line), Ok(column)) if !file.is_empty() => Ok(Self { file: file.to_owned().into(), line, column }),
            _ => Err(format!("{text:?} is no line of code")),
        }
    }
}

impl fmt::Display for AllocationEvent {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, nanoseconds, address, bytes, alignment, stream, site } = self;
        write!(formatter, "{nanoseconds} {} {address:#x} {bytes} {alignment} {stream}", kind.name())?;
        site.as_ref().map_or(Ok(()), |site| write!(formatter, " {site}"))
    }
}

impl fmt::Display for Site {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[inline]
fn number<T: FromStr>(text: &str, name: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no {name}"))
}

#[inline]
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("{text:?} is no address"))?;
    u64::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is no address"))
}
