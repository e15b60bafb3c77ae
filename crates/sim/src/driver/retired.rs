//! Functions that NVIDIA no longer documents and that drivers still have: stepwise launches, copies of array elements, contexts with a use
//! count, and older forms of functions with the same parameters.

use std::ffi::{c_char, c_void};

use curium_sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END,
    CUDA_MEMCPY3D, CUarray_st, CUcontext, CUctx_st, CUdevice, CUdevice_attribute, CUdeviceptr,
    CUdevprop, CUevent_st, CUfunc_st, CUipcMemHandle, CUjit_option, CUjitInputType, CUlinkState,
    CUlinkState_st, CUmemorytype, CUresult, CUsharedconfig, CUstream_st, CUstreamBatchMemOpParams,
};

use super::copy::legacy;
use super::{Driver, Result, State};
use crate::argument::{ConstPointer, Pointer, elements};
use crate::handle::Id;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// The maximum size of the parameters in bytes.
const MOST_PARAMETERS: usize = 4096;

/// The parameters of a stepwise launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetLaunch {
    block: [u32; 3],
    dynamic_shared: u32,
    parameters: Vec<u8>,
}

/// One side of a copy: elements of an array from a byte on, or memory.
#[derive(Clone, Copy)]
enum LineOperand {
    Array(Pointer<CUarray_st>, usize),
    Device(CUdeviceptr),
    Host(*mut c_void),
}

impl LineOperand {
    /// Returns the kind, the array, the byte in it, the address in device memory and in host memory.
    fn parts(
        self,
    ) -> (
        CUmemorytype,
        *mut CUarray_st,
        usize,
        CUdeviceptr,
        *mut c_void,
    ) {
        let none = std::ptr::null_mut();
        match self {
            Self::Array(array, offset) => (
                CUmemorytype::CU_MEMORYTYPE_ARRAY,
                array.as_ptr(),
                offset,
                0,
                none,
            ),
            Self::Device(address) => (
                CUmemorytype::CU_MEMORYTYPE_DEVICE,
                std::ptr::null_mut(),
                0,
                address,
                none,
            ),
            Self::Host(host) => (
                CUmemorytype::CU_MEMORYTYPE_HOST,
                std::ptr::null_mut(),
                0,
                0,
                host,
            ),
        }
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuFuncSetBlockShape(
        &self,
        function: Pointer<CUfunc_st>,
        x: i32,
        y: i32,
        z: i32,
    ) -> Result {
        let mut block = [0; 3];
        for (size, given) in block.iter_mut().zip([x, y, z]) {
            *size = u32::try_from(given)
                .ok()
                .filter(|given| *given > 0)
                .ok_or(INVALID)?;
        }
        self.set_launch(function, |launch| launch.block = block)
    }

    pub(crate) fn cuFuncSetSharedSize(&self, function: Pointer<CUfunc_st>, bytes: u32) -> Result {
        self.set_launch(function, |launch| launch.dynamic_shared = bytes)
    }

    /// Accepts any size: the banks of shared memory have only one.
    pub(crate) fn cuFuncSetSharedMemConfig(
        &self,
        function: Pointer<CUfunc_st>,
        _config: CUsharedconfig,
    ) -> Result {
        self.lock().subject(function).map(|_| ())
    }

    pub(crate) fn cuParamSetSize(&self, function: Pointer<CUfunc_st>, size: u32) -> Result {
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= MOST_PARAMETERS)
            .ok_or(INVALID)?;
        self.set_launch(function, |launch| launch.parameters.resize(size, 0))
    }

    pub(crate) fn cuParamSeti(
        &self,
        function: Pointer<CUfunc_st>,
        offset: i32,
        value: u32,
    ) -> Result {
        self.set_parameter(function, offset, &value.to_le_bytes())
    }

    pub(crate) fn cuParamSetf(
        &self,
        function: Pointer<CUfunc_st>,
        offset: i32,
        value: f32,
    ) -> Result {
        self.set_parameter(function, offset, &value.to_le_bytes())
    }

    pub(crate) fn cuParamSetv(
        &self,
        function: Pointer<CUfunc_st>,
        offset: i32,
        value: Pointer<c_void>,
        size: u32,
    ) -> Result {
        // SAFETY: the caller of the C function passed a value of this size.
        let value = unsafe { elements(value.as_ptr().cast_const().cast::<u8>(), size as usize) }?;
        self.set_parameter(function, offset, value)
    }

    pub(crate) fn cuLaunch(&self, function: Pointer<CUfunc_st>) -> Result {
        self.cuLaunchGridAsync(function, 1, 1, legacy())
    }

    pub(crate) fn cuLaunchGrid(
        &self,
        function: Pointer<CUfunc_st>,
        width: i32,
        height: i32,
    ) -> Result {
        self.cuLaunchGridAsync(function, width, height, legacy())
    }

