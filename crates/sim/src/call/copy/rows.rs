//! Copies of rows and layers.

use curium_sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUmemcpy3DOperand,
    CUmemcpy3DOperandType, CUmemorytype, CUresult, CUstream_st,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::copy::legacy;
use crate::driver::copy::rows::Operand;
use crate::handle::Id;
use crate::memory::{READ, WRITE};
use crate::object::copy::{Rows, Start};
use crate::object::graph::content::{Content, Copy3D};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemcpy2D_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.require_current()?;
        self.copy_plane(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy2DUnaligned_v2(&self, copy: ConstPointer<CUDA_MEMCPY2D>) -> Result {
        self.cuMemcpy2D_v2(copy)
    }

    pub(crate) fn cuMemcpy2DAsync_v2(
        &self,
        copy: ConstPointer<CUDA_MEMCPY2D>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        self.copy_plane(&copy.read()?, stream, false)
    }

    pub(crate) fn cuMemcpy3D_v2(&self, copy: ConstPointer<CUDA_MEMCPY3D>) -> Result {
        self.require_current()?;
        self.copy_local_volume(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy3DAsync_v2(
        &self,
        copy: ConstPointer<CUDA_MEMCPY3D>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().working_stream(stream)?;
        self.copy_local_volume(&copy.read()?, stream, false)
    }

    pub(crate) fn cuMemcpy3DPeer(&self, copy: ConstPointer<CUDA_MEMCPY3D_PEER>) -> Result {
        self.require_current()?;
        self.copy_peer_volume(&copy.read()?, legacy(), true)
    }

    pub(crate) fn cuMemcpy3DPeerAsync(
        &self,
        copy: ConstPointer<CUDA_MEMCPY3D_PEER>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.lock().uncaptured_stream(stream)?;
        self.copy_peer_volume(&copy.read()?, stream, false)
    }
}

impl Call<'_> {
    /// Converts the description of a plane to that of a volume with one layer.
    fn copy_plane(
        &self,
        copy: &CUDA_MEMCPY2D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let volume = CUDA_MEMCPY3D {
            srcXInBytes: copy.srcXInBytes,
            srcY: copy.srcY,
            srcMemoryType: copy.srcMemoryType,
            srcHost: copy.srcHost,
            srcDevice: copy.srcDevice,
            srcArray: copy.srcArray,
            srcPitch: copy.srcPitch,
            dstXInBytes: copy.dstXInBytes,
            dstY: copy.dstY,
            dstMemoryType: copy.dstMemoryType,
            dstHost: copy.dstHost,
            dstDevice: copy.dstDevice,
            dstArray: copy.dstArray,
            dstPitch: copy.dstPitch,
            WidthInBytes: copy.WidthInBytes,
            Height: copy.Height,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_local_volume(&volume, stream, is_synchronous)
    }

    /// Performs a copy in the context of the stream, which needs access to the pools of both
    /// operands.
    fn copy_local_volume(
        &self,
        copy: &CUDA_MEMCPY3D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let sides = [
            (copy.srcMemoryType, copy.srcDevice, READ),
            (copy.dstMemoryType, copy.dstDevice, WRITE),
        ];
        let accesses: Vec<_> = sides
            .into_iter()
            .filter(|(kind, address, _)| match *kind {
                CUmemorytype::CU_MEMORYTYPE_DEVICE => true,
                CUmemorytype::CU_MEMORYTYPE_UNIFIED => !self
                    .operands()
                    .is_unified_host(*address, 0)
                    .unwrap_or_default(),
                _ => false,
            })
            .map(|(_, address, rights)| (address, rights))
            .collect();
        self.check_pool_access(stream, &accesses)?;
        self.copy_volume(copy, stream, is_synchronous)
    }

    fn copy_peer_volume(
        &self,
        copy: &CUDA_MEMCPY3D_PEER,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        self.check_live_contexts(copy.dstContext, copy.srcContext)?;
        let local = CUDA_MEMCPY3D {
            srcXInBytes: copy.srcXInBytes,
            srcY: copy.srcY,
            srcZ: copy.srcZ,
            srcMemoryType: copy.srcMemoryType,
            srcHost: copy.srcHost,
            srcDevice: copy.srcDevice,
            srcArray: copy.srcArray,
            srcPitch: copy.srcPitch,
            srcHeight: copy.srcHeight,
            dstXInBytes: copy.dstXInBytes,
            dstY: copy.dstY,
            dstZ: copy.dstZ,
            dstMemoryType: copy.dstMemoryType,
            dstHost: copy.dstHost,
            dstDevice: copy.dstDevice,
            dstArray: copy.dstArray,
            dstPitch: copy.dstPitch,
            dstHeight: copy.dstHeight,
            WidthInBytes: copy.WidthInBytes,
            Height: copy.Height,
            Depth: copy.Depth,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_volume(&local, stream, is_synchronous)
    }

    /// Performs one copy of a batch of copies of rows and layers.
    pub(crate) fn copy_operation(
        &self,
        operation: &CUDA_MEMCPY3D_BATCH_OP,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let elements = [
            self.element_size(&operation.src)?,
            self.element_size(&operation.dst)?,
        ];
        let element = match elements {
            [Some(from), Some(to)] if from != to => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            [from, to] => from.or(to).unwrap_or(1),
        };
        let from = batch_operand(&operation.src, element)?;
        let to = batch_operand(&operation.dst, element)?;
        let volume = CUDA_MEMCPY3D {
            srcMemoryType: from.kind,
            srcDevice: from.device,
            srcArray: from.array,
            srcXInBytes: from.origin[0],
            srcY: from.origin[1],
            srcZ: from.origin[2],
            srcPitch: from.pitch,
            srcHeight: from.layer,
            dstMemoryType: to.kind,
            dstDevice: to.device,
            dstArray: to.array,
            dstXInBytes: to.origin[0],
            dstY: to.origin[1],
            dstZ: to.origin[2],
            dstPitch: to.pitch,
            dstHeight: to.layer,
            WidthInBytes: byte_count(operation.extent.width, element)?,
            Height: operation.extent.height,
            Depth: operation.extent.depth,
            ..CUDA_MEMCPY3D::default()
        };
        self.copy_volume(&volume, stream, false)
    }

    /// Returns the bytes of an element, if the operand is an array: then all lengths are in these.
    fn element_size(&self, raw: &CUmemcpy3DOperand) -> Result<Option<usize>> {
        if raw.type_ != CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY {
            return Ok(None);
        }
        // SAFETY: the type selects this member, which the caller has initialized.
        let array = unsafe { raw.op.array };
        // SAFETY: a handle is only looked up.
        let array = unsafe { Pointer::from_raw(array.array) };
        Ok(self.lock().textures.array(Id::from(array))?.shape.element())
    }

    pub(crate) fn copy_volume(
        &self,
        copy: &CUDA_MEMCPY3D,
        stream: Pointer<CUstream_st>,
        is_synchronous: bool,
    ) -> Result {
        let mut state = self.lock();
        let rows = state.resolve_rows(copy)?;
        let stream = state.working_stream(stream)?;
        if rows.extent.is_empty() {
            return Ok(());
        }
        let content = Content::Copy(Copy3D::new(*copy, rows));
        if !state.captures.is_capturing(stream) && self.is_waited_for(&rows, is_synchronous) {
            return state.queue_and_wait(stream, content.into_work());
        }
        state.enqueue(stream, content)
    }

    /// Returns `true` if the caller waits for the copy: by request unless all is device memory, or
    /// because of the kind of memory.
    fn is_waited_for(&self, rows: &Rows, is_synchronous: bool) -> bool {
        [&rows.to, &rows.from]
            .into_iter()
            .any(|side| match side.start {
                Start::Host(host) => is_synchronous || !self.is_known(host),
                Start::Device(address) if is_synchronous => !self.memory().is_on_device(address),
                Start::Device(address) => self.memory().is_synchronous(address),
            })
    }
}

/// Returns the bytes of a number of elements.
fn byte_count(elements: usize, element: usize) -> Result<usize> {
    elements
        .checked_mul(element)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// Returns the operand of a batch, whose lengths are in elements of this many bytes.
fn batch_operand(raw: &CUmemcpy3DOperand, element: usize) -> Result<Operand> {
    let mut operand = Operand {
        kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        host: std::ptr::null_mut(),
        device: 0,
        array: std::ptr::null_mut(),
        origin: [0; 3],
        pitch: 0,
        layer: 0,
    };
    match raw.type_ {
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => {
            // SAFETY: the type selects this member, which the caller has initialized.
            let pointer = unsafe { raw.op.ptr };
            (operand.device, operand.pitch, operand.layer) = (
                pointer.ptr,
                byte_count(pointer.rowLength, element)?,
                pointer.layerHeight,
            );
        }
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the type selects this member, which the caller has initialized.
            let array = unsafe { raw.op.array };
            operand.kind = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            operand.array = array.array;
            operand.origin = [
                byte_count(array.offset.x, element)?,
                array.offset.y,
                array.offset.z,
            ];
        }
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
    Ok(operand)
}
