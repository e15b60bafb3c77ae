//! Stream memory operations: waiting for and writing single values in stream order.

use std::sync::Arc;

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUdeviceptr, CUresult, CUstreamAtomicReductionDataType,
    CUstreamAtomicReductionOpType, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_union_CUstreamMemOpAtomicReductionParams_st as Reduction,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st as WaitValue,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st as WriteValue,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags,
};

use crate::context::Context;
use crate::handle::Id;
use crate::object::copy::AccessedRange;
use crate::result::Result;

/// A sequence of operations with its description.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) context: Id<Context>,
    pub(crate) described: Arc<[CUstreamBatchMemOpParams]>,
    pub(crate) operations: Arc<[Operation]>,
}

/// One operation on a value of four or eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) address: CUdeviceptr,
    pub(crate) value: u64,
    pub(crate) width: usize,
    pub(crate) action: Action,
}

#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// Waits until the value satisfies the flags.
    Wait(CUstreamWaitValue_flags),
    Write,
    Reduce(fn(u64, u64) -> u64),
}

impl Batch {
    /// Returns the description of the operations as a node; the list lives as long as the
    /// operations.
    pub(crate) fn description(&self) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
        CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: self.context.as_raw(),
            count: self.described.len() as u32,
            paramArray: self.described.as_ptr().cast_mut(),
            flags: 0,
        }
    }

    /// Returns `true` if the operations of two batches have the same types.
    pub(crate) fn has_same_operations(&self, other: &Self) -> bool {
        let kinds = self.kinds();
        kinds.eq(other.kinds())
    }

    fn kinds(&self) -> impl Iterator<Item = CUstreamBatchMemOpType> {
        self.described.iter().map(|description| {
            // SAFETY: every form of an operation begins with the kind.
            unsafe { description.operation }
        })
    }

    /// Returns the addresses of the values.
    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        self.operations
            .iter()
            .map(|operation| AccessedRange {
                address: operation.address,
                size: operation.width as u64,
                write: !matches!(operation.action, Action::Wait(_)),
            })
            .collect()
    }
}

impl Operation {
    /// Returns the operation of a description; `None` for barriers, because streams run in order
    /// here.
    pub(crate) fn described(description: &CUstreamBatchMemOpParams) -> Result<Option<Self>> {
        // SAFETY: every form of an operation begins with the kind.
        let kind = unsafe { description.operation };
        match kind {
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                // SAFETY: the kind of the operation is a wait.
                Self::wait(&unsafe { description.waitValue }).map(Some)
            }
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                // SAFETY: the kind of the operation is a write.
                Self::write(&unsafe { description.writeValue }).map(Some)
            }
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION => {
                // SAFETY: the kind of the operation is a reduction.
                Self::reduction(&unsafe { description.atomicReduction }).map(Some)
            }
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Ok(None),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    fn wait(wait: &WaitValue) -> Result<Self> {
        let condition = wait.flags & !CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
        if condition > CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_NOR.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let is_wide = wait.operation == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
        let value = if is_wide {
            // SAFETY: the caller set the wide value.
            unsafe { wait.__bindgen_anon_1.value64 }
        } else {
            // SAFETY: the caller set the narrow value.
            u64::from(unsafe { wait.__bindgen_anon_1.value })
        };
        Ok(Self::new(
            wait.address,
            value,
            is_wide,
            Action::Wait(CUstreamWaitValue_flags(condition)),
        ))
    }

    fn write(write: &WriteValue) -> Result<Self> {
        // As on hardware, writes always have a barrier.
        if write.flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let is_wide = write.operation == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;
        let value = if is_wide {
            // SAFETY: the caller set the wide value.
            unsafe { write.__bindgen_anon_1.value64 }
        } else {
            // SAFETY: the caller set the narrow value.
            u64::from(unsafe { write.__bindgen_anon_1.value })
        };
        Ok(Self::new(write.address, value, is_wide, Action::Write))
    }

    fn reduction(reduction: &Reduction) -> Result<Self> {
        let is_wide = match reduction.dataType {
            CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 => false,
            CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 => true,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let combine: fn(u64, u64) -> u64 = match reduction.reductionOp {
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_ADD => u64::wrapping_add,
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_AND => {
                |current, value| current & value
            }
            CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_OR => {
                |current, value| current | value
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        Ok(Self::new(
            reduction.address,
            reduction.value,
            is_wide,
            Action::Reduce(combine),
        ))
    }

    pub(crate) fn new(address: CUdeviceptr, value: u64, is_wide: bool, action: Action) -> Self {
        Self {
            address,
            value,
            width: if is_wide { 8 } else { 4 },
            action,
        }
    }

    pub(crate) fn is_met_by(&self, current: u64, condition: CUstreamWaitValue_flags) -> bool {
        let shift = 64 - 8 * self.width;
        match condition {
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ => {
                (current.wrapping_sub(self.value) << shift).cast_signed() >= 0
            }
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ => current == self.value,
            CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_AND => current & self.value != 0,
            _ => !(current | self.value) << shift != 0,
        }
    }
}

/// Returns the description of a wait.
pub(crate) fn wait(
    operation: CUstreamBatchMemOpType,
    address: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CUstreamBatchMemOpParams {
    let mut wait = WaitValue {
        operation,
        address,
        flags,
        ..WaitValue::default()
    };
    // The narrow value is the low half of the wide one.
    wait.__bindgen_anon_1.value64 = value;
    CUstreamBatchMemOpParams { waitValue: wait }
}

/// Returns the description of a write.
pub(crate) fn write(
    operation: CUstreamBatchMemOpType,
    address: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CUstreamBatchMemOpParams {
    let mut write = WriteValue {
        operation,
        address,
        flags,
        ..WriteValue::default()
    };
    // As above.
    write.__bindgen_anon_1.value64 = value;
    CUstreamBatchMemOpParams { writeValue: write }
}
