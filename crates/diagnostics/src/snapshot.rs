//! Memory snapshots for PyTorch's memory viewer.

mod layout;
mod pickle;

use std::io;
use std::path::Path;

use curium_memory::{CachingResource, LiveAllocation};

use self::layout::{Block, Span};
use self::pickle::Pickle;
use crate::{AllocationEvent, AllocationLog, CallSite, EventKind};

/// A snapshot of allocations, segments and past events, as a file for PyTorch's memory viewer
/// (<https://pytorch.org/memory_viz>).
///
/// ```
/// # use curium_driver::Driver;
/// use curium_diagnostics::{AllocationRecorder, Snapshot};
/// use curium_memory::{Resource, StreamOrdered};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
/// # /*
/// let driver = Driver::load()?;
/// # */
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let resource = AllocationRecorder::ring(StreamOrdered, 10_000);
/// let pointer = resource.allocate(&stream, 1 << 20, 256)?;
/// let pickle = Snapshot::new(0, resource.events()).to_pickle();
/// // std::fs::write("snapshot.pickle", pickle)?;
/// # // SAFETY: the memory was allocated from this resource with this size and alignment, and is not in use.
/// # unsafe { resource.deallocate(&stream, pointer, 1 << 20, 256) }?;
/// # assert_eq!(pickle[0], 0x80);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    device: usize,
    events: Vec<AllocationEvent>,
    live: Vec<Block>,
    segments: Vec<Span>,
}

impl Snapshot {
    /// Creates a snapshot of the device with this ordinal from `events`. Its live allocations and
    /// segments are those without a matching free.
    #[must_use]
    pub fn new(device: usize, events: Vec<AllocationEvent>) -> Self {
        let log = AllocationLog::new(events);
        let live = log.live().into_iter().map(Block::from).collect();
        let segments = layout::left_by(log.events());
        Self {
            device,
            events: log.events().to_vec(),
            live,
            segments,
        }
    }

    /// Sets the live allocations, for example those of a
    /// [`LeakTracker`](curium_memory::LeakTracker). They include allocations made before the first
    /// event.
    #[must_use]
    pub fn with_live(mut self, live: &[LiveAllocation]) -> Self {
        self.live = live.iter().map(Block::from).collect();
        self.live.sort_by_key(|block| block.address);
        self
    }

    /// Adds the segments of `resource`, including those from before the first event. Memory outside
    /// all segments is shown as its own segment.
    #[must_use]
    pub fn with_segments(mut self, resource: &CachingResource) -> Self {
        self.segments = resource
            .segments()
            .into_iter()
            .map(|(start, bytes)| Span {
                start,
                end: start + bytes,
            })
            .collect();
        self
    }

    /// Returns the contents of the file.
    #[must_use]
    pub fn to_pickle(&self) -> Vec<u8> {
        let mut pickle = Pickle::new();
        pickle.dictionary(|pickle| {
            pickle.key("segments");
            let segments = layout::segments(&self.segments, &self.live, &self.events);
            pickle.list(&segments, |pickle, segment| {
                self.write_segment(pickle, segment);
            });
            pickle.key("device_traces");
            // The viewer indexes events by device ordinal.
            let traces: Vec<&[AllocationEvent]> = (0..=self.device)
                .map(|device| {
                    if device == self.device {
                        &*self.events
                    } else {
                        &[]
                    }
                })
                .collect();
            pickle.list(&traces, |pickle, trace| self.write_trace(pickle, trace));
            pickle.key("allocator_settings");
            pickle.dictionary(|_| {});
            pickle.key("external_annotations");
            pickle.list(&[(); 0], |_, ()| {});
        });
        pickle.finish()
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Any I/O error.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_pickle())
    }

    fn write_segment(&self, pickle: &mut Pickle, segment: &layout::Segment) {
        let mut allocated = 0;
        let mut requested = 0;
        for block in segment.blocks.iter().filter(|block| block.is_live) {
            allocated += block.size;
            requested += block.requested;
        }
        pickle.dictionary(|pickle| {
            pickle.entry("device", self.device as u64);
            pickle.entry("address", segment.span.start);
            pickle.entry("total_size", segment.span.length());
            pickle.entry("allocated_size", allocated);
            pickle.entry("active_size", allocated);
            pickle.entry("requested_size", requested);
            pickle.entry(
                "stream",
                segment
                    .blocks
                    .iter()
                    .find(|block| block.is_live)
                    .map_or(0, |block| block.stream),
            );
            pickle.key("segment_type");
            pickle.text("large");
            pickle.key("segment_pool_id");
            pickle.pair(0, 0);
            pickle.key("is_expandable");
            pickle.boolean(layout::joining(&self.events));
            pickle.key("frames");
            write_frames(pickle, None);
            pickle.key("blocks");
            pickle.list(&segment.blocks, write_block);
        });
    }

    fn write_trace(&self, pickle: &mut Pickle, trace: &[AllocationEvent]) {
        let actions = trace.iter().flat_map(|event| {
            actions(event.kind)
                .iter()
                .map(move |action| (*action, event))
        });
        let mut actions: Vec<_> = actions.collect();
        // The last event is the snapshot itself.
        let taken = trace.last().map(|last| AllocationEvent {
            address: 0,
            bytes: self.live.iter().map(|block| block.bytes as usize).sum(),
            site: None,
            ..last.clone()
        });
        actions.extend(taken.as_ref().map(|taken| ("snapshot", taken)));
        pickle.list(&actions, |pickle, (action, event)| {
            write_event(pickle, action, event);
        });
    }
}

/// Returns the viewer's names for an event. A free consists of two events: requested and completed.
fn actions(kind: EventKind) -> &'static [&'static str] {
    match kind {
        EventKind::Allocate => &["alloc"],
        EventKind::Free => &["free_requested", "free_completed"],
        EventKind::Fail => &["oom"],
        EventKind::AllocateSegment => &["segment_alloc"],
        EventKind::FreeSegment => &["segment_free"],
        EventKind::MapSegment => &["segment_map"],
        EventKind::UnmapSegment => &["segment_unmap"],
    }
}

fn write_block(pickle: &mut Pickle, block: &layout::Placed) {
    pickle.dictionary(|pickle| {
        pickle.entry("address", block.address);
        pickle.entry("size", block.size);
        pickle.entry("requested_size", block.requested);
        pickle.key("state");
        pickle.text(if block.is_live {
            "active_allocated"
        } else {
            "inactive"
        });
        pickle.key("frames");
        write_frames(pickle, block.site.as_ref());
    });
}

fn write_event(pickle: &mut Pickle, action: &str, event: &AllocationEvent) {
    pickle.dictionary(|pickle| {
        pickle.key("action");
        pickle.text(action);
        pickle.entry(
            if action == "oom" {
                "device_free"
            } else {
                "addr"
            },
            event.address,
        );
        pickle.entry("size", event.bytes as u64);
        pickle.entry("stream", event.stream);
        pickle.entry("time_us", event.nanoseconds / 1000);
        pickle.key("frames");
        write_frames(pickle, event.site.as_ref());
    });
}

fn write_frames(pickle: &mut Pickle, site: Option<&CallSite>) {
    pickle.list(site.as_slice(), |pickle, site| {
        pickle.dictionary(|pickle| {
            pickle.key("filename");
            pickle.text(&site.file);
            pickle.entry("line", u64::from(site.line));
            pickle.key("name");
            pickle.text("allocate");
        });
    });
}
