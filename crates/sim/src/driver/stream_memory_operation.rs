//! Waiting for and writing single values in stream order.

use curium_sys::{
    CUdeviceptr, CUresult, CUstream_st, CUstreamAtomicReductionDataType, CUstreamAtomicReductionOpType,
    CUstreamBatchMemOpParams, CUstreamBatchMemOpParams_union_CUstreamMemOpAtomicReductionParams_st as Reduction,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags,
};

use crate::argument::{Pointer, elements};
use crate::driver::{Driver, Result};
use crate::memory::{End, HostPtr};
use crate::schedule::Work;

/// One operation on a value of four or eight bytes.
#[derive(Clone, Copy)]
struct Operation {
    address: CUdeviceptr,
    value: u64,
    width: usize,
    flags: u32,
}

/// How many operations a batch may have.
const MAX_BATCH: u32 = 256;

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuStreamWaitValue32_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u32,
        flags: u32,
    ) -> Result {
        self.queue_wait(stream, Operation { address, value: value.into(), width: 4, flags })
    }

    pub(crate) fn cuStreamWaitValue64_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u64,
        flags: u32,
    ) -> Result {
        self.queue_wait(stream, Operation { address, value, width: 8, flags })
    }

    pub(crate) fn cuStreamWriteValue32_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u32,
        flags: u32,
    ) -> Result {
        self.queue_write(stream, Operation { address, value: value.into(), width: 4, flags })
    }

    pub(crate) fn cuStreamWriteValue64_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u64,
        flags: u32,
    ) -> Result {
        self.queue_write(stream, Operation { address, value, width: 8, flags })
    }

    pub(crate) fn cuStreamBatchMemOp_v2(
        &self,
        stream: Pointer<CUstream_st>,
        count: u32,
        operations: Pointer<CUstreamBatchMemOpParams>,
        flags: u32,
    ) -> Result {
        if count > MAX_BATCH || flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller of the C function passed this many operations.
        let operations = unsafe { elements(operations.as_ptr().cast_const(), count as usize) }?;
        operations.iter().try_for_each(|operation| self.queue_operation(stream, operation))
    }
}

impl Driver {
    fn queue_operation(&self, stream: Pointer<CUstream_st>, operation: &CUstreamBatchMemOpParams) -> Result {
        // SAFETY: the kind comes first in every form of an operation.
        let kind = unsafe { operation.operation };
        match kind {
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                // SAFETY: the kind says that this is a wait.
                let wait = unsafe { operation.waitValue };
                let is_wide = kind == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
                let value = if is_wide {
                    // SAFETY: the caller set the wide value.
                    unsafe { wait.__bindgen_anon_1.value64 }
                } else {
                    // SAFETY: the caller set the narrow value.
                    u64::from(unsafe { wait.__bindgen_anon_1.value })
                };
                self.queue_wait(stream, Operation::new(wait.address, value, is_wide, wait.flags))
            }
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                // SAFETY: the kind says that this is a write.
                let write = unsafe { operation.writeValue };
                let is_wide = kind == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;
                let value = if is_wide {
                    // SAFETY: the caller set the wide value.
                    unsafe { write.__bindgen_anon_1.value64 }
                } else {
                    // SAFETY: the caller set the narrow value.
                    u64::from(unsafe { write.__bindgen_anon_1.value })
                };
                self.queue_write(stream, Operation::new(write.address, value, is_wide, write.flags))
            }
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION => {
                // SAFETY: the kind says that this is a reduction.
                let reduction = unsafe { operation.atomicReduction };
                self.queue_reduction(stream, &reduction)
            }
            // Work of a stream runs in order here, and sees what was written before.
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Ok(()),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    fn queue_wait(&self, stream: Pointer<CUstream_st>, operation: Operation) -> Result {
        let condition = operation.flags & !CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
        if condition > CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_NOR.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let is_met = move |driver: &Self| Ok(operation.is_met_by(driver.value(&operation)?, condition));
        self.queue_on_value(stream, operation, Work::Wait(Box::new(is_met)))
    }

    fn queue_write(&self, stream: Pointer<CUstream_st>, operation: Operation) -> Result {
        if operation.flags > 1 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let write = move |driver: &Self| {
            let Operation { address, value, width, .. } = operation;
            let bytes = value.to_le_bytes()[..width].into();
            driver.memory().copy(&End::Device(address), &End::Staged(bytes), width)
        };
        self.queue_on_value(stream, operation, Work::Device(Box::new(write)))
    }

    fn queue_reduction(&self, stream: Pointer<CUstream_st>, reduction: &Reduction) -> Result {
        let is_wide = match reduction.dataType {
            CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 => false,
            CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 => true,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let combine: fn(u64, u64) -> u64 = match reduction.reductionOp {
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_ADD => u64::wrapping_add,
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_AND => |found, value| found & value,
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_OR => |found, value| found | value,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let operation = Operation::new(reduction.address, reduction.value, is_wide, reduction.flags);
        let reduce = move |driver: &Self| {
            driver.memory().combine(operation.address, operation.width, |found| combine(found, operation.value))
        };
        self.queue_on_value(stream, operation, Work::Device(Box::new(reduce)))
    }

    fn queue_on_value(&self, stream: Pointer<CUstream_st>, operation: Operation, work: Work) -> Result {
        let Operation { address, width, .. } = operation;
        let mut state = self.lock();
        let stream = self.stream(&mut state, stream)?;
        let is_fit = address.is_multiple_of(width as u64) && self.memory().contains(address, width as u64);
        if !is_fit || self.memory().is_stream_ordered(address) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.queue(&mut state, stream, work);
        Ok(())
    }

    /// What is in memory now.
    fn value(&self, operation: &Operation) -> Result<u64> {
        let mut bytes = [0; 8];
        let place = End::Host(HostPtr(bytes.as_mut_ptr()));
        self.memory().copy(&place, &End::Device(operation.address), operation.width)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl Operation {
    fn new(address: CUdeviceptr, value: u64, is_wide: bool, flags: u32) -> Self {
        Self { address, value, width: if is_wide { 8 } else { 4 }, flags }
    }

    fn is_met_by(&self, found: u64, condition: u32) -> bool {
        let shift = 64 - 8 * self.width;
        match CUstreamWaitValue_flags(condition) {
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ => {
                (found.wrapping_sub(self.value) << shift).cast_signed() >= 0
            }
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ => found == self.value,
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_AND => found & self.value != 0,
            _ => !(found | self.value) << shift != 0,
        }
    }
}
