//! Stream memory operations, and attachment of managed memory.

use curium_sys::{
    CUmemAttach_flags, CUstreamAtomicReductionDataType, CUstreamAtomicReductionOpType,
    CUstreamBatchMemOpParams, CUstreamBatchMemOpParams_union_CUstreamMemOpAtomicReductionParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpFlushRemoteWritesParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpMemoryBarrierParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1,
    CUstreamBatchMemOpType, CUstreamMemoryBarrier_flags, CUstreamWaitValue_flags,
    CUstreamWriteValue_flags,
};

use crate::call;
use crate::{DevicePointer, Error, Result, Stream};

/// The condition for which a stream waits on a value in memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WaitCondition {
    /// Greater than or equal to the given value, in cyclic order: their difference is not negative
    /// as a signed integer.
    AtLeast,
    /// Equal to the given value.
    Equal,
    /// The bitwise AND with the given value is not 0.
    And,
    /// The bitwise NOR with the given value is not 0. Not supported by every device.
    Nor,
}

/// An atomic reduction of a value in memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reduction {
    /// Addition, wrapping around.
    Add,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
}

/// One operation of [`Stream::batch_memory_operations`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MemoryOperation {
    /// Waits like [`Stream::wait_value_u32`].
    WaitU32(DevicePointer<u32>, WaitCondition, u32),
    /// Waits like [`Stream::wait_value_u64`].
    WaitU64(DevicePointer<u64>, WaitCondition, u64),
    /// Writes like [`Stream::write_value_u32`].
    WriteU32(DevicePointer<u32>, u32),
    /// Writes like [`Stream::write_value_u64`].
    WriteU64(DevicePointer<u64>, u64),
    /// Performs an atomic reduction on a value in memory. Requires CUDA 13.2 and a device with
    /// [`ATOMIC_REDUCTION_SUPPORTED`](crate::DeviceAttribute::ATOMIC_REDUCTION_SUPPORTED).
    ReduceU32(DevicePointer<u32>, Reduction, u32),
    /// Performs a 64-bit reduction like [`MemoryOperation::ReduceU32`].
    ReduceU64(DevicePointer<u64>, Reduction, u64),
    /// Makes earlier remote writes, such as those of other devices, visible to later work.
    FlushRemoteWrites,
    /// A memory barrier with system scope.
    Barrier,
    /// A memory barrier with device scope.
    DeviceBarrier,
}

/// The attachment of managed memory: the streams, or the host, that may access it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AttachMode {
    /// Any stream.
    Global,
    /// The host, but no device.
    Host,
    /// A single stream, the one that it is attached to.
    Stream,
}

impl Stream {
    /// Makes later work wait until the value at `address` fulfills `condition` with `value`. The
    /// host does not block.
    ///
    /// CUDA: `cuStreamWaitValue32_v2`.
    ///
    /// # Safety
    ///
    /// - `address` is a multiple of 4, in memory that the device can access, and stays valid until
    ///   the wait has completed.
    /// - The value is eventually written by work that does not wait for this stream.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory is from a stream-ordered allocation, such as a
    /// `DeviceBuffer`; `CUDA_ERROR_NOT_SUPPORTED` if the device does not support waits, or not for
    /// this condition.
    #[doc(alias = "cuStreamWaitValue32")]
    pub unsafe fn wait_value_u32(
        &self,
        address: DevicePointer<u32>,
        condition: WaitCondition,
        value: u32,
    ) -> Result<()> {
        let operation = self.enqueue("Stream::wait_value_u32")?;
        let stream = operation.raw_stream();
        let address = address.as_raw();
        let flags = condition.flags();
        // SAFETY: the stream is live, and the caller is responsible for the address.
        unsafe {
            call!(
                self.driver(),
                cuStreamWaitValue32_v2(stream, address, value, flags)
            )
        }
    }

    /// Makes later work wait on a 64-bit value, like [`Stream::wait_value_u32`].
    ///
    /// CUDA: `cuStreamWaitValue64_v2`.
    ///
    /// # Safety
    ///
    /// As for [`Stream::wait_value_u32`], with `address` a multiple of 8.
    ///
    /// # Errors
    ///
    /// As for [`Stream::wait_value_u32`]; `CUDA_ERROR_NOT_SUPPORTED` also if the device does not
    /// support 64-bit waits.
    #[doc(alias = "cuStreamWaitValue64")]
    pub unsafe fn wait_value_u64(
        &self,
        address: DevicePointer<u64>,
        condition: WaitCondition,
        value: u64,
    ) -> Result<()> {
        let operation = self.enqueue("Stream::wait_value_u64")?;
        let stream = operation.raw_stream();
        let address = address.as_raw();
        let flags = condition.flags();
        // SAFETY: the stream is live, and the caller is responsible for the address.
        unsafe {
            call!(
                self.driver(),
                cuStreamWaitValue64_v2(stream, address, value, flags)
            )
        }
    }

