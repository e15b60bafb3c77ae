//! Segments allocated from another resource.

use std::collections::HashMap;
use std::sync::Arc;

use curium_driver::{Context, DevicePointer, Result, Stream};

use crate::cache::{GRANULE, Segment};
use crate::resource::Resource;
use crate::size::DRIVER_ALIGNMENT;

/// Allocations of another resource, made on an internal stream.
pub(in crate::resource) struct Upstream {
    resource: Arc<dyn Resource>,
    stream: Stream,
    /// The allocations, by the start address of their segment.
    pieces: HashMap<u64, Piece>,
}

/// An allocation, and the segment in it, which is aligned to [`GRANULE`].
struct Piece {
    pointer: DevicePointer<u8>,
    bytes: usize,
    segment: Segment,
}

/// The maximum size by which the resource grows at once, unless a request needs more. `allocate`
/// adds to it without overflow.
const MAX_STEP: u64 = 1 << 62;

impl Upstream {
    pub(in crate::resource) fn new(context: &Context, resource: Arc<dyn Resource>) -> Result<Self> {
        Ok(Self {
            resource,
            stream: context.stream()?,
            pieces: HashMap::new(),
        })
    }

    /// Allocates a segment of at least `bytes` bytes, and of at least `step` bytes if there is
    /// enough memory.
    pub(super) fn add(&mut self, bytes: u64, step: u64) -> Result<Segment> {
        let step = step.min(MAX_STEP);
        let piece = match self.allocate(bytes.max(step)) {
            Err(error) if error.is_out_of_memory() && step > bytes => self.allocate(bytes)?,
            result => result?,
        };
        let segment = piece.segment;
        self.pieces.insert(segment.start, piece);
        Ok(segment)
    }

    /// Frees the allocation of a segment. If that fails, the segment remains.
    pub(super) fn remove(&mut self, start: u64) -> Result<()> {
        if let Some(piece) = self.pieces.get(&start) {
            self.free(piece)?;
            self.pieces.remove(&start);
        }
        Ok(())
    }

    pub(super) fn contains(&self, start: u64) -> bool {
        self.pieces.contains_key(&start)
    }

    /// Leaks the resource if allocations remain, since they are valid only while it exists.
    pub(super) fn close(&self) {
        if !self.pieces.is_empty() {
            std::mem::forget(Arc::clone(&self.resource));
        }
    }

    /// Allocates memory that every stream can use immediately.
    fn allocate(&self, length: u64) -> Result<Piece> {
        // The resource guarantees `DRIVER_ALIGNMENT` only: the start may be moved up to the next
        // granule.
        let bytes = (length + GRANULE - DRIVER_ALIGNMENT as u64) as usize;
        let pointer = self
            .resource
            .allocate(&self.stream, bytes, DRIVER_ALIGNMENT)?;
        let segment = Segment {
            start: pointer.as_raw().next_multiple_of(GRANULE),
            length,
        };
        let piece = Piece {
            pointer,
            bytes,
            segment,
        };
        if let Err(error) = self.stream.synchronize() {
            self.free(&piece)?;
            return Err(error);
        }
        Ok(piece)
    }

    fn free(&self, piece: &Piece) -> Result<()> {
        // SAFETY: the piece came from this resource with this size and alignment. No work accesses
        // it: it is available to every stream, or new.
        unsafe {
            self.resource
                .deallocate(&self.stream, piece.pointer, piece.bytes, DRIVER_ALIGNMENT)
        }
    }
}
