//! Retired functions that programs still call:
//!
//! - `cuFuncSetBlockShape`: PyCUDA's `prepared_call` sets the shape of the block before each `cuLaunchKernel`.
//! - `cuCtxDetach`: PyCUDA ends its contexts by it.
//! - `cuMemcpyHtoA_v2` and the other copies of one row of an array: cust copies one-dimensional arrays by them.
//! - first versions whose parameters are those of the second.
//!
//! All other retired functions return `CUDA_ERROR_NOT_SUPPORTED`.

use std::ffi::c_void;
use std::ptr;

use curium_sys::{
    CUDA_MEMCPY3D, CUarray_st, CUctx_st, CUdeviceptr, CUevent_st, CUfunc_st, CUjit_option,
    CUlinkState, CUmemorytype, CUresult, CUsharedconfig, CUstream_st,
};

use super::copy::legacy;
use super::{Driver, Result};
use crate::argument::{ConstPointer, Pointer};

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
impl Driver {
    /// Checks the shape. Only the retired launches use it, which are not implemented.
    pub(crate) fn cuFuncSetBlockShape(
        &self,
        function: Pointer<CUfunc_st>,
        x: i32,
        y: i32,
        z: i32,
    ) -> Result {
        if [x, y, z].iter().any(|size| *size <= 0) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.lock().resolve_kernel(function).map(|_| ())
    }

    /// Destroys the context, whose use count is always one because `cuCtxAttach` is not implemented.
    pub(crate) fn cuCtxDetach(&self, context: Pointer<CUctx_st>) -> Result {
        self.cuCtxDestroy_v2(context)
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

    pub(crate) fn cuMemHostRegister(
        &self,
        memory: Pointer<c_void>,
        size: usize,
        flags: u32,
    ) -> Result {
        self.cuMemHostRegister_v2(memory, size, flags)
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

    pub(crate) fn cuEventDestroy(&self, event: Pointer<CUevent_st>) -> Result {
        self.cuEventDestroy_v2(event)
    }

    pub(crate) fn cuStreamDestroy(&self, stream: Pointer<CUstream_st>) -> Result {
        self.cuStreamDestroy_v2(stream)
    }
}

impl Driver {
    /// Copies one row, and waits.
    fn copy_row(&self, copy: &CUDA_MEMCPY3D) -> Result {
        self.require_current()?;
        require_arrays(copy)?;
        self.copy_volume(copy, legacy(), true)
    }

    fn copy_row_async(&self, copy: &CUDA_MEMCPY3D, stream: Pointer<CUstream_st>) -> Result {
        require_arrays(copy)?;
        self.copy_volume(copy, stream, false)
    }
}

/// Checks that the arrays of a copy are not null, which is no unknown handle for these functions.
fn require_arrays(copy: &CUDA_MEMCPY3D) -> Result {
    let is_missing = [
        (copy.srcMemoryType, copy.srcArray),
        (copy.dstMemoryType, copy.dstArray),
    ]
    .iter()
    .any(|(kind, array)| *kind == CUmemorytype::CU_MEMORYTYPE_ARRAY && array.is_null());
    if is_missing {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}