    /// Writes `value` to `address` after all work currently enqueued on this stream has completed
    /// and its writes are visible system-wide.
    ///
    /// CUDA: `cuStreamWriteValue32_v2`.
    ///
    /// # Safety
    ///
    /// `address` is a multiple of 4, in memory that the device can write. Until the write has
    /// completed, other code accesses the value only to wait for it.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device does not support writes.
    #[doc(alias = "cuStreamWriteValue32")]
    #[inline]
    pub unsafe fn write_value_u32(&self, address: DevicePointer<u32>, value: u32) -> Result<()> {
        let operation = self.enqueue("Stream::write_value_u32")?;
        let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT.0;
        // SAFETY: the stream is live, and the caller is responsible for the address.
        unsafe {
            call!(
                self.driver(),
                cuStreamWriteValue32_v2(operation.raw_stream(), address.as_raw(), value, flags)
            )
        }
    }

    /// Writes a 64-bit value, like [`Stream::write_value_u32`].
    ///
    /// CUDA: `cuStreamWriteValue64_v2`.
    ///
    /// # Safety
    ///
    /// As for [`Stream::write_value_u32`], with `address` a multiple of 8.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device does not support 64-bit writes.
    #[doc(alias = "cuStreamWriteValue64")]
    #[inline]
    pub unsafe fn write_value_u64(&self, address: DevicePointer<u64>, value: u64) -> Result<()> {
        let operation = self.enqueue("Stream::write_value_u64")?;
        let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT.0;
        // SAFETY: the stream is live, and the caller is responsible for the address.
        unsafe {
            call!(
                self.driver(),
                cuStreamWriteValue64_v2(operation.raw_stream(), address.as_raw(), value, flags)
            )
        }
    }

    /// Enqueues several operations at once, which costs less than enqueuing them one by one.
    ///
    /// CUDA: `cuStreamBatchMemOp_v2`.
    ///
    /// # Safety
    ///
    /// The requirements of each operation hold.
    ///
    /// # Errors
    ///
    /// An argument error for more than 256 operations, which drivers reject;
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device does not support an operation.
    #[doc(alias = "cuStreamBatchMemOp")]
    pub unsafe fn batch_memory_operations(&self, operations: &[MemoryOperation]) -> Result<()> {
        let operation = self.enqueue("Stream::batch_memory_operations")?;
        if operations.len() > MAX_BATCH {
            let reason = format!(
                "too many operations ({}, at most {MAX_BATCH})",
                operations.len()
            );
            return Err(Error::argument("Stream::batch_memory_operations", reason));
        }
        let mut parameters: Vec<_> = operations.iter().map(|single| single.as_raw()).collect();
        let stream = operation.raw_stream();
        let count = operations.len() as u32;
        let parameters = parameters.as_mut_ptr();
        // SAFETY: the stream is live, there are `count` parameters, and the caller is responsible
        // for their addresses.
        let result = unsafe {
            call!(
                self.driver(),
                cuStreamBatchMemOp_v2(stream, count, parameters, 0)
            )
        };
        result.map_err(|error| error.about(format!("{count} operations")))
    }

    /// Attaches managed memory to this stream: `bytes` bytes from `address`, or the whole
    /// allocation if `bytes` is 0. `mode` selects the streams, or the host, that may access it from
    /// then on.
    ///
    /// CUDA: `cuStreamAttachMemAsync`.
    ///
    /// # Safety
    ///
    /// - The range is managed memory, and lives until the stream has executed this operation.
    /// - From now on, no code that `mode` excludes accesses the memory, on the device or on the
    ///   host.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the range is not a whole allocation on a device that cannot
    /// attach parts.
    #[doc(alias = "cuStreamAttachMemAsync")]
    #[doc(alias = "cudaStreamAttachMemAsync")]
    pub unsafe fn attach_managed(
        &self,
        address: DevicePointer<u8>,
        bytes: usize,
        mode: AttachMode,
    ) -> Result<()> {
        let operation = self.enqueue("Stream::attach_managed")?;
        let flags = mode.flags();
        // SAFETY: the stream is live, and the caller is responsible for the range.
        unsafe {
            call!(
                self.driver(),
                cuStreamAttachMemAsync(operation.raw_stream(), address.as_raw(), bytes, flags)
            )
        }
    }
}

