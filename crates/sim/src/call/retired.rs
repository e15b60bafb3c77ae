//! Retired functions that programs still call:
//!
//! - `cuFuncSetBlockShape`: PyCUDA's `prepared_call` sets the shape of the block before each
//!   `cuLaunchKernel`.
//! - `cuCtxAttach` and `cuCtxDetach`: PyCUDA ends its contexts by the latter.
//! - `cuMemcpyHtoA_v2` and the other copies of one row of an array: cust copies one-dimensional
//!   arrays by them.
//! - first versions whose parameters are those of the second.
//!
//! All other retired functions return `CUDA_ERROR_NOT_SUPPORTED`, except first versions for
//! addresses of 32 bits: as on hardware, no context is valid for them.

use std::ffi::c_void;
use std::ptr;

use curium_sys::{
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUDA_MEMCPY3D, CUarray_st,
    CUcontext, CUctx_st, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent_st, CUfunc_st,
    CUjit_option, CUlinkState, CUmemorytype, CUresult, CUsharedconfig, CUstream_st,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::call::context::create::checked_flags;
use crate::driver::copy::legacy;
use crate::handle::Id;
use crate::result::Result;

/// The largest extents of a block.
const BLOCK_EXTENTS: [CUdevice_attribute; 3] = [
    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
];

/// The description of a row without its memory.
const ROW: CUDA_MEMCPY3D = CUDA_MEMCPY3D {
    srcXInBytes: 0,
    srcY: 0,
    srcZ: 0,
    srcLOD: 0,
    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
    srcHost: ptr::null(),
    srcDevice: 0,
    srcArray: ptr::null_mut(),
    reserved0: ptr::null_mut(),
    srcPitch: 0,
    srcHeight: 0,
    dstXInBytes: 0,
    dstY: 0,
    dstZ: 0,
    dstLOD: 0,
    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
    dstHost: ptr::null_mut(),
    dstDevice: 0,
    dstArray: ptr::null_mut(),
    reserved1: ptr::null_mut(),
    dstPitch: 0,
    dstHeight: 0,
    WidthInBytes: 0,
    Height: 1,
    Depth: 1,
};

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Checks the shape. Only the retired launches use it, which are not implemented.
    pub(crate) fn cuFuncSetBlockShape(
        &self,
        function: Pointer<CUfunc_st>,
        x: i32,
        y: i32,
        z: i32,
    ) -> Result {
        let (state, context) = self.enter_current()?;
        // A function has a shape in its own context only.
        state
            .functions
            .get(Id::from(function))
            .and_then(|function| state.modules.get(function.module))
            .filter(|module| module.context == state.contexts.owning_context(context))
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        drop(state);
        let most = BLOCK_EXTENTS.map(|extent| self.devices().attribute_value(extent));
        let is_valid = [x, y, z]
            .into_iter()
            .zip(most)
            .all(|(size, most)| size > 0 && size.cast_unsigned() <= most);
        if is_valid {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Fails: contexts of the first version have addresses of 32 bits.
    pub(crate) fn cuCtxCreate(
        &self,
        context: Pointer<CUcontext>,
        flags: u32,
        device: CUdevice,
    ) -> Result {
        self.devices().device(device)?;
        context.required()?;
        checked_flags(flags)?;
        Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    }

    pub(crate) fn cuCtxDestroy(&self, context: Pointer<CUctx_st>) -> Result {
        self.cuCtxDestroy_v2(context)
    }

    pub(crate) fn cuCtxPopCurrent(&self, context: Pointer<CUcontext>) -> Result {
        self.cuCtxPopCurrent_v2(context)
    }

    /// Makes a context current that is current nowhere on the calling thread.
    pub(crate) fn cuCtxPushCurrent(&self, context: Pointer<CUctx_st>) -> Result {
        if self.is_stacked(Id::from(context.required()?)) {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        self.cuCtxPushCurrent_v2(context)
    }

    /// Increments the use count of the current context.
    pub(crate) fn cuCtxAttach(&self, context: Pointer<CUcontext>, flags: u32) -> Result {
        let (mut state, current) = self.enter_current()?;
        let output = context.required()?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let context = state.contexts.valid_context_mut(current)?;
        if !context.is_primary() {
            context.retain();
        }
        output.write(current.as_raw())
    }

    /// Decrements the use count of the current context, and destroys it at 0.
    pub(crate) fn cuCtxDetach(&self, context: Pointer<CUctx_st>) -> Result {
        let (mut state, current) = self.enter_current()?;
        let id = Id::from(context);
        if id != current {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let context = state.contexts.valid_context_mut(id)?;
        // Primary contexts have retentions instead.
        if context.is_primary() {
            return Ok(());
        }
        if context.retained() > 1 {
            context.set_retained(context.retained() - 1);
            return Ok(());
        }
        drop(state);
        self.destroy_context(id)
    }

    pub(crate) fn cuMemcpyHtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: ConstPointer<c_void>,
        size: usize,
    ) -> Result {
        self.copy_row(&CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: from.as_ptr(),
            srcPitch: size,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: to.as_ptr(),
            dstXInBytes: offset,
            WidthInBytes: size,
            ..ROW
        })
    }

    pub(crate) fn cuMemcpyAtoH_v2(
        &self,
        to: Pointer<c_void>,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
    ) -> Result {
        self.copy_row(&CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: from.as_ptr(),
            srcXInBytes: offset,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: to.as_ptr(),
            dstPitch: size,
            WidthInBytes: size,
            ..ROW
        })
    }

    pub(crate) fn cuMemcpyHtoAAsync_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: ConstPointer<c_void>,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: from.as_ptr(),
            srcPitch: size,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: to.as_ptr(),
            dstXInBytes: offset,
            WidthInBytes: size,
            ..ROW
        };
        self.copy_row_async(&copy, stream)
    }

    pub(crate) fn cuMemcpyAtoHAsync_v2(
        &self,
        to: Pointer<c_void>,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: from.as_ptr(),
            srcXInBytes: offset,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: to.as_ptr(),
            dstPitch: size,
            WidthInBytes: size,
            ..ROW
        };
        self.copy_row_async(&copy, stream)
    }

    pub(crate) fn cuMemcpyDtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: CUdeviceptr,
        size: usize,
    ) -> Result {
        self.copy_row(&CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: from,
            srcPitch: size,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: to.as_ptr(),
            dstXInBytes: offset,
            WidthInBytes: size,
            ..ROW
        })
    }

    pub(crate) fn cuMemcpyAtoD_v2(
        &self,
        to: CUdeviceptr,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
    ) -> Result {
        self.copy_row(&CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: from.as_ptr(),
            srcXInBytes: offset,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: to,
            dstPitch: size,
            WidthInBytes: size,
            ..ROW
        })
    }

    pub(crate) fn cuMemcpyAtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        to_offset: usize,
        from: Pointer<CUarray_st>,
        from_offset: usize,
        size: usize,
    ) -> Result {
        self.copy_row(&CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: from.as_ptr(),
            srcXInBytes: from_offset,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: to.as_ptr(),
            dstXInBytes: to_offset,
            WidthInBytes: size,
            ..ROW
        })
    }

    /// Ignores unknown flags, unlike the second version.
    pub(crate) fn cuMemHostRegister(
        &self,
        memory: Pointer<c_void>,
        size: usize,
        flags: u32,
    ) -> Result {
        const FLAGS: u32 = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        self.require_current()?;
        self.cuMemHostRegister_v2(memory, size, flags & FLAGS)
    }

    pub(crate) fn cuLinkCreate(
        &self,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        link: Pointer<CUlinkState>,
    ) -> Result {
        self.cuLinkCreate_v2(count, options, values, link)
    }

    pub(crate) fn cuFuncSetSharedMemConfig(
        &self,
        function: Pointer<CUfunc_st>,
        config: CUsharedconfig,
    ) -> Result {
        self.lock().resolve_kernel(function)?;
        if config.0 > CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    }

    /// Writes at most the largest number of 32 bits.
    pub(crate) fn cuDeviceTotalMem(&self, bytes: Pointer<u32>, device: CUdevice) -> Result {
        let output = bytes.required()?;
        self.devices().device(device)?;
        output.write(u32::try_from(self.config().memory_budget).unwrap_or(u32::MAX))
    }

    pub(crate) fn cuEventDestroy(&self, event: Pointer<CUevent_st>) -> Result {
        self.cuEventDestroy_v2(event)
    }

    pub(crate) fn cuStreamDestroy(&self, stream: Pointer<CUstream_st>) -> Result {
        self.cuStreamDestroy_v2(stream)
    }
}

impl Call<'_> {
    /// Copies one row, and waits.
    fn copy_row(&self, copy: &CUDA_MEMCPY3D) -> Result {
        self.require_current()?;
        if copy.WidthInBytes == 0 {
            return Ok(());
        }
        self.copy_volume(copy, legacy(), true)
    }

    fn copy_row_async(&self, copy: &CUDA_MEMCPY3D, stream: Pointer<CUstream_st>) -> Result {
        self.lock().working_stream(stream)?;
        self.copy_volume(copy, stream, false)
    }
}
