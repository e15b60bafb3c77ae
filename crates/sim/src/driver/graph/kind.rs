//! Kinds of nodes that use the same description to add nodes, to change them, and to update executables.

use crate::argument::{ConstPointer, Pointer};
use crate::driver::locked::Locked;
use crate::host_function::HostFunction;
use crate::object::graph::content::Content;
use crate::object::launch::parameters::Arguments;
use crate::object::launch::{NO_CLUSTER, Shape};
use crate::result::Result;
use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
};

impl Locked<'_> {
    pub(crate) fn copy(&mut self, params: ConstPointer<CUDA_MEMCPY3D>) -> Result<Content> {
        self.copy_content(params.read()?)
    }

    pub(crate) fn set(&mut self, params: ConstPointer<CUDA_MEMSET_NODE_PARAMS>) -> Result<Content> {
        let driver = self.driver;
        driver.set_content(params.read()?)
    }

    pub(crate) fn host(&mut self, params: ConstPointer<CUDA_HOST_NODE_PARAMS>) -> Result<Content> {
        let params = params.read()?;
        HostFunction::new(params.fn_, params.userData).map(Content::Host)
    }

    pub(crate) fn described_kernel(&mut self, params: &CUDA_KERNEL_NODE_PARAMS) -> Result<Content> {
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
        self.kernel_content(function, context, shape, Arguments::new(values, extra)?)
    }
}
