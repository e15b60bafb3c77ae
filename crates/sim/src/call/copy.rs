//! The C functions for copies.

mod batch;
mod peer;
mod rows;

use std::ffi::c_void;

use curium_ptx::exec::Access;
use curium_sys::{CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype, CUresult, CUstream_st};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::copy::{host_operand, legacy};
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::host_pointer::HostPtr;
use crate::memory::{CopyOperand, READ, WRITE};
use crate::race::{self, HostSnapshot};
use crate::result::Result;

/// The size in bytes up to which an asynchronous copy reads pageable memory when it is enqueued;
/// larger copies are synchronous.
const STAGED_BYTES: usize = 64 << 10;

/// The copies that their caller waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    Always,
    /// Waits unless both operands are device memory, as synchronous copies do.
    UnlessOnDevice,
    Never,
}

/// The operands of a copy.
pub(crate) struct CopyOperands {
    pub(crate) to: CopyOperand,
    pub(crate) from: CopyOperand,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemcpyHtoD_v2(
        &self,
        to: CUdeviceptr,
        from: ConstPointer<c_void>,
        size: usize,
    ) -> Result {
        self.require_current()?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.host_operand(from.as_ptr().cast_mut(), size)?,
        };
        self.transfer(legacy(), operands, size, Wait::Always)
    }

    pub(crate) fn cuMemcpyDtoH_v2(
        &self,
        to: Pointer<c_void>,
        from: CUdeviceptr,
        size: usize,
    ) -> Result {
        self.require_current()?;
        let operands = CopyOperands {
            to: self.host_operand(to.as_ptr(), size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer(legacy(), operands, size, Wait::Always)
    }

    /// Copies between addresses of the device. As on hardware, the host does not wait, unless it
    /// can access one of them.
    pub(crate) fn cuMemcpyDtoD_v2(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        size: usize,
    ) -> Result {
        self.require_current()?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer(legacy(), operands, size, Wait::UnlessOnDevice)
    }

    pub(crate) fn cuMemcpy(&self, to: CUdeviceptr, from: CUdeviceptr, size: usize) -> Result {
        self.require_current()?;
        let operands = CopyOperands {
            to: self.unified_operand(to, size)?,
            from: self.unified_operand(from, size)?,
        };
        self.transfer(legacy(), operands, size, Wait::UnlessOnDevice)
    }

    pub(crate) fn cuMemcpyHtoDAsync_v2(
        &self,
        to: CUdeviceptr,
        from: ConstPointer<c_void>,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.host_operand(from.as_ptr().cast_mut(), size)?,
        };
        self.transfer_async(stream, operands, size)
    }

    pub(crate) fn cuMemcpyDtoHAsync_v2(
        &self,
        to: Pointer<c_void>,
        from: CUdeviceptr,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        let operands = CopyOperands {
            to: self.host_operand(to.as_ptr(), size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer_async(stream, operands, size)
    }

    pub(crate) fn cuMemcpyDtoDAsync_v2(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer(stream, operands, size, Wait::Never)
    }

    pub(crate) fn cuMemcpyAsync(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        let operands = CopyOperands {
            to: self.unified_operand(to, size)?,
            from: self.unified_operand(from, size)?,
        };
        self.transfer_async(stream, operands, size)
    }
}

impl Call<'_> {
    /// Enqueues an asynchronous copy, and waits where the driver does: for pageable memory.
    fn transfer_async(
        &self,
        stream: Pointer<CUstream_st>,
        operands: CopyOperands,
        size: usize,
    ) -> Result {
        if self.is_pageable_operand(&operands.to) {
            return self.transfer(stream, operands, size, Wait::Always);
        }
        if !self.is_pageable_operand(&operands.from) {
            return self.transfer(stream, operands, size, Wait::Never);
        }
        match operands.from {
            CopyOperand::Host(host) if size <= STAGED_BYTES && !self.captures(stream)? => {
                let mut staged = vec![0; size].into_boxed_slice();
                // SAFETY: the caller of the copy guarantees that `size` bytes at `host` can be read
                // now.
                unsafe {
                    std::ptr::copy_nonoverlapping(host.0.cast_const(), staged.as_mut_ptr(), size);
                };
                let operands = CopyOperands {
                    from: CopyOperand::Staged(staged),
                    ..operands
                };
                self.transfer(stream, operands, size, Wait::Never)
            }
            _ => self.transfer(stream, operands, size, Wait::Always),
        }
    }

    /// Returns `true` for host memory that the driver does not know.
    fn is_pageable_operand(&self, operand: &CopyOperand) -> bool {
        matches!(operand, CopyOperand::Host(host) if !self.is_known(*host))
    }

    /// Returns `true` if copies in a stream become nodes, which read nothing yet.
    pub(crate) fn captures(&self, stream: Pointer<CUstream_st>) -> Result<bool> {
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        Ok(state.captures.is_capturing(stream))
    }

    /// Enqueues a copy in the context of the stream, which needs access to the pools of both
    /// operands.
    fn transfer(
        &self,
        stream: Pointer<CUstream_st>,
        operands: CopyOperands,
        size: usize,
        wait: Wait,
    ) -> Result {
        let mut accesses = Vec::new();
        if let CopyOperand::Device(address) = operands.from {
            accesses.push((address, READ));
        }
        if let CopyOperand::Device(address) = operands.to {
            accesses.push((address, WRITE));
        }
        self.check_pool_access(stream, &accesses)?;
        self.transfer_between_contexts(stream, operands, size, wait)
    }

    /// Checks that the context of a stream has rights to memory of pools, each at an address.
    ///
    /// As on hardware, copies need no peer access to memory that no pool allocated.
    pub(crate) fn check_pool_access(
        &self,
        stream: Pointer<CUstream_st>,
        accesses: &[(CUdeviceptr, u32)],
    ) -> Result {
        if self.config().devices == 1 {
            return Ok(());
        }
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        let device = state.contexts.live_context(context)?.device();
        let is_accessible = accesses.iter().all(|(address, rights)| {
            self.memory()
                .pools()
                .pool_allows_at(*address, device, *rights)
        });
        if is_accessible {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(crate) fn transfer_between_contexts(
        &self,
        stream: Pointer<CUstream_st>,
        operands: CopyOperands,
        size: usize,
        wait: Wait,
    ) -> Result {
        let CopyOperands { to, from } = operands;
        let waits = match wait {
            Wait::Always => true,
            Wait::UnlessOnDevice => {
                !self.operands().is_on_device(&to) || !self.operands().is_on_device(&from)
            }
            Wait::Never => {
                self.operands().is_synchronous(&to) || self.operands().is_synchronous(&from)
            }
        };
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        if size == 0 {
            return Ok(());
        }
        if state.captures.is_capturing(stream) {
            let copy = state.copy_content(line(&to, &from, size))?;
            return state.add_captured(stream, copy);
        }
        if waits {
            let work = Work::Device(Box::new(move |driver| driver.copy_line(&to, &from, size)));
            return state.queue_and_wait(stream, work);
        }
        let before =
            [(&from, false), (&to, true)].map(|(end, write)| (state.before(end, size), write));
        let work = Work::Device(Box::new(move |driver| {
            before
                .iter()
                .for_each(|(before, write)| record_host_changes(before.as_ref(), size, *write));
            driver.copy_line(&to, &from, size)
        }));
        state.queue(stream, work);
        Ok(())
    }

    /// Returns an operand of a copy by a pointer of the host, which may be to memory of the device.
    pub(crate) fn host_operand(&self, memory: *mut c_void, size: usize) -> Result<CopyOperand> {
        let address = memory.addr() as u64;
        if self.memory().is_closed_to_host(address) {
            return self.device_operand(address, size);
        }
        host_operand(memory, size)
    }

    /// Returns an operand of a copy in device memory or host memory, depending on its address.
    fn unified_operand(&self, address: CUdeviceptr, size: usize) -> Result<CopyOperand> {
        if self.operands().is_unified_host(address, size)? {
            return host_operand(HostPtr::from_exposed(address).0.cast(), size);
        }
        self.device_operand(address, size)
    }

    pub(crate) fn is_known(&self, host: HostPtr) -> bool {
        self.memory().find(host.0.addr() as u64).is_some()
    }
}

impl Locked<'_> {
    /// Returns the current content of an operand of a queued copy, if it is host memory and race
    /// checks are on.
    fn before(&self, end: &CopyOperand, size: usize) -> Option<HostSnapshot> {
        let driver = self.driver();
        let races = self.schedule.races()?;
        let address = match end {
            CopyOperand::Host(host) => host.0.addr() as u64,
            CopyOperand::Device(address) => *address,
            CopyOperand::Staged(_) => return None,
        };
        let allocation = driver
            .memory()
            .find(address)
            .filter(|allocation| allocation.purpose.is_on_host())?;
        let is_whole = allocation.end() - address >= size as u64;
        // SAFETY: the bytes are of an allocation of the host, which is not freed before its work is
        // done.
        is_whole
            .then(|| unsafe { HostSnapshot::new(races, allocation.host_at(address), size) })
            .flatten()
    }
}

/// Records the host's changes to an operand of a copy while it was queued.
fn record_host_changes(before: Option<&HostSnapshot>, size: usize, write: bool) {
    if let Some(before) = before
        && let Some(offset) = before.changed()
    {
        race::record_host_race(Access {
            address: before.address() + offset as u64,
            size: u32::try_from(size - offset).unwrap_or(u32::MAX),
            write,
        });
    }
}

/// Returns the description of a copy of one row, as in graphs.
fn line(to: &CopyOperand, from: &CopyOperand, size: usize) -> CUDA_MEMCPY3D {
    let mut copy = CUDA_MEMCPY3D {
        WidthInBytes: size,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    match to {
        CopyOperand::Host(host) => {
            (copy.dstMemoryType, copy.dstHost) = (CUmemorytype::CU_MEMORYTYPE_HOST, host.0.cast());
        }
        CopyOperand::Device(address) => {
            (copy.dstMemoryType, copy.dstDevice) = (CUmemorytype::CU_MEMORYTYPE_DEVICE, *address);
        }
        CopyOperand::Staged(_) => {}
    }
    match from {
        CopyOperand::Host(host) => {
            (copy.srcMemoryType, copy.srcHost) =
                (CUmemorytype::CU_MEMORYTYPE_HOST, host.0.cast_const().cast());
        }
        CopyOperand::Device(address) => {
            (copy.srcMemoryType, copy.srcDevice) = (CUmemorytype::CU_MEMORYTYPE_DEVICE, *address);
        }
        CopyOperand::Staged(_) => {}
    }
    copy
}
