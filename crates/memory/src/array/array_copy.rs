//! Copies between an array and memory, alone or in a batch.

use std::sync::Arc;

use curium_driver::hazard::Operation;
use curium_driver::sys::{
    CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUextent3D, CUmemcpy3DOperand,
    CUmemcpy3DOperand_st__bindgen_ty_1, CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1,
    CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_2, CUmemcpy3DOperandType, CUmemorytype,
    CUoffset3D,
};
use curium_driver::{Context, Result, Stream, call};

use super::{Array, ArrayHandle, Uses};
use crate::copy::BoxCopy;
use crate::peer_access;
use crate::transfer::{CopyOptions, pitched};

/// A copy between an array and memory, enqueued alone or in a batch.
pub(super) struct ArrayCopy<'a> {
    array: &'a Arc<ArrayHandle>,
    uses: &'a Uses,
    /// The first element, row and layer of the region.
    origin: [usize; 3],
    /// The size of an element in bytes.
    element: usize,
    memory: pitched::PitchedOperand<'a>,
    is_to_array: bool,
}

impl<'a> ArrayCopy<'a> {
    /// Creates a copy between the region at `origin` and `memory`, which must have the same extent.
    /// The region must be in bounds.
    pub(super) fn new<T>(
        array: &'a Array<T>,
        origin: [usize; 3],
        memory: pitched::PitchedOperand<'a>,
        is_to_array: bool,
    ) -> Self {
        Self {
            array: &array.handle,
            uses: array.uses(),
            origin,
            element: size_of::<T>(),
            memory,
            is_to_array,
        }
    }

    /// Enqueues the copy.
    pub(super) fn run(&self, mut operation: Operation<'_>) -> Result<()> {
        self.prepare(&mut operation)?;
        self.enqueue(&operation)?;
        self.record(&mut operation);
        Ok(())
    }

    /// Returns the array operand of a batch. Its lengths are in elements of the array.
    fn array_operand(&self) -> CUmemcpy3DOperand {
        let [x, y, z] = self.origin;
        let array = CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_2 {
            array: self.array.raw,
            offset: CUoffset3D { x, y, z },
        };
        CUmemcpy3DOperand {
            type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY,
            op: CUmemcpy3DOperand_st__bindgen_ty_1 { array },
        }
    }

    /// Returns the memory operand, in elements of the array.
    fn memory_operand(&self, options: CopyOptions) -> CUmemcpy3DOperand {
        let layout = &self.memory.layout;
        let hints = options.to_raw();
        let ptr = CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1 {
            ptr: self.memory.end.address,
            rowLength: layout.pitch / self.element,
            layerHeight: layout.layer,
            locHint: if self.is_to_array {
                hints.srcLocHint
            } else {
                hints.dstLocHint
            },
        };
        CUmemcpy3DOperand {
            type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
            op: CUmemcpy3DOperand_st__bindgen_ty_1 { ptr },
        }
    }
}

