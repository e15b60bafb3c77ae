//! Segments that are pieces of another resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use curium_driver::{Context, DevicePointer, Result, Stream};

use super::{HeapAccess, Segment};
use crate::cache::{GRANULE, Generation, Owner};
use crate::resource::Resource;
use crate::resource::request::DRIVER_ALIGNMENT;

/// Pieces of another resource, which are allocated and freed on a stream of their own.
pub(in crate::resource) struct Upstream {
    resource: Arc<dyn Resource>,
    stream: Stream,
    /// By the address of the first granule.
    pieces: BTreeMap<u64, Piece>,
}

/// A piece as it was asked for.
struct Piece {
    pointer: DevicePointer<u8>,
    bytes: usize,
    /// The granules in it.
    segment: Segment,
}

/// The longest piece that is asked for unless an allocation needs more.
const LONGEST: u64 = 1 << 62;

impl Upstream {
    pub(in crate::resource) fn new(context: &Context, resource: Arc<dyn Resource>) -> Result<Self> {
        Ok(Self { resource, stream: context.stream()?, pieces: BTreeMap::new() })
    }

    #[inline]
    pub(super) fn grow(&mut self, bytes: u64, step: u64, heap: &impl HeapAccess) -> Result<()> {
        // No piece is larger than an allocation can be.
        let step = step.min(LONGEST);
        let piece = match self.allocate(bytes.max(step)) {
            Err(error) if error.is_out_of_memory() && step > bytes => self.allocate(bytes)?,
            result => result?,
        };
        let Segment { start, length } = piece.segment;
        heap.with_heap(|heap| {
            heap.declare(start, length);
            heap.free(start, length, Owner::ALL, Generation::default());
        });
        self.pieces.insert(start, piece);
        Ok(())
    }

    #[inline]
    pub(super) fn trim(&mut self, keep: u64, heap: &impl HeapAccess) -> Result<()> {
        let mut left = self.list().iter().map(|segment| segment.length).sum::<u64>();
        for segment in self.list().into_iter().rev() {
            let Segment { start, length } = segment;
            if left - length < keep || !heap.with_heap(|heap| heap.withdraw(start, length)) {
                continue;
            }
            if let Err(error) = self.free(start) {
                heap.with_heap(|heap| heap.free(start, length, Owner::ALL, Generation::default()));
                return Err(error);
            }
            heap.with_heap(|heap| heap.undeclare(start));
            left -= length;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn close(&mut self, heap: &impl HeapAccess) -> Result<()> {
        let free =
            self.list().into_iter().filter(|piece| heap.with_heap(|heap| heap.withdraw(piece.start, piece.length)));
        // One piece that is refused must not keep the others.
        let closed = free.map(|piece| self.free(piece.start)).fold(Ok(()), Result::and);
        if !self.pieces.is_empty() {
            // The pieces are valid for as long as the resource.
            std::mem::forget(Arc::clone(&self.resource));
        }
        closed
    }

    #[inline]
    pub(super) fn list(&self) -> Vec<Segment> {
        self.pieces.values().map(|piece| piece.segment).collect()
    }

    /// Memory that every stream may use at once.
    #[inline]
    fn allocate(&self, length: u64) -> Result<Piece> {
        // The resource aligns to less than a granule.
        let bytes = (length + GRANULE - DRIVER_ALIGNMENT as u64) as usize;
        let pointer = self.resource.allocate(&self.stream, bytes, DRIVER_ALIGNMENT)?;
        let segment = Segment { start: pointer.as_raw().next_multiple_of(GRANULE), length };
        let piece = Piece { pointer, bytes, segment };
        match self.stream.synchronize() {
            Ok(()) => Ok(piece),
            Err(error) => self.give_back(&piece).and(Err(error)),
        }
    }

    #[inline]
    fn free(&mut self, start: u64) -> Result<()> {
        if let Some(piece) = self.pieces.get(&start) {
            self.give_back(piece)?;
            self.pieces.remove(&start);
        }
        Ok(())
    }

    #[inline]
    fn give_back(&self, piece: &Piece) -> Result<()> {
        // SAFETY: the piece came from this resource with these figures. No work uses it: it is free for all, or new.
        unsafe { self.resource.deallocate(&self.stream, piece.pointer, piece.bytes, DRIVER_ALIGNMENT) }
    }
}
