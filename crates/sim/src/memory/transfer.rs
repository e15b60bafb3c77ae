//! Copying and filling, when the work runs.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use curium_sys::CUresult;

use crate::driver::Result;
use crate::exec::Use;
use crate::memory::{HostPtr, Memory, Purpose, READ};

/// One end of a copy.
#[derive(Debug)]
pub(crate) enum End {
    /// An address of an allocation, which is looked up when the copy runs.
    Device(u64),
    /// Memory of the caller.
    Host(HostPtr),
    /// Bytes that were taken from the caller when the copy was queued.
    Staged(Box<[u8]>),
}

/// What memory is filled with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) value: u32,
    /// The bytes of an element: 1, 2 or 4.
    pub(crate) width: usize,
    /// The number of elements that are filled.
    pub(crate) count: usize,
}

impl Memory {
    /// Copies `size` bytes. Memory that was freed before its turn came is an illegal address.
    pub(crate) fn copy(&self, to: &End, from: &End, size: usize) -> Result {
        self.note("copy", from, size, Use::Read);
        self.note("copy", to, size, Use::Write);
        self.copy_unseen(to, from, size)
    }

    /// [`Self::copy`] that is no access as others are: it is part of how streams wait for each other.
    pub(crate) fn copy_unseen(&self, to: &End, from: &End, size: usize) -> Result {
        self.note_copy(to, from, size as u64);
        let mut done = 0;
        while done < size {
            let (to, to_room) = self.locate(to, done, size - done)?;
            let (from, from_room) = self.locate(from, done, size - done)?;
            let piece = to_room.min(from_room);
            // SAFETY: `locate` checked that the bytes of allocations are there, and they are not freed before their work is
            // done; the caller vouched for host memory. The ranges may overlap.
            unsafe { ptr::copy(from.0, to.0, piece) };
            done += piece;
        }
        Ok(())
    }

    /// Fills memory from `address` on.
    pub(crate) fn fill(&self, address: u64, fill: Fill) -> Result {
        let size = fill.count * fill.width;
        self.note_write(address, size as u64);
        self.note("fill", &End::Device(address), size, Use::Write);
        let mut done = 0;
        while done < size {
            // Pieces are whole elements: mappings are made of pages.
            let (place, room) = self.locate(&End::Device(address), done, size - done)?;
            // SAFETY: `locate` checked that the bytes lie in the allocation, which is not freed before its work is done.
            unsafe { fill.write(place, room) };
            done += room;
        }
        Ok(())
    }

    /// Replaces the value of `width` bytes, four or eight, at `address`, which is a multiple of that, by what `combine` makes of it, as
    /// one step.
    pub(crate) fn combine(&self, address: u64, width: usize, combine: impl Fn(u64) -> u64) -> Result {
        let (HostPtr(place), _) = self.locate(&End::Device(address), 0, width)?;
        self.note_write(address, width as u64);
        if width == 4 {
            // SAFETY: `locate` checked that the bytes are there, and they are not freed before their work is done; the address is aligned.
            let word = unsafe { AtomicU32::from_ptr(place.cast()) };
            let _ =
                word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |found| Some(combine(u64::from(found)) as u32));
        } else {
            // SAFETY: as above.
            let word = unsafe { AtomicU64::from_ptr(place.cast()) };
            let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |found| Some(combine(found)));
        }
        Ok(())
    }

    /// Returns where `end` has its bytes from `offset` on, and how many of `size` bytes are there in a row.
    fn locate(&self, end: &End, offset: usize, size: usize) -> Result<(HostPtr, usize)> {
        match end {
            End::Host(host) => Ok((HostPtr(host.0.wrapping_add(offset)), size)),
            // Staged bytes are only ever read.
            End::Staged(bytes) => Ok((HostPtr(bytes.as_ptr().cast_mut().wrapping_add(offset)), size)),
            End::Device(address) => {
                let (address, records) = (*address + offset as u64, self.read());
                let found = records.find(address).filter(|found| records.allows(found, None, READ));
                let found = found.ok_or(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?;
                let room = (found.end() - address).min(size as u64) as usize;
                // Only mappings lie next to each other: a range that ends in another allocation has a gap before it.
                let is_whole = room == size || matches!(found.purpose, Purpose::Mapped(_));
                if is_whole { Ok((found.host_at(address), room)) } else { Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS) }
            }
        }
    }
}

impl Fill {
    /// Repeats the value over `size` bytes, which are whole elements.
    ///
    /// # Safety
    ///
    /// The bytes may be written.
    unsafe fn write(self, place: HostPtr, size: usize) {
        // Never reads the destination, which another stream may be writing: a race must not spread the values it wrote.
        let bytes = self.value.to_le_bytes();
        let mut block = [0; 1 << 12];
        let block = &mut block[..size.min(1 << 12)];
        block.chunks_exact_mut(self.width).for_each(|element| element.copy_from_slice(&bytes[..self.width]));
        for filled in (0..size).step_by(block.len()) {
            let next = block.len().min(size - filled);
            // SAFETY: the caller guarantees that `size` bytes may be written; `next` bytes are left from `filled` on.
            unsafe { ptr::copy_nonoverlapping(block.as_ptr(), place.0.wrapping_add(filled), next) };
        }
    }
}