    pub(crate) fn cuLaunchGridAsync(
        &self,
        function: Pointer<CUfunc_st>,
        width: i32,
        height: i32,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else {
            return Err(INVALID);
        };
        let SetLaunch {
            block: [x, y, z],
            dynamic_shared,
            parameters,
        } = self.lock().set_launch(function)?.clone();
        let mut size = parameters.len();
        let mut extra = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            parameters.as_ptr().cast_mut().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        let extra = match size {
            0 => Pointer::null(),
            // SAFETY: the list is local, and ends with its end key.
            _ => unsafe { Pointer::from_raw(extra.as_mut_ptr()) },
        };
        self.cuLaunchKernel(
            function,
            width,
            height,
            1,
            x,
            y,
            z,
            dynamic_shared,
            stream,
            Pointer::null(),
            extra,
        )
    }

    /// Increments the use count of the current context.
    pub(crate) fn cuCtxAttach(&self, context: Pointer<CUcontext>, flags: u32) -> Result {
        let place = context.required()?;
        if flags != 0 {
            return Err(INVALID);
        }
        let (mut state, current) = self.enter_current()?;
        state.usable_mut(current)?.retained += 1;
        place.write(current.as_raw())
    }

    /// Decrements the use count, and destroys the context when it reaches zero.
    pub(crate) fn cuCtxDetach(&self, context: Pointer<CUctx_st>) -> Result {
        let mut state = self.lock();
        let found = state.usable_mut(Id::from(context))?;
        if found.retained > 1 {
            found.retained -= 1;
            return Ok(());
        }
        drop(state);
        self.cuCtxDestroy_v2(context)
    }

