//! Kinds of nodes that use the same description to add nodes, to change them, and to update executables.

use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
};

use crate::argument::{ConstPointer, Pointer};
use crate::driver::Driver;
use crate::driver::state::State;
use crate::host_function::HostFunction;
use crate::object::graph::content::Content;
use crate::object::launch::parameters::Arguments;
use crate::object::launch::{NO_CLUSTER, Shape};
use crate::result::Result;

impl Driver {
    pub(crate) fn copy(
        &self,
        state: &mut State,
        params: ConstPointer<CUDA_MEMCPY3D>,
    ) -> Result<Content> {
        self.copy_content(state, params.read()?)
    }

    pub(crate) fn set(
        &self,
        _state: &mut State,
        params: ConstPointer<CUDA_MEMSET_NODE_PARAMS>,
    ) -> Result<Content> {
        self.set_content(params.read()?)
    }

    pub(crate) fn host(
        &self,
        _state: &mut State,
        params: ConstPointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result<Content> {
        let params = params.read()?;
        HostFunction::new(params.fn_, params.userData).map(Content::Host)
    }

    pub(crate) fn kernel(
        &self,
        state: &mut State,
        params: &CUDA_KERNEL_NODE_PARAMS,
    ) -> Result<Content> {
        // SAFETY: the function of a description is a handle, as if it were an argument.
        let function = unsafe {
            Pointer::from_raw(if params.func.is_null() {
                params.kern.cast()
            } else {
                params.func
            })
        };
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let context = unsafe { Pointer::from_raw(params.ctx) };
        let shape = Shape {
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            dynamic_shared: params.sharedMemBytes,
            is_cooperative: false,
            cluster: NO_CLUSTER,
        };
        // SAFETY: the pointers of a description are those of a launch.
        let values = unsafe { Pointer::from_raw(params.kernelParams) };
        // SAFETY: the list of a description is that of a launch.
        let extra = unsafe { Pointer::from_raw(params.extra) };
        self.kernel_content(
            state,
            function,
            context,
            shape,
            Arguments::new(values, extra)?,
        )
    }
}
