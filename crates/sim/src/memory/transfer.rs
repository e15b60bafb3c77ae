//! The execution of copies and fills.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use curium_ptx::exec::{Access, AccessKind, ReportKind};
use curium_sys::CUresult;

use crate::host_pointer::HostPtr;
use crate::library_operation::Run;
use crate::memory::{Allocation, Memory, Purpose, READ};
use crate::result;

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
    /// Copies `size` bytes. Fails with the access to memory that was freed before the copy runs.
    pub(crate) fn copy(
        &self,
        to: &CopyOperand,
        from: &CopyOperand,
        size: usize,
    ) -> Result<(), Access> {
        self.record_access("copy", from, size, AccessKind::Read);
        self.record_access("copy", to, size, AccessKind::Write);
        self.copy_unrecorded(to, from, size)
    }

    /// Copies like [`Self::copy`] without recording an access: the copy synchronizes streams.
    pub(crate) fn copy_unrecorded(
        &self,
        to: &CopyOperand,
        from: &CopyOperand,
        size: usize,
    ) -> Result<(), Access> {
        self.record_copy(to, from, size as u64);
        let mut done = 0;
        while done < size {
            let (to, to_room) = self
                .locate(to, done, size - done)
                .map_err(|_| to.access(done, size, true))?;
            let (from, from_room) = self
                .locate(from, done, size - done)
                .map_err(|_| from.access(done, size, false))?;
            let piece = to_room.min(from_room);
            // SAFETY: `locate` checked the bytes of allocations, which are not freed before their
            // work has completed, and the caller guaranteed host memory. The ranges may overlap.
            unsafe { ptr::copy(from.0, to.0, piece) };
            done += piece;
        }
        Ok(())
    }

    /// Fills memory from `address` on. Fails with the access to memory that was freed before the
    /// fill runs.
    pub(crate) fn fill(&self, address: u64, fill: Fill) -> Result<(), Access> {
        let size = fill.count * fill.width;
        let target = CopyOperand::Device(address);
        self.record_write(address, size as u64);
        self.record_access("fill", &target, size, AccessKind::Write);
        let mut done = 0;
        while done < size {
            // The parts of a fill are whole elements, because mappings consist of pages.
            let (host, room) = self
                .locate(&target, done, size - done)
                .map_err(|_| target.access(done, size, true))?;
            // SAFETY: `locate` checked that the bytes lie in the allocation, which is not freed
            // before its work is done.
            unsafe { fill.write(host, room) };
            done += room;
        }
        Ok(())
    }

    /// Copies the bytes of a run, which an operation of a library reads, to `into`. Fails with the
    /// part of the run that cannot be read.
    pub(crate) fn read_run(
        &self,
        name: &'static str,
        run: Run,
        into: &mut [u8],
    ) -> Result<(), (ReportKind, Access)> {
        self.record_access(
            name,
            &CopyOperand::Device(run.address),
            run.bytes,
            AccessKind::Read,
        );
        self.each_part(run, false, |host, offset, room| {
            // SAFETY: `locate` checked that the bytes lie in the allocation, which is not freed
            // before its work is done.
            unsafe {
                ptr::copy_nonoverlapping(
                    host.0.cast_const(),
                    into[offset..offset + room].as_mut_ptr(),
                    room,
                );
            };
        })?;
        if self
            .read()
            .find(run.address)
            .is_some_and(|allocation| run.is_uninitialized(allocation))
        {
            return Err((ReportKind::Uninitialized, run.access(0, false)));
        }
        Ok(())
    }

    /// Copies `from` to a run, which an operation of a library writes. Fails with the part of the
    /// run that cannot be written.
    pub(crate) fn write_run(
        &self,
        name: &'static str,
        run: Run,
        from: &[u8],
    ) -> Result<(), (ReportKind, Access)> {
        self.record_write(run.address, run.bytes as u64);
        self.record_access(
            name,
            &CopyOperand::Device(run.address),
            run.bytes,
            AccessKind::Write,
        );
        self.each_part(run, true, |host, offset, room| {
            // SAFETY: `locate` checked that the bytes lie in the allocation, which is not freed
            // before its work is done.
            unsafe {
                ptr::copy_nonoverlapping(from[offset..offset + room].as_ptr(), host.0, room);
            };
        })
    }

    /// Calls `copy` with the host address, the offset and the length of each part of a run that
    /// lies in one allocation.
    fn each_part(
        &self,
        run: Run,
        write: bool,
        mut copy: impl FnMut(HostPtr, usize, usize),
    ) -> Result<(), (ReportKind, Access)> {
        let mut done = 0;
        while done < run.bytes {
            let located = self.locate(&CopyOperand::Device(run.address), done, run.bytes - done);
            let (host, room) = located.map_err(|_| {
                (
                    ReportKind::IllegalAddress,
                    self.past_the_end(run, done, write),
                )
            })?;
            copy(host, done, room);
            done += room;
        }
        Ok(())
    }

    /// Returns the access to the part of a run, from `done` on, that is in no allocation.
    fn past_the_end(&self, run: Run, done: usize, write: bool) -> Access {
        let room = self
            .find(run.address + done as u64)
            .map_or(0, |allocation| allocation.end() - run.address);
        run.access((room as usize).clamp(done, run.bytes - 1), write)
    }

    /// Atomically writes the value at `address`, which has `width` bytes, four or eight, and is
    /// aligned: the host may poll it.
    pub(crate) fn store(&self, address: u64, width: usize, value: u64) -> Result<(), Access> {
        self.combine(address, width, |_| value)
    }

    /// Atomically replaces the value at `address` by `combine` of it. The value has `width` bytes,
    /// four or eight, and is aligned.
    pub(crate) fn combine(
        &self,
        address: u64,
        width: usize,
        combine: impl Fn(u64) -> u64,
    ) -> Result<(), Access> {
        let target = CopyOperand::Device(address);
        let (HostPtr(host), _) = self
            .locate(&target, 0, width)
            .map_err(|_| target.access(0, width, true))?;
        self.record_write(address, width as u64);
        if width == 4 {
            // SAFETY: `locate` checked that the bytes are there, and they are not freed before
            // their work is done; the address is aligned.
            let word = unsafe { AtomicU32::from_ptr(host.cast()) };
            let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| {
                Some(combine(u64::from(value)) as u32)
            });
        } else {
            // SAFETY: `locate` checked that the bytes are there, and they are not freed before
            // their work is done; the address is aligned.
            let word = unsafe { AtomicU64::from_ptr(host.cast()) };
            let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| {
                Some(combine(value))
            });
        }
        Ok(())
    }

    /// Returns the host memory of the bytes of `operand` from `offset` on, and the number of
    /// contiguous bytes, at most `size`.
    fn locate(
        &self,
        operand: &CopyOperand,
        offset: usize,
        size: usize,
    ) -> result::Result<(HostPtr, usize)> {
        match operand {
            CopyOperand::Host(host) => Ok((HostPtr(host.0.wrapping_add(offset)), size)),
            // Staged bytes are only read.
            CopyOperand::Staged(bytes) => Ok((
                HostPtr(bytes.as_ptr().cast_mut().wrapping_add(offset)),
                size,
            )),
            CopyOperand::Device(address) => {
                let address = *address + offset as u64;
                let records = self.read();
                let allocation = records
                    .find(address)
                    .filter(|allocation| records.allows(allocation, None, READ));
                let allocation = allocation.ok_or(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?;
                let room = (allocation.end() - address).min(size as u64) as usize;
                // Only mappings are adjacent: other allocations have a gap before them.
                let is_whole = room == size || matches!(allocation.purpose, Purpose::Mapped(_));
                if is_whole {
                    Ok((allocation.host_at(address), room))
                } else {
                    Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
                }
            }
        }
    }
}

