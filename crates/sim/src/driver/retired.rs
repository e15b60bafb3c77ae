//! Retired functions that programs still call:
//!
//! - `cuFuncSetBlockShape`: PyCUDA's `prepared_call` sets the shape of the block before each `cuLaunchKernel`.
//! - `cuCtxDetach`: PyCUDA ends its contexts by it.
//! - `cuMemcpyHtoA_v2` and `cuMemcpyAtoH_v2`: cust copies one-dimensional arrays by them.
//!
//! All other retired functions return `CUDA_ERROR_NOT_SUPPORTED`.

use std::ffi::c_void;

use curium_sys::{CUDA_MEMCPY3D, CUarray_st, CUctx_st, CUfunc_st, CUmemorytype, CUresult};

use super::copy::legacy;
use super::{Driver, Result};
use crate::argument::{ConstPointer, Pointer};

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
            ..CUDA_MEMCPY3D::default()
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
            ..CUDA_MEMCPY3D::default()
        })
    }
}

impl Driver {
    /// Copies one row, and waits.
    fn copy_row(&self, row: &CUDA_MEMCPY3D) -> Result {
        self.require_current()?;
        let copy = CUDA_MEMCPY3D {
            Height: 1,
            Depth: 1,
            ..*row
        };
        self.copy_volume(&copy, legacy(), true)
    }
}