    pub(crate) fn cuDeviceGetProperties(
        &self,
        properties: Pointer<CUdevprop>,
        device: CUdevice,
    ) -> Result {
        use CUdevice_attribute as Attribute;

        let place = properties.required()?;
        self.device(device)?;
        let figure = |attribute| self.figure(attribute).cast_signed();
        place.write(CUdevprop {
            maxThreadsPerBlock: figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            maxThreadsDim: [
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
            ],
            maxGridSize: [
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
            ],
            sharedMemPerBlock: figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
            totalConstantMemory: figure(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
            SIMDWidth: figure(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            memPitch: figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
            regsPerBlock: figure(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
            clockRate: figure(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            textureAlign: figure(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
        })
    }
}

/// Copies from and to the elements of arrays.
#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuMemcpyHtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: ConstPointer<c_void>,
        size: usize,
    ) -> Result {
        self.copy_line(
            LineOperand::Array(to, offset),
            LineOperand::Host(from.as_ptr().cast_mut()),
            size,
        )
    }

    pub(crate) fn cuMemcpyAtoH_v2(
        &self,
        to: Pointer<c_void>,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
    ) -> Result {
        self.copy_line(
            LineOperand::Host(to.as_ptr()),
            LineOperand::Array(from, offset),
            size,
        )
    }

    pub(crate) fn cuMemcpyDtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: CUdeviceptr,
        size: usize,
    ) -> Result {
        self.copy_line(
            LineOperand::Array(to, offset),
            LineOperand::Device(from),
            size,
        )
    }

    pub(crate) fn cuMemcpyAtoD_v2(
        &self,
        to: CUdeviceptr,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
    ) -> Result {
        self.copy_line(
            LineOperand::Device(to),
            LineOperand::Array(from, offset),
            size,
        )
    }

    pub(crate) fn cuMemcpyAtoA_v2(
        &self,
        to: Pointer<CUarray_st>,
        to_offset: usize,
        from: Pointer<CUarray_st>,
        from_offset: usize,
        size: usize,
    ) -> Result {
        self.copy_line(
            LineOperand::Array(to, to_offset),
            LineOperand::Array(from, from_offset),
            size,
        )
    }

    pub(crate) fn cuMemcpyHtoAAsync_v2(
        &self,
        to: Pointer<CUarray_st>,
        offset: usize,
        from: ConstPointer<c_void>,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let ends = (
            LineOperand::Array(to, offset),
            LineOperand::Host(from.as_ptr().cast_mut()),
        );
        self.copy_volume(&line(ends.0, ends.1, size), stream, false)
    }

    pub(crate) fn cuMemcpyAtoHAsync_v2(
        &self,
        to: Pointer<c_void>,
        from: Pointer<CUarray_st>,
        offset: usize,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.copy_volume(
            &line(
                LineOperand::Host(to.as_ptr()),
                LineOperand::Array(from, offset),
                size,
            ),
            stream,
            false,
        )
    }
}

/// Defines functions whose newer form has the same parameters.
macro_rules! older_forms {
    ($($old:ident($($name:ident: $ty:ty),*) = $new:ident;)*) => {
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        impl Driver {
            $(
                #[expect(clippy::allow_attributes, reason = "only some of the functions have many parameters")]
                #[allow(clippy::too_many_arguments, reason = "the parameters are those of the C function")]
                pub(crate) fn $old(&self, $($name: $ty),*) -> Result {
                    self.$new($($name),*)
                }
            )*
        }
    };
}

older_forms! {
    cuCtxCreate(context: Pointer<CUcontext>, flags: u32, device: CUdevice) = cuCtxCreate_v2;
    cuCtxDestroy(context: Pointer<CUctx_st>) = cuCtxDestroy_v2;
    cuCtxPopCurrent(context: Pointer<CUcontext>) = cuCtxPopCurrent_v2;
    cuCtxPushCurrent(context: Pointer<CUctx_st>) = cuCtxPushCurrent_v2;
    cuEventDestroy(event: Pointer<CUevent_st>) = cuEventDestroy_v2;
    cuStreamDestroy(stream: Pointer<CUstream_st>) = cuStreamDestroy_v2;
    cuMemHostRegister(host: Pointer<c_void>, size: usize, flags: u32) = cuMemHostRegister_v2;
    cuIpcOpenMemHandle(address: Pointer<CUdeviceptr>, handle: CUipcMemHandle, flags: u32) = cuIpcOpenMemHandle_v2;
    cuLinkCreate(count: u32, options: Pointer<CUjit_option>, values: Pointer<*mut c_void>, link: Pointer<CUlinkState>)
        = cuLinkCreate_v2;
    cuLinkAddData(link: Pointer<CUlinkState_st>, kind: CUjitInputType, data: Pointer<c_void>, size: usize,
        name: ConstPointer<c_char>, count: u32, options: Pointer<CUjit_option>, values: Pointer<*mut c_void>)
        = cuLinkAddData_v2;
    cuLinkAddFile(link: Pointer<CUlinkState_st>, kind: CUjitInputType, path: ConstPointer<c_char>, count: u32,
        options: Pointer<CUjit_option>, values: Pointer<*mut c_void>) = cuLinkAddFile_v2;
    cuStreamBatchMemOp(stream: Pointer<CUstream_st>, count: u32, operations: Pointer<CUstreamBatchMemOpParams>, flags: u32)
        = cuStreamBatchMemOp_v2;
    cuStreamWaitValue32(stream: Pointer<CUstream_st>, address: CUdeviceptr, value: u32, flags: u32)
        = cuStreamWaitValue32_v2;
    cuStreamWaitValue64(stream: Pointer<CUstream_st>, address: CUdeviceptr, value: u64, flags: u32)
        = cuStreamWaitValue64_v2;
    cuStreamWriteValue32(stream: Pointer<CUstream_st>, address: CUdeviceptr, value: u32, flags: u32)
        = cuStreamWriteValue32_v2;
    cuStreamWriteValue64(stream: Pointer<CUstream_st>, address: CUdeviceptr, value: u64, flags: u32)
        = cuStreamWriteValue64_v2;
}

impl Driver {
    fn set_launch(&self, function: Pointer<CUfunc_st>, set: impl FnOnce(&mut SetLaunch)) -> Result {
        set(self.lock().set_launch(function)?);
        Ok(())
    }

    /// Sets bytes of the parameters, which grow if necessary.
    fn set_parameter(&self, function: Pointer<CUfunc_st>, offset: i32, value: &[u8]) -> Result {
        let start = usize::try_from(offset).map_err(|_| INVALID)?;
        let end = start
            .checked_add(value.len())
            .filter(|end| *end <= MOST_PARAMETERS)
            .ok_or(INVALID)?;
        self.set_launch(function, |launch| {
            let size = launch.parameters.len().max(end);
            launch.parameters.resize(size, 0);
            launch.parameters[start..end].copy_from_slice(value);
        })
    }

    /// Copies bytes in one row, and waits.
    fn copy_line(&self, to: LineOperand, from: LineOperand, size: usize) -> Result {
        self.require_current()?;
        self.copy_volume(&line(to, from, size), legacy(), true)
    }
}

impl State {
    /// Returns the stepwise launch parameters of a function.
    fn set_launch(&mut self, function: Pointer<CUfunc_st>) -> Result<&mut SetLaunch> {
        let found = self
            .functions
            .get_mut(Id::from(function))
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        Ok(found.set_launch.get_or_insert_default())
    }
}

/// Returns a copy of bytes in one row.
fn line(to: LineOperand, from: LineOperand, size: usize) -> CUDA_MEMCPY3D {
    let (dst_type, dst_array, dst_x, dst_device, dst_host) = to.parts();
    let (src_type, src_array, src_x, src_device, src_host) = from.parts();
    CUDA_MEMCPY3D {
        srcMemoryType: src_type,
        srcArray: src_array,
        srcXInBytes: src_x,
        srcDevice: src_device,
        srcHost: src_host.cast_const(),
        srcPitch: size,
        dstMemoryType: dst_type,
        dstArray: dst_array,
        dstXInBytes: dst_x,
        dstDevice: dst_device,
        dstHost: dst_host,
        dstPitch: size,
        WidthInBytes: size,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    }
}
