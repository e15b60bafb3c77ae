//! Stream memory operations: waiting for and writing single values in stream order.

use std::sync::Arc;

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUdevice_attribute, CUdeviceptr, CUresult, CUstream_st,
    CUstreamAtomicReductionDataType, CUstreamAtomicReductionOpType, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_union_CUstreamMemOpAtomicReductionParams_st as Reduction,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st as WaitValue,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st as WriteValue,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags,
};

use crate::argument::{Pointer, elements};
use crate::driver::graph::{AccessedRange, Content};
use crate::driver::{Context, Driver, Result};
use crate::handle::Id;
use crate::memory::{CopyOperand, HostPtr};
use crate::race;
use crate::schedule::{Wait, Work};
use curium_ptx::exec::Access;

/// A sequence of operations with its description.
#[derive(Clone)]
pub(crate) struct Batch {
    context: Id<Context>,
    described: Arc<[CUstreamBatchMemOpParams]>,
    operations: Arc<[Operation]>,
}

/// One operation on a value of four or eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    address: CUdeviceptr,
    value: u64,
    width: usize,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    /// Waits until the value satisfies the flags.
    Wait(CUstreamWaitValue_flags),
    Write,
    Reduce(fn(u64, u64) -> u64),
}

/// The maximum number of operations in a batch.
const MAX_BATCH: u32 = 256;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuStreamWaitValue32_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u32,
        flags: u32,
    ) -> Result {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32;
        self.operate(stream, &[wait(operation, address, value.into(), flags)])
    }

    pub(crate) fn cuStreamWaitValue64_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u64,
        flags: u32,
    ) -> Result {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
        self.operate(stream, &[wait(operation, address, value, flags)])
    }

    pub(crate) fn cuStreamWriteValue32_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u32,
        flags: u32,
    ) -> Result {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
        self.operate(stream, &[write(operation, address, value.into(), flags)])
    }

    pub(crate) fn cuStreamWriteValue64_v2(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        value: u64,
        flags: u32,
    ) -> Result {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;
        self.operate(stream, &[write(operation, address, value, flags)])
    }

    pub(crate) fn cuStreamBatchMemOp_v2(
        &self,
        stream: Pointer<CUstream_st>,
        count: u32,
        operations: Pointer<CUstreamBatchMemOpParams>,
        flags: u32,
    ) -> Result {
        self.working_stream(&mut self.lock(), stream)?;
        if count > MAX_BATCH || flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller of the C function passed this many operations.
        self.operate(stream, unsafe {
            elements(operations.as_ptr().cast_const(), count as usize)
        }?)
    }
}

impl Driver {
    /// Queues operations, or adds one node for all of them if the stream captures.
    fn operate(
        &self,
        stream: Pointer<CUstream_st>,
        described: &[CUstreamBatchMemOpParams],
    ) -> Result {
        let mut state = self.lock();
        let stream = self.working_stream(&mut state, stream)?;
        let context = self.stream_context(&state, stream)?;
        let batch = self.batch(described, context)?;
        // Nodes accept such memory.
        let is_rejected = batch.operations.iter().any(|operation| {
            self.memory().is_stream_ordered(operation.address)
                || self.memory().is_managed(operation.address)
        });
        if is_rejected {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if state.is_capturing(stream) && !described.is_empty() {
            return state.add_captured(stream, Content::Batch(batch));
        }
        for work in batch.works() {
            self.queue(&mut state, stream, work);
        }
        Ok(())
    }

    /// Returns the operations of their descriptions.
    pub(crate) fn batch(
        &self,
        described: &[CUstreamBatchMemOpParams],
        context: Id<Context>,
    ) -> Result<Batch> {
        let mut operations = Vec::new();
        for description in described {
            self.expect_flush(description)?;
            operations.extend(Operation::described(description)?);
        }
        for operation in &operations {
            let width = operation.width as u64;
            // As on hardware, the device needs no rights to the memory of a pool.
            let is_allocated = self
                .memory()
                .find(operation.address)
                .is_some_and(|allocation| allocation.end() - operation.address >= width);
            if !operation.address.is_multiple_of(width) || !is_allocated {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        Ok(Batch {
            context,
            described: described.into(),
            operations: operations.into(),
        })
    }
}

impl Driver {
    /// Checks that the device can flush remote writes if a wait requests it.
    fn expect_flush(&self, description: &CUstreamBatchMemOpParams) -> Result {
        const FLUSH: u32 = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
        // SAFETY: every form of an operation begins with the kind.
        let kind = unsafe { description.operation };
        let is_wait = matches!(
            kind,
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32
                | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64
        );
        // SAFETY: the kind of the operation is a wait.
        let requests_flush = is_wait && unsafe { description.waitValue }.flags & FLUSH != 0;
        let can_flush = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
        if requests_flush && self.attribute_value(can_flush) == 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        Ok(())
    }
}

impl Batch {
    /// Returns the description of the operations as a node; the list lives as long as the operations.
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

    /// Returns `true` if an operation accesses managed memory.
    pub(crate) fn accesses_managed_memory(&self, driver: &Driver) -> bool {
        self.operations
            .iter()
            .any(|operation| driver.memory().is_managed(operation.address))
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

    /// Returns the operations as work, each ordered after the previous one.
    pub(crate) fn works(&self) -> impl Iterator<Item = Work> {
        self.operations.iter().map(|operation| operation.work())
    }
}

impl Operation {
    /// Returns the operation of a description; `None` for barriers, because streams run in order here.
    fn described(description: &CUstreamBatchMemOpParams) -> Result<Option<Self>> {
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

    fn new(address: CUdeviceptr, value: u64, is_wide: bool, action: Action) -> Self {
        Self {
            address,
            value,
            width: if is_wide { 8 } else { 4 },
            action,
        }
    }

    fn work(self) -> Work {
        let Self {
            address,
            value,
            width,
            action,
        } = self;
        match action {
            Action::Wait(condition) => Work::Wait(Wait::for_value(
                Access {
                    address,
                    size: width as u32,
                    write: false,
                },
                Box::new(move |driver| Ok(self.is_met_by(self.read(driver)?, condition))),
            )),
            Action::Write => Work::Device(Box::new(move |driver| {
                race::exchange_here();
                driver.report_transfer(driver.memory().store(address, width, value))
            })),
            Action::Reduce(combine) => Work::Device(Box::new(move |driver| {
                race::exchange_here();
                driver.report_transfer(
                    driver
                        .memory()
                        .combine(address, width, |current| combine(current, value)),
                )
            })),
        }
    }

    /// Returns the value in memory.
    fn read(&self, driver: &Driver) -> Result<u64> {
        let mut bytes = [0; 8];
        let destination = CopyOperand::Host(HostPtr(bytes.as_mut_ptr()));
        driver.report_transfer(driver.memory().copy_unrecorded(
            &destination,
            &CopyOperand::Device(self.address),
            self.width,
        ))?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn is_met_by(&self, current: u64, condition: CUstreamWaitValue_flags) -> bool {
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
fn wait(
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
fn write(
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
