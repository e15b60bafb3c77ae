//! The C functions for stream memory operations.

use curium_sys::{
    CUdeviceptr, CUresult, CUstream_st, CUstreamBatchMemOpParams, CUstreamBatchMemOpType,
};

use crate::argument::{Pointer, elements};
use crate::call::Call;
use crate::object::graph::content::Content;
use crate::object::stream_memory_operation::{wait, write};
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
        self.lock().working_stream(stream)?;
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
        let stream = state.working_stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        let batch = self.batch(described, context)?;
        // Nodes accept such memory.
        let is_rejected = batch.operations.iter().any(|operation| {
            self.memory().is_stream_ordered(operation.address)
                || self.memory().is_managed(operation.address)
        });
        if is_rejected {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if state.captures.is_capturing(stream) && !described.is_empty() {
            return state.add_captured(stream, Content::Batch(batch));
        }
        for work in batch.works() {
            state.queue(stream, work);
        }
        Ok(())
    }
}
