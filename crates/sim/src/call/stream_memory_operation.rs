//! Stream memory operations: waiting for and writing single values in stream order.

use curium_sys::{
    CUdevice_attribute, CUdeviceptr, CUresult, CUstream_st, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags,
};

use crate::argument::{Pointer, elements};
use crate::call::Call;
use crate::context::Context;
use crate::handle::Id;
use crate::object::graph::content::Content;
use crate::object::stream_memory_operation::{Batch, Operation, wait, write};
use crate::result::Result;

/// The maximum number of operations in a batch.
const MAX_BATCH: u32 = 256;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
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

impl Call<'_> {
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
