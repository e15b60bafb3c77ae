//! Copies.

pub(crate) mod rows;

use std::ffi::c_void;

use curium_ptx::exec::{Access, Report, ReportKind};
use curium_sys::{CUdeviceptr, CUresult, CUstream_st};

use crate::activity::{self, ActivityMemory, ActivityOperation};
use crate::argument::Pointer;
use crate::driver::Driver;
use crate::host_pointer::HostPtr;
use crate::memory::{CopyOperand, Memory, Purpose};
use crate::result::Result;

/// The memory of a driver as operands of copies and fills.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    pub(crate) memory: &'a Memory,
}

impl Operands<'_> {
    /// Returns the kind of memory of an operand in activities.
    pub(crate) fn activity_memory(&self, operand: &CopyOperand) -> ActivityMemory {
        let address = match operand {
            CopyOperand::Device(address) => *address,
            CopyOperand::Host(host) => host.0.addr() as u64,
            CopyOperand::Staged(_) => return ActivityMemory::Pageable,
        };
        let purpose = self
            .memory
            .find(address)
            .map(|allocation| allocation.purpose);
        purpose.map_or(ActivityMemory::Pageable, Purpose::activity_memory)
    }

    /// Returns `true` if only the device can access an operand of a copy, and no attribute makes
    /// its copies synchronous.
    pub(crate) fn is_on_device(&self, operand: &CopyOperand) -> bool {
        match operand {
            CopyOperand::Device(address) => self.memory.is_on_device(*address),
            CopyOperand::Host(_) | CopyOperand::Staged(_) => false,
        }
    }

    /// Returns `true` if copies of an operand wait by an attribute of its memory.
    pub(crate) fn is_synchronous(&self, operand: &CopyOperand) -> bool {
        matches!(operand, CopyOperand::Device(address) if self.memory.is_synchronous(*address))
    }

    /// Returns `true` if a copy accesses a unified address as host memory. As on hardware, it
    /// accesses memory of host pools in this way, for which no device needs rights. Fails if the
    /// allocation ends before the operand.
    pub(crate) fn is_unified_host(&self, address: CUdeviceptr, size: usize) -> Result<bool> {
        match self.memory.find(address) {
            None => Ok(!self.memory.is_device_address(address)),
            Some(allocation) if matches!(allocation.purpose, Purpose::HostPool(_)) => {
                if allocation.is_retired || allocation.end() - address < size as u64 {
                    return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
                }
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }
}

impl Driver {
    /// Reports the access of a copy or a fill to memory that was freed before it ran.
    pub(crate) fn report_transfer(&self, outcome: std::result::Result<(), Access>) -> Result {
        let report = outcome
            .err()
            .map(|access| Report::for_transfer(ReportKind::IllegalAddress, access, None));
        self.handle_report(report)
    }

    /// Copies consecutive bytes.
    pub(crate) fn copy_line(&self, to: &CopyOperand, from: &CopyOperand, size: usize) -> Result {
        activity::measured(
            || ActivityOperation::Copy {
                from: self.operands().activity_memory(from),
                to: self.operands().activity_memory(to),
                bytes: size as u64,
            },
            || self.report_transfer(self.memory().copy(to, from, size)),
        )
    }

    /// Returns an operand of a copy in an allocation of sufficient size. As on hardware, contiguous
    /// mappings count as one only while a context is current.
    pub(crate) fn device_operand(&self, address: CUdeviceptr, size: usize) -> Result<CopyOperand> {
        let is_allocated = size == 0 || self.memory().contains(address, size as u64);
        let may_be_several = size == 0 || self.current().is_ok();
        let is_valid = is_allocated
            && (may_be_several
                || self
                    .memory()
                    .find(address)
                    .is_some_and(|allocation| address + size as u64 <= allocation.end()));
        if is_valid {
            Ok(CopyOperand::Device(address))
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }
}

pub(crate) fn host_operand(memory: *mut c_void, size: usize) -> Result<CopyOperand> {
    if memory.is_null() && size != 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(CopyOperand::Host(HostPtr(memory.cast())))
}

/// Returns the handle of the default stream that synchronous calls use.
pub(crate) fn legacy() -> Pointer<CUstream_st> {
    Pointer::null()
}
