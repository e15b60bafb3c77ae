//! Complete segments: every byte belongs to a used or a free block.

use curium_memory::LiveAllocation;
use curium_memory::extend::GRANULE;

use crate::{AllocationEvent, CallSite, EventKind};

/// An address range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Used memory.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) stream: u64,
    pub(super) site: Option<CallSite>,
}

/// A segment and its blocks.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) span: Span,
    pub(super) blocks: Vec<Placed>,
}

/// A block of a segment.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) stream: u64,
    pub(super) is_live: bool,
    pub(super) site: Option<CallSite>,
}

impl Span {
    pub(super) fn length(self) -> u64 {
        self.end - self.start
    }

    /// Returns the granules of memory.
    fn from_block(address: u64, bytes: u64) -> Self {
        Self {
            start: address,
            end: address + bytes.next_multiple_of(GRANULE).max(GRANULE),
        }
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl From<AllocationEvent> for Block {
    fn from(event: AllocationEvent) -> Self {
        Self {
            address: event.address,
            bytes: event.bytes as u64,
            stream: event.stream,
            site: event.site,
        }
    }
}

impl From<&LiveAllocation> for Block {
    fn from(live: &LiveAllocation) -> Self {
        Self {
            address: live.pointer.as_raw(),
            bytes: live.bytes as u64,
            stream: live.stream,
            site: Some(live.site.into()),
        }
    }
}

/// Returns the segments that exist after the events, by address.
pub(super) fn left_by(events: &[AllocationEvent]) -> Vec<Span> {
    let mut segments = Vec::new();
    for event in events {
        let span = Span {
            start: event.address,
            end: event.address.saturating_add(event.bytes as u64),
        };
        match event.kind {
            EventKind::AllocateSegment | EventKind::MapSegment => segments.push(span),
            EventKind::FreeSegment | EventKind::UnmapSegment => {
                segments.retain(|other| *other != span);
            }
            _ => {}
        }
    }
    segments.sort_by_key(|span| span.start);
    segments
}

/// Returns the segments with all blocks. `live` must be sorted by address. Memory of blocks and
/// events outside all known segments becomes its own segment, so that the viewer can place every
/// event.
pub(super) fn segments(known: &[Span], live: &[Block], events: &[AllocationEvent]) -> Vec<Segment> {
    let used = live
        .iter()
        .map(|block| Span::from_block(block.address, block.bytes));
    let freed_or_allocated = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Allocate | EventKind::Free))
        .map(|event| Span::from_block(event.address, event.bytes as u64));
    let temporary = events
        .iter()
        .filter(|event| event.kind.is_segment_event())
        .map(|event| Span {
            start: event.address,
            end: event.address + event.bytes as u64,
        });
    // With mapped segments, an allocation may span adjacent ones.
    let join = joining(events);
    let recorded = merged(known.iter().copied().chain(temporary).collect(), join);
    let unknown = used
        .chain(freed_or_allocated)
        .filter(|span| !recorded.iter().any(|segment| segment.contains(*span)));
    let spans = merged(known.iter().copied().chain(unknown).collect(), join);
    let mut segments = Vec::with_capacity(spans.len());
    let mut remaining = live;
    for span in spans {
        let count = remaining.partition_point(|block| block.address < span.end);
        let (inside, after) = remaining.split_at(count);
        remaining = after;
        segments.push(Segment {
            span,
            blocks: blocks(span, inside),
        });
    }
    segments
}

/// Returns `true` if adjacent segments form one, because they are mapped.
pub(super) fn joining(events: &[AllocationEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event.kind, EventKind::MapSegment | EventKind::UnmapSegment))
}

/// Returns the spans by address. Overlapping ones are merged, and adjacent ones if `join` is
/// `true`.
fn merged(mut spans: Vec<Span>, join: bool) -> Vec<Span> {
    spans.sort_by_key(|span| span.start);
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end || (join && span.start == last.end) => {
                last.end = last.end.max(span.end);
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// Returns the used and free blocks of a segment.
fn blocks(span: Span, live: &[Block]) -> Vec<Placed> {
    let mut blocks = Vec::new();
    let mut next = span.start;
    for (index, block) in live.iter().enumerate() {
        let limit = live.get(index + 1).map_or(span.end, |block| block.address);
        let end = Span::from_block(block.address, block.bytes).end.min(limit);
        blocks.extend(free(next, block.address));
        let address = block.address;
        let size = end - block.address;
        let Block { stream, site, .. } = block.clone();
        blocks.push(Placed {
            address,
            size,
            requested: block.bytes.min(size),
            stream,
            is_live: true,
            site,
        });
        next = end;
    }
    blocks.extend(free(next, span.end));
    blocks
}

fn free(start: u64, end: u64) -> Option<Placed> {
    let size = end.checked_sub(start).filter(|size| *size != 0)?;
    Some(Placed {
        address: start,
        size,
        requested: 0,
        stream: 0,
        is_live: false,
        site: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, bytes: u64) -> Block {
        Block {
            address,
            bytes,
            stream: 1,
            site: None,
        }
    }

    #[test]
    fn blocks_fill_their_segments() {
        let recorded = [Span {
            start: 0x1000,
            end: 0x3000,
        }];
        let live = [block(0x1200, 100), block(0x1400, 0x600), block(0x8000, 1)];
        let segments = segments(&recorded, &live, &[]);
        let spans: Vec<_> = segments
            .iter()
            .map(|segment| (segment.span.start, segment.span.end))
            .collect();
        assert_eq!(spans, [(0x1000, 0x3000), (0x8000, 0x8200)]);
        for segment in &segments {
            let sizes: u64 = segment.blocks.iter().map(|block| block.size).sum();
            assert_eq!(sizes, segment.span.length());
            assert!(
                segment
                    .blocks
                    .windows(2)
                    .all(|pair| pair[0].address + pair[0].size == pair[1].address)
            );
        }
        let live: Vec<_> = segments[0]
            .blocks
            .iter()
            .map(|block| (block.size, block.is_live))
            .collect();
        assert_eq!(
            live,
            [
                (0x200, false),
                (0x200, true),
                (0x600, true),
                (0x1600, false)
            ]
        );
    }
}
