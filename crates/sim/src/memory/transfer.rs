//! The execution of copies and fills.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use curium_sys::CUresult;

use crate::driver::Result;
use crate::exec::AccessKind;
use crate::memory::{HostPtr, Memory, Purpose, READ};

/// An operand of a copy.
#[derive(Debug)]
pub(crate) enum CopyOperand {
    /// An address in an allocation, which is looked up when the copy runs.
    Device(u64),
    /// Host memory of the caller.
    Host(HostPtr),
    /// Bytes that were copied from the caller when the copy was queued.
    Staged(Box<[u8]>),
}

/// A fill: its value and its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) value: u32,
    /// The number of bytes of an element: 1, 2 or 4.
    pub(crate) width: usize,
    /// The number of elements.
    pub(crate) count: usize,
}

impl Memory {
    /// Copies `size` bytes. Memory that was freed before the copy runs is an illegal address.
    pub(crate) fn copy(&self, to: &CopyOperand, from: &CopyOperand, size: usize) -> Result {
        self.note("copy", from, size, AccessKind::Read);
        self.note("copy", to, size, AccessKind::Write);
        self.copy_unrecorded(to, from, size)
    }

    /// Copies like [`Self::copy`] without recording an access, for copies that implement synchronization between streams.
    pub(crate) fn copy_unrecorded(&self, to: &CopyOperand, from: &CopyOperand, size: usize) -> Result {
        self.note_copy(to, from, size as u64);
        let mut done = 0;
        while done < size {
            let (to, to_room) = self.locate(to, done, size - done)?;
            let (from, from_room) = self.locate(from, done, size - done)?;
            let piece = to_room.min(from_room);
            // SAFETY: `locate` checked the bytes of allocations, which are not freed before their work has completed, and the caller
            // guaranteed host memory. The ranges may overlap.
            unsafe { ptr::copy(from.0, to.0, piece) };
            done += piece;
        }
        Ok(())
    }

    /// Fills memory from `address` on.
    pub(crate) fn fill(&self, address: u64, fill: Fill) -> Result {
        let size = fill.count * fill.width;
        self.note_write(address, size as u64);
        self.note("fill", &CopyOperand::Device(address), size, AccessKind::Write);
        let mut done = 0;
        while done < size {
            // The parts of a fill are whole elements, because mappings consist of pages.
            let (place, room) = self.locate(&CopyOperand::Device(address), done, size - done)?;
            // SAFETY: `locate` checked that the bytes lie in the allocation, which is not freed before its work is done.
            unsafe { fill.write(place, room) };
            done += room;
        }
        Ok(())
    }

    /// Atomically replaces the value of `width` bytes, four or eight, at `address`, a multiple of `width`, by `combine` of it.
    pub(crate) fn combine(&self, address: u64, width: usize, combine: impl Fn(u64) -> u64) -> Result {
        let (HostPtr(place), _) = self.locate(&CopyOperand::Device(address), 0, width)?;
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

    /// Returns the memory of `end` from `offset` on, and the number of its contiguous bytes, at most `size`.
    fn locate(&self, end: &CopyOperand, offset: usize, size: usize) -> Result<(HostPtr, usize)> {
        match end {
            CopyOperand::Host(host) => Ok((HostPtr(host.0.wrapping_add(offset)), size)),
            // Staged bytes are only read.
            CopyOperand::Staged(bytes) => Ok((HostPtr(bytes.as_ptr().cast_mut().wrapping_add(offset)), size)),
            CopyOperand::Device(address) => {
                let (address, records) = (*address + offset as u64, self.read());
                let found = records.find(address).filter(|found| records.allows(found, None, READ));
                let found = found.ok_or(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?;
                let room = (found.end() - address).min(size as u64) as usize;
                // Only mappings are adjacent: other allocations have a gap before them.
                let is_whole = room == size || matches!(found.purpose, Purpose::Mapped(_));
                if is_whole { Ok((found.host_at(address), room)) } else { Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS) }
            }
        }
    }
}

impl Fill {
    /// Repeats the value over `size` bytes of whole elements.
    ///
    /// # Safety
    ///
    /// The bytes may be written.
    unsafe fn write(self, place: HostPtr, size: usize) {
        let (place, bytes) = (place.0, self.value.to_le_bytes());
        let mut filled = self.width;
        // SAFETY: the fill has at least one element, which the caller guarantees.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, self.width) };
        while filled < size {
            let next = filled.min(size - filled);
            // SAFETY: as above; the filled part and the part after it do not overlap.
            unsafe { ptr::copy_nonoverlapping(place, place.wrapping_add(filled), next) };
            filled += next;
        }
    }
}