impl BoxCopy for ArrayCopy<'_> {
    fn prepare(&self, operation: &mut Operation<'_>) -> Result<()> {
        let array_stream = self.uses.stream();
        let memory = &self.memory.end;
        if !memory.is_everywhere()
            && array_stream.device().as_raw() != memory.stream().device().as_raw()
        {
            peer_access::connect(array_stream.context(), memory.stream().context())?;
        }
        operation.keep(self.array);
        if self.is_to_array {
            self.uses.before_write(operation)?;
            memory.tracked.before_read(operation)
        } else {
            self.uses.before_read(operation)?;
            memory.tracked.before_write(operation)
        }
    }

    fn is_at(&self, stream: &Stream) -> bool {
        self.uses
            .stream()
            .context()
            .shares_objects_with(stream.context())
            && self.memory.end.is_at(stream)
    }

    fn batch_entry(&self, options: CopyOptions) -> CUDA_MEMCPY3D_BATCH_OP {
        let layout = &self.memory.layout;
        let hints = options.to_raw();
        let array = self.array_operand();
        let memory = self.memory_operand(options);
        let (src, dst) = if self.is_to_array {
            (memory, array)
        } else {
            (array, memory)
        };
        let extent = CUextent3D {
            width: layout.width / self.element,
            height: layout.height,
            depth: layout.depth,
        };
        CUDA_MEMCPY3D_BATCH_OP {
            src,
            dst,
            extent,
            srcAccessOrder: hints.srcAccessOrder,
            flags: hints.flags,
        }
    }

    fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        let layout = &self.memory.layout;
        let array = self.array.raw;
        let address = self.memory.end.address;
        let [x, y, z] = self.origin;
        let mut copy = CUDA_MEMCPY3D {
            WidthInBytes: layout.width,
            Height: layout.height,
            Depth: layout.depth,
            ..CUDA_MEMCPY3D::default()
        };
        if self.is_to_array {
            copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
            copy.srcDevice = address;
            copy.srcPitch = layout.pitch;
            copy.srcHeight = layout.layer;
            copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.dstArray = array;
            copy.dstXInBytes = x * self.element;
            copy.dstY = y;
            copy.dstZ = z;
        } else {
            copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
            copy.dstDevice = address;
            copy.dstPitch = layout.pitch;
            copy.dstHeight = layout.layer;
            copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.srcArray = array;
            copy.srcXInBytes = x * self.element;
            copy.srcY = y;
            copy.srcZ = z;
        }
        let array_context = self.uses.stream().context();
        let memory_context = self.memory.end.stream().context();
        let contexts = if self.is_at(operation.stream()) {
            None
        } else if self.is_to_array {
            Some((array_context, memory_context))
        } else {
            Some((memory_context, array_context))
        };
        // SAFETY: the region and the memory are in bounds, belong to these contexts and are live on
        // this stream, which has waited for conflicting accesses.
        unsafe { enqueue(operation, &copy, contexts) }
    }

    fn record(&self, operation: &mut Operation<'_>) {
        if self.is_to_array {
            self.memory.end.tracked.after_read(operation);
            self.uses.after_write(operation);
        } else {
            self.uses.after_read(operation);
            self.memory.end.tracked.after_partial_write(operation);
        }
    }
}

/// Enqueues a copy. `contexts` are those of target and source; they are required if one of them is
/// not the stream's.
///
/// # Safety
///
/// Both operands are in bounds, belong to the contexts, and are live until the copy has completed.
/// The stream has waited for conflicting accesses.
pub(super) unsafe fn enqueue(
    operation: &Operation<'_>,
    copy: &CUDA_MEMCPY3D,
    contexts: Option<(&Context, &Context)>,
) -> Result<()> {
    let Some((to, from)) = contexts else {
        // SAFETY: the caller guarantees both operands.
        return unsafe {
            call!(
                operation.driver(),
                cuMemcpy3DAsync_v2(copy, operation.raw_stream())
            )
        };
    };
    let copy = between(copy, to, from);
    // SAFETY: the caller guarantees both operands and their contexts.
    unsafe {
        call!(
            operation.driver(),
            cuMemcpy3DPeerAsync(&raw const copy, operation.raw_stream())
        )
    }
}

/// Converts the copy to one between contexts.
fn between(copy: &CUDA_MEMCPY3D, to: &Context, from: &Context) -> CUDA_MEMCPY3D_PEER {
    CUDA_MEMCPY3D_PEER {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcZ: copy.srcZ,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        srcContext: from.as_raw(),
        srcPitch: copy.srcPitch,
        srcHeight: copy.srcHeight,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstZ: copy.dstZ,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        dstContext: to.as_raw(),
        dstPitch: copy.dstPitch,
        dstHeight: copy.dstHeight,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: copy.Depth,
        ..CUDA_MEMCPY3D_PEER::default()
    }
}
