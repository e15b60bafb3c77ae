//! Replaying a log on a resource.

use std::collections::{BTreeMap, HashMap};

use curium_driver::{Context, DevicePointer, Result, Stream};
use curium_memory::Resource;

use super::{AllocationEvent, AllocationLog, EventKind};

/// The result of a replay.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// The number of successful allocations.
    pub allocations: u64,
    /// The number of allocations that failed with out-of-memory.
    pub failures: u64,
    /// The number of frees.
    pub frees: u64,
    /// The number of skipped frees, whose allocation is not in the log.
    pub unknown_frees: u64,
    /// The number of allocations that were live at the end of the log; the replay frees them.
    pub left: u64,
    /// The high-water mark of the bytes in use.
    pub peak_bytes: u64,
}

/// The live allocations of a replay, which are freed at its end.
struct Playing<'a, R: Resource> {
    resource: &'a R,
    context: &'a Context,
    streams: HashMap<u64, Stream>,
    /// By address in the log, so that each replay frees what remains in the same order.
    live: BTreeMap<u64, Block>,
    live_bytes: u64,
    replay: Replay,
}

struct Block {
    pointer: DevicePointer<u8>,
    bytes: usize,
    alignment: usize,
    stream: Stream,
}

impl AllocationLog {
    /// Replays the allocations and frees on `resource`, with a stream of `context` for each stream
    /// of the log, and frees the remaining allocations. Out-of-memory errors are counted, and
    /// allocations that failed in the log are attempted.
    ///
    /// # Errors
    ///
    /// Any other error returned by the resource.
    pub fn replay(&self, resource: &impl Resource, context: &Context) -> Result<Replay> {
        let mut playing = Playing {
            resource,
            context,
            streams: HashMap::new(),
            live: BTreeMap::new(),
            live_bytes: 0,
            replay: Replay::default(),
        };
        let played = self.events.iter().try_for_each(|event| playing.play(event));
        let ended = playing.end();
        played.and(ended)?;
        Ok(playing.replay)
    }
}

impl<R: Resource> Playing<'_, R> {
    fn play(&mut self, event: &AllocationEvent) -> Result<()> {
        // The resource has segments of its own.
        if event.kind.is_segment_event() {
            return Ok(());
        }
        let stream = self.stream(event.stream)?;
        match event.kind {
            EventKind::Allocate => self.allocate(event, stream),
            EventKind::Fail => match self.attempt(event, &stream)? {
                Some(pointer) => self.free(&Block {
                    pointer,
                    bytes: event.bytes,
                    alignment: event.alignment,
                    stream,
                }),
                None => Ok(()),
            },
            EventKind::Free => match self.live.remove(&event.address) {
                Some(block) => {
                    self.live_bytes -= block.bytes as u64;
                    self.replay.frees += 1;
                    self.free(&block)
                }
                None => {
                    self.replay.unknown_frees += 1;
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    fn allocate(&mut self, event: &AllocationEvent, stream: Stream) -> Result<()> {
        let Some(pointer) = self.attempt(event, &stream)? else {
            return Ok(());
        };
        self.replay.allocations += 1;
        self.live_bytes += event.bytes as u64;
        self.replay.peak_bytes = self.replay.peak_bytes.max(self.live_bytes);
        let block = Block {
            pointer,
            bytes: event.bytes,
            alignment: event.alignment,
            stream,
        };
        match self.live.insert(event.address, block) {
            // The free is missing from the log.
            Some(before) => {
                self.live_bytes -= before.bytes as u64;
                self.free(&before)
            }
            None => Ok(()),
        }
    }

    /// Allocates memory; returns `None` if out of memory.
    fn attempt(
        &mut self,
        event: &AllocationEvent,
        stream: &Stream,
    ) -> Result<Option<DevicePointer<u8>>> {
        match self.resource.allocate(stream, event.bytes, event.alignment) {
            Ok(pointer) => Ok(Some(pointer)),
            Err(error) if error.is_out_of_memory() => {
                self.replay.failures += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn free(&self, block: &Block) -> Result<()> {
        // SAFETY: the block came from this resource with this size and alignment on this stream,
        // and is not in use.
        unsafe {
            self.resource
                .deallocate(&block.stream, block.pointer, block.bytes, block.alignment)
        }
    }

    fn stream(&mut self, number: u64) -> Result<Stream> {
        if let Some(stream) = self.streams.get(&number) {
            return Ok(stream.clone());
        }
        let stream = self.context.stream()?;
        self.streams.insert(number, stream.clone());
        Ok(stream)
    }

    fn end(&mut self) -> Result<()> {
        let remaining = std::mem::take(&mut self.live);
        self.replay.left = remaining.len() as u64;
        remaining
            .values()
            .map(|block| self.free(block))
            .fold(Ok(()), Result::and)
    }
}
