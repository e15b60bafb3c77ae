//! Many copies in one call, and copies with attributes.

use curium_sys::{
    CUDA_MEMCPY3D_BATCH_OP, CUdeviceptr, CUmemcpy3DOperand, CUmemcpy3DOperandType,
    CUmemcpyAttributes, CUmemcpySrcAccessOrder, CUresult, CUstream_st,
};

use crate::argument::{Pointer, elements};
use crate::call::Call;
use crate::call::stream::check_no_legacy;
use crate::result::Result;

/// The lists of a batch.
struct Batch<'a> {
    targets: &'a [CUdeviceptr],
    sources: &'a [CUdeviceptr],
    sizes: &'a [usize],
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters are those of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemcpyBatchAsync(
        &self,
        targets: Pointer<CUdeviceptr>,
        sources: Pointer<CUdeviceptr>,
        sizes: Pointer<usize>,
        count: usize,
        attributes: Pointer<CUmemcpyAttributes>,
        firsts: Pointer<usize>,
        attribute_count: usize,
        failed: Pointer<usize>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        failed.write_if_not_null(usize::MAX);
        self.current()
            .map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        check_attributes(attributes, firsts, attribute_count, count)?;
        self.check_no_capture(stream)?;
        let batch = batch(targets, sources, sizes, count)?;
        self.copy_batch(&batch, stream).map_err(|(index, code)| {
            failed.write_if_not_null(index);
            code
        })
    }

    pub(crate) fn cuMemcpyBatchAsync_v2(
        &self,
        targets: Pointer<CUdeviceptr>,
        sources: Pointer<CUdeviceptr>,
        sizes: Pointer<usize>,
        count: usize,
        attributes: Pointer<CUmemcpyAttributes>,
        firsts: Pointer<usize>,
        attribute_count: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let failed = Pointer::null();
        self.cuMemcpyBatchAsync(
            targets,
            sources,
            sizes,
            count,
            attributes,
            firsts,
            attribute_count,
            failed,
            stream,
        )
    }

    pub(crate) fn cuMemcpyWithAttributesAsync(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        size: usize,
        attributes: Pointer<CUmemcpyAttributes>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        check_order(attributes.read()?.srcAccessOrder)?;
        self.cuMemcpyAsync(to, from, size, stream)
    }

    pub(crate) fn cuMemcpy3DBatchAsync_v2(
        &self,
        count: usize,
        operations: Pointer<CUDA_MEMCPY3D_BATCH_OP>,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        check_no_legacy(stream)?;
        if count == 0 || flags != 0 || self.current().is_err() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: by the contract of the C function, the array has `count` operations.
        let operations = unsafe { elements(operations.as_ptr().cast_const(), count) }?;
        self.check_no_capture(stream)?;
        for operation in operations {
            check_order(operation.srcAccessOrder)?;
            let addresses: Vec<_> = [&operation.dst, &operation.src]
                .into_iter()
                .filter_map(device_address)
                .collect();
            self.check_reach(stream, &addresses)?;
            self.copy_operation(operation, stream)?;
        }
        Ok(())
    }

    pub(crate) fn cuMemcpy3DBatchAsync(
        &self,
        count: usize,
        operations: Pointer<CUDA_MEMCPY3D_BATCH_OP>,
        failed: Pointer<usize>,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        failed.write_if_not_null(usize::MAX);
        self.cuMemcpy3DBatchAsync_v2(count, operations, flags, stream)
    }

    pub(crate) fn cuMemcpy3DWithAttributesAsync(
        &self,
        operation: Pointer<CUDA_MEMCPY3D_BATCH_OP>,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let operation = operation.read()?;
        check_order(operation.srcAccessOrder)?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.copy_operation(&operation, stream)
    }
}