impl CopyOperand {
    /// Returns the access to the bytes from `offset` to `size`.
    fn access(&self, offset: usize, size: usize, write: bool) -> Access {
        let start = match self {
            Self::Device(address) => *address,
            Self::Host(host) => host.0.addr() as u64,
            Self::Staged(bytes) => bytes.as_ptr().addr() as u64,
        };
        Access {
            address: start + offset as u64,
            size: u32::try_from(size - offset).unwrap_or(u32::MAX),
            write,
        }
    }
}

impl Run {
    /// Returns `true` if bytes of the run in an allocation were never written.
    fn is_uninitialized(self, allocation: &Allocation) -> bool {
        let bytes = (allocation.end() - self.address).min(self.bytes as u64);
        allocation
            .written
            .as_ref()
            .is_some_and(|written| !written.covers(self.address - allocation.base, bytes))
    }

    /// Returns the access to the bytes from `offset` on.
    fn access(self, offset: usize, write: bool) -> Access {
        let size = u32::try_from(self.bytes - offset).unwrap_or(u32::MAX);
        Access {
            address: self.address + offset as u64,
            size,
            write,
        }
    }
}

impl Fill {
    /// Repeats the value over `size` bytes of whole elements.
    ///
    /// # Safety
    ///
    /// The bytes may be written.
    unsafe fn write(self, host: HostPtr, size: usize) {
        // Never reads the destination, which another stream may be writing: a race must not spread
        // the values it wrote.
        let bytes = self.value.to_le_bytes();
        let mut block = [0; 1 << 12];
        let block = &mut block[..size.min(1 << 12)];
        block
            .chunks_exact_mut(self.width)
            .for_each(|element| element.copy_from_slice(&bytes[..self.width]));
        for filled in (0..size).step_by(block.len()) {
            let next = block.len().min(size - filled);
            // SAFETY: the caller guarantees that `size` bytes may be written; `next` bytes are left
            // from `filled` on.
            unsafe { ptr::copy_nonoverlapping(block.as_ptr(), host.0.wrapping_add(filled), next) };
        }
    }
}