/// The maximum number of operations in a batch, as documented by CUDA.
pub(crate) const MAX_BATCH: usize = 256;

impl WaitCondition {
    const fn flags(self) -> u32 {
        match self {
            Self::AtLeast => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ.0,
            Self::Equal => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ.0,
            Self::And => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_AND.0,
            Self::Nor => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_NOR.0,
        }
    }
}

impl Reduction {
    const fn as_raw(self) -> CUstreamAtomicReductionOpType {
        match self {
            Self::Add => CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_ADD,
            Self::And => CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_AND,
            Self::Or => CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_OR,
        }
    }
}

impl AttachMode {
    const fn flags(self) -> u32 {
        match self {
            Self::Global => CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0,
            Self::Host => CUmemAttach_flags::CU_MEM_ATTACH_HOST.0,
            Self::Stream => CUmemAttach_flags::CU_MEM_ATTACH_SINGLE.0,
        }
    }
}

impl MemoryOperation {
    pub(crate) fn as_raw(self) -> CUstreamBatchMemOpParams {
        match self {
            Self::WaitU32(address, condition, value) => {
                let value =
                    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1 {
                        value,
                    };
                wait(
                    CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32,
                    address.as_raw(),
                    condition,
                    value,
                )
            }
            Self::WaitU64(address, condition, value64) => {
                let value =
                    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1 {
                        value64,
                    };
                wait(
                    CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64,
                    address.as_raw(),
                    condition,
                    value,
                )
            }
            Self::WriteU32(address, value) => {
                let value =
                    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1 {
                        value,
                    };
                write(
                    CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
                    address.as_raw(),
                    value,
                )
            }
            Self::WriteU64(address, value64) => {
                let value =
                    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1 {
                        value64,
                    };
                write(
                    CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64,
                    address.as_raw(),
                    value,
                )
            }
            Self::ReduceU32(address, reduction, value) => {
                let ty = CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32;
                reduce(ty, address.as_raw(), reduction, u64::from(value))
            }
            Self::ReduceU64(address, reduction, value) => {
                let ty = CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64;
                reduce(ty, address.as_raw(), reduction, value)
            }
            Self::FlushRemoteWrites => CUstreamBatchMemOpParams {
                flushRemoteWrites:
                    CUstreamBatchMemOpParams_union_CUstreamMemOpFlushRemoteWritesParams_st {
                        operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,
                        flags: 0,
                    },
            },
            Self::Barrier => {
                barrier(CUstreamMemoryBarrier_flags::CU_STREAM_MEMORY_BARRIER_TYPE_SYS)
            }
            Self::DeviceBarrier => {
                barrier(CUstreamMemoryBarrier_flags::CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
            }
        }
    }
}

#[inline]
fn wait(
    operation: CUstreamBatchMemOpType,
    address: u64,
    condition: WaitCondition,
    value: CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1,
) -> CUstreamBatchMemOpParams {
    let mut parameters = CUstreamBatchMemOpParams::default();
    parameters.waitValue = CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st {
        operation,
        address,
        __bindgen_anon_1: value,
        flags: condition.flags(),
        alias: 0,
    };
    parameters
}

#[inline]
fn write(
    operation: CUstreamBatchMemOpType,
    address: u64,
    value: CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1,
) -> CUstreamBatchMemOpParams {
    let mut parameters = CUstreamBatchMemOpParams::default();
    parameters.writeValue = CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st {
        operation,
        address,
        __bindgen_anon_1: value,
        flags: CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT.0,
        alias: 0,
    };
    parameters
}

#[inline]
fn reduce(
    ty: CUstreamAtomicReductionDataType,
    address: u64,
    reduction: Reduction,
    value: u64,
) -> CUstreamBatchMemOpParams {
    let mut parameters = CUstreamBatchMemOpParams::default();
    parameters.atomicReduction =
        CUstreamBatchMemOpParams_union_CUstreamMemOpAtomicReductionParams_st {
            operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION,
            flags: 0,
            reductionOp: reduction.as_raw(),
            dataType: ty,
            address,
            value,
            alias: 0,
        };
    parameters
}

#[inline]
fn barrier(scope: CUstreamMemoryBarrier_flags) -> CUstreamBatchMemOpParams {
    let mut parameters = CUstreamBatchMemOpParams::default();
    parameters.memoryBarrier = CUstreamBatchMemOpParams_union_CUstreamMemOpMemoryBarrierParams_st {
        operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER,
        flags: scope.0,
    };
    parameters
}