impl Call<'_> {
    /// Checks that a stream does not capture, since a batch cannot be a node. As on hardware, the
    /// capture is not invalidated.
    fn check_no_capture(&self, stream: Pointer<CUstream_st>) -> Result {
        if self.captures(stream)? {
            let mut state = self.lock();
            let stream = state.stream(stream)?;
            state.captures.check_valid_capture(stream)?;
            Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        } else {
            Ok(())
        }
    }

    /// Checks that the context of a stream can access memory.
    ///
    /// As on hardware, a batch needs the same access to another device's memory as a kernel:
    /// through the access rights of a pool, or peer access between the contexts.
    fn check_reach(&self, stream: Pointer<CUstream_st>, addresses: &[CUdeviceptr]) -> Result {
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        let view = self.memory().seen_by(
            state.contexts.live_context(context)?.device(),
            state.contexts.peer_devices(context),
        );
        let mut on_device = addresses.iter().filter(|address| {
            !self
                .operands()
                .is_unified_host(**address, 0)
                .unwrap_or_default()
        });
        if on_device.all(|address| view.reaches(*address)) {
            return Ok(());
        }
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Enqueues the copies in order, which a batch permits; returns the index of the one that is
    /// refused.
    fn copy_batch(
        &self,
        batch: &Batch<'_>,
        stream: Pointer<CUstream_st>,
    ) -> std::result::Result<(), (usize, CUresult)> {
        check_no_legacy(stream).map_err(|code| (usize::MAX, code))?;
        let copies = batch
            .targets
            .iter()
            .zip(batch.sources)
            .zip(batch.sizes)
            .enumerate();
        for (index, ((to, from), size)) in copies {
            // As on hardware, no copy of a batch has null, even of no bytes.
            if *to == 0 || *from == 0 {
                return Err((index, CUresult::CUDA_ERROR_INVALID_VALUE));
            }
            self.check_reach(stream, &[*to, *from])
                .map_err(|code| (index, code))?;
            self.cuMemcpyAsync(*to, *from, *size, stream)
                .map_err(|code| (index, code))?;
        }
        Ok(())
    }
}

fn batch<'a>(
    targets: Pointer<CUdeviceptr>,
    sources: Pointer<CUdeviceptr>,
    sizes: Pointer<usize>,
    count: usize,
) -> Result<Batch<'a>> {
    if count == 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(Batch {
        // SAFETY: by the contract of the C function, the array has `count` addresses.
        targets: unsafe { elements(targets.as_ptr().cast_const(), count) }?,
        // SAFETY: by the contract of the C function, the array has `count` addresses.
        sources: unsafe { elements(sources.as_ptr().cast_const(), count) }?,
        // SAFETY: by the contract of the C function, the array has `count` sizes.
        sizes: unsafe { elements(sizes.as_ptr().cast_const(), count) }?,
    })
}

/// Returns the start of an operand that is memory.
fn device_address(operand: &CUmemcpy3DOperand) -> Option<CUdeviceptr> {
    if operand.type_ != CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER {
        return None;
    }
    // SAFETY: the type selects this member, which the caller has initialized.
    Some(unsafe { operand.op.ptr }.ptr)
}

/// Checks that the first attributes begin at the first copy, and the others at later ones.
fn check_attributes(
    attributes: Pointer<CUmemcpyAttributes>,
    firsts: Pointer<usize>,
    count: usize,
    copies: usize,
) -> Result {
    // SAFETY: by the contract of the C function, the array has `count` attributes.
    let attributes = unsafe { elements(attributes.as_ptr().cast_const(), count) }?;
    // SAFETY: by the contract of the C function, the array has `count` indices.
    let firsts = unsafe { elements(firsts.as_ptr().cast_const(), count) }?;
    let is_rising = firsts.first() == Some(&0) && firsts.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_rising || firsts.last().is_none_or(|last| *last >= copies) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    attributes
        .iter()
        .try_for_each(|attributes| check_order(attributes.srcAccessOrder))
}

fn check_order(order: CUmemcpySrcAccessOrder) -> Result {
    let valid = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM.0
        ..=CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_ANY.0;
    if valid.contains(&order.0) {
        Ok(())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
