//! Copying and filling, when the work runs.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use curium_sys::CUresult;

use crate::driver::Result;
use crate::memory::{HostPtr, Memory};

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
    /// How many elements are filled.
    pub(crate) count: usize,
}

impl Memory {
    /// Copies `size` bytes. Memory that was freed before its turn came is an illegal address.
    pub(crate) fn copy(&self, to: &End, from: &End, size: usize) -> Result {
        let to = self.locate(to, size)?;
        let from = self.locate(from, size)?;
        // SAFETY: `locate` checked that the bytes of allocations are there, and they are not freed before their work is done;
        // the caller vouched for host memory. The ranges may overlap.
        unsafe { ptr::copy(from.0, to.0, size) };
        Ok(())
    }

    /// Fills memory from `address` on.
    pub(crate) fn fill(&self, address: u64, fill: Fill) -> Result {
        let place = self.locate(&End::Device(address), fill.count * fill.width)?.0;
        let bytes = fill.value.to_le_bytes();
        let (size, mut filled) = (fill.count * fill.width, fill.width);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: `locate` checked that all elements lie in the allocation, which is not freed before its work is done.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, fill.width) };
        while filled < size {
            let next = filled.min(size - filled);
            // SAFETY: as above; the part that is filled and the part behind it do not overlap.
            unsafe { ptr::copy_nonoverlapping(place, place.wrapping_add(filled), next) };
            filled += next;
        }
        Ok(())
    }

    /// Replaces the value of `width` bytes, four or eight, at `address`, which is a multiple of that, by what `combine` makes of it, as
    /// one step.
    pub(crate) fn combine(&self, address: u64, width: usize, combine: impl Fn(u64) -> u64) -> Result {
        let place = self.locate(&End::Device(address), width)?.0;
        if width == 4 {
            // SAFETY: `locate` checked that the bytes are there, and they are not freed before their work is done; the address is aligned.
            let word = unsafe { AtomicU32::from_ptr(place.cast()) };
            word.update(Ordering::SeqCst, Ordering::SeqCst, |found| combine(u64::from(found)) as u32);
        } else {
            // SAFETY: as above.
            let word = unsafe { AtomicU64::from_ptr(place.cast()) };
            word.update(Ordering::SeqCst, Ordering::SeqCst, combine);
        }
        Ok(())
    }

    fn locate(&self, end: &End, size: usize) -> Result<HostPtr> {
        match end {
            End::Host(host) => Ok(*host),
            // Staged bytes are only ever read.
            End::Staged(bytes) => Ok(HostPtr(bytes.as_ptr().cast_mut())),
            End::Device(address) => {
                let records = self.read();
                let found = records.find(*address).filter(|found| found.contains(*address, size as u64));
                Ok(found.ok_or(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?.host_at(*address))
            }
        }
    }
}
