//! The C functions for launches of kernels.

use std::ffi::c_void;

use curium_sys::{CUfunc_st, CUlaunchConfig, CUresult, CUstream_st};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::driver::launch::attribute;
use crate::object::launch::parameters::Arguments;
use crate::object::launch::{NO_CLUSTER, Shape};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLaunchKernel(
        &self,
        function: Pointer<CUfunc_st>,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_shared: u32,
        stream: Pointer<CUstream_st>,
        parameters: Pointer<*mut c_void>,
        extra: Pointer<*mut c_void>,
    ) -> Result {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared,
            is_cooperative: false,
            cluster: NO_CLUSTER,
        };
        self.launch(
            function,
            shape,
            stream,
            Arguments::new(parameters, extra)?,
            &[],
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLaunchCooperativeKernel(
        &self,
        function: Pointer<CUfunc_st>,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_shared: u32,
        stream: Pointer<CUstream_st>,
        parameters: Pointer<*mut c_void>,
    ) -> Result {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared,
            is_cooperative: true,
            cluster: NO_CLUSTER,
        };
        self.launch(
            function,
            shape,
            stream,
            Arguments::new(parameters, Pointer::null())?,
            &[],
        )
    }

    pub(crate) fn cuLaunchKernelEx(
        &self,
        config: ConstPointer<CUlaunchConfig>,
        function: Pointer<CUfunc_st>,
        parameters: Pointer<*mut c_void>,
        extra: Pointer<*mut c_void>,
    ) -> Result {
        let config = config.read()?;
        if function.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let mut shape = Shape {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            dynamic_shared: config.sharedMemBytes,
            is_cooperative: false,
            cluster: NO_CLUSTER,
        };
        // SAFETY: the configuration holds `numAttrs` attributes.
        let attributes = unsafe { elements(config.attrs.cast_const(), config.numAttrs as usize) }?;
        attribute::apply(
            attributes
                .iter()
                .map(|attribute| (attribute.id, &attribute.value)),
            &mut shape,
        )?;
        // SAFETY: the stream of a configuration is a handle, as if it were an argument.
        let stream = unsafe { Pointer::from_raw(config.hStream) };
        self.launch(
            function,
            shape,
            stream,
            Arguments::new(parameters, extra)?,
            attributes,
        )
    }
}
