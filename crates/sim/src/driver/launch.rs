//! Launches of kernels.

mod attribute;
pub(crate) mod parameters;
mod run;
mod runtime;

use std::ffi::c_void;
use std::sync::Arc;

use curium_sys::{
    CUdevice_attribute, CUfunc_st, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUresult, CUstream_st,
};

use self::parameters::Arguments;
pub(in crate::driver) use self::run::KeptReport;
pub(crate) use self::runtime::KernelHeap;
use crate::argument::{ConstPointer, Pointer, elements};
use crate::driver::context::MAX_STACK;
use crate::driver::function::ResolvedKernel;
use crate::driver::graph::{Attributes, Content};
use crate::driver::{Context, Driver, Result, State};
use crate::handle::Id;
use crate::schedule::Work;

/// A queued launch with everything that it needs to run.
#[derive(Clone)]
pub(crate) struct Launch {
    resolved: ResolvedKernel,
    shape: Shape,
    parameters: Box<[u8]>,
    globals: Arc<[u64]>,
    device: usize,
    context: Id<Context>,
}

/// The configuration of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    /// `true` if all blocks must be resident simultaneously.
    pub(crate) is_cooperative: bool,
    /// Blocks of a cluster in each direction; all ones without clusters.
    pub(crate) cluster: [u32; 3],
}

/// A cluster of one block, which means no cluster.
pub(crate) const NO_CLUSTER: [u32; 3] = [1; 3];

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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

impl Driver {
    /// Checks a launch, copies its parameters and enqueues it.
    fn launch(
        &self,
        function: Pointer<CUfunc_st>,
        shape: Shape,
        stream: Pointer<CUstream_st>,
        arguments: Arguments,
        attributes: &[CUlaunchAttribute],
    ) -> Result {
        if function.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        self.flush_output();
        let mut state = self.lock();
        let stream = self.working_stream(&mut state, stream)?;
        let context = state.owning_context(self.stream_context(&state, stream)?);
        let launch = self.prepare(&mut state, function, context, shape, arguments)?;
        if state.is_capturing(stream) {
            return state.add_captured(
                stream,
                Content::kernel(function, launch, Attributes::from_launch(attributes))?,
            );
        }
        state
            .valid_context_mut(context)?
            .limits_mut()
            .record_launch(launch.resolved.kernel()?.runtime);
        self.queue(
            &mut state,
            stream,
            Work::Device(Box::new(move |driver| launch.run(driver, None))),
        );
        Ok(())
    }

    /// Returns a copy of a launch with other attributes.
    pub(crate) fn relaunch<'a>(
        &self,
        launch: &Launch,
        attributes: impl Iterator<Item = (CUlaunchAttributeID, &'a CUlaunchAttributeValue)>,
    ) -> Result<Launch> {
        let mut launch = launch.clone();
        (launch.shape.is_cooperative, launch.shape.cluster) = (false, NO_CLUSTER);
        attribute::apply(attributes, &mut launch.shape)?;
        launch.shape.require_cluster(&launch.resolved)?;
        self.check_shape(&launch.resolved, &launch.shape)?;
        Ok(launch)
    }

    /// Checks a launch and copies its parameters.
    pub(crate) fn prepare(
        &self,
        state: &mut State,
        function: Pointer<CUfunc_st>,
        context: Id<Context>,
        mut shape: Shape,
        arguments: Arguments,
    ) -> Result<Launch> {
        let (resolved, globals) = self.resolve_kernel_in(state, function, context)?;
        shape.require_cluster(&resolved)?;
        self.check_shape(&resolved, &shape)?;
        let parameters = arguments.collect(resolved.kernel()?)?;
        let device = state.valid_context(context)?.device;
        Ok(Launch {
            resolved,
            shape,
            parameters,
            globals,
            device,
            context,
        })
    }

    /// Returns the kernel of a handle with the addresses of its variables in a context.
    fn resolve_kernel_in(
        &self,
        state: &mut State,
        function: Pointer<CUfunc_st>,
        context: Id<Context>,
    ) -> Result<(ResolvedKernel, Arc<[u64]>)> {
        let invalid = CUresult::CUDA_ERROR_INVALID_HANDLE;
        let library_kernel = state.kernels.get(Id::from_number(function.address()));
        let module = match library_kernel.map(|kernel| kernel.library) {
            Some(library) => self.library_module(state, library, context)?,
            None => {
                state
                    .functions
                    .get(Id::from(function))
                    .ok_or(invalid)?
                    .module
            }
        };
        let module = state
            .modules
            .get(module)
            .filter(|module| module.context == context)
            .ok_or(invalid)?;
        let globals = Arc::clone(&module.globals);
        Ok((state.resolve_kernel_in(function, context)?, globals))
    }

    /// Returns `true` if each size is positive and at most its limit.
    pub(crate) fn is_within_limits(
        &self,
        sizes: [u32; 3],
        limits: [CUdevice_attribute; 3],
    ) -> bool {
        sizes
            .iter()
            .zip(limits)
            .all(|(size, limit)| (1..=self.attribute_value(limit)).contains(size))
    }

    /// Checks that the device can run a kernel in this configuration.
    fn check_shape(&self, resolved: &ResolvedKernel, shape: &Shape) -> Result {
        use CUdevice_attribute as Attribute;

        let max_grid = [
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
        ];
        let max_block = [
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        ];
        let kernel = resolved.kernel()?;
        let threads = shape.block.iter().fold(1_u64, |threads, size| {
            threads.saturating_mul(u64::from(*size))
        });
        let is_valid = self.is_within_limits(shape.grid, max_grid)
            && self.is_within_limits(shape.block, max_block)
            && threads <= u64::from(self.max_threads(kernel))
            && kernel
                .required_block
                .is_none_or(|block| block == shape.block)
            && shape.dynamic_shared <= self.max_dynamic_shared(resolved)?
            && kernel.local_size as usize <= MAX_STACK;
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // As on hardware, the memory holds the local memory of as many threads as can be resident.
        let resident = self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            as u64
            * u64::from(
                self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
            );
        if resident * u64::from(kernel.local_size) > self.config().device_model.memory() {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        self.check_cluster(resolved, shape)?;
        if shape.is_cooperative {
            self.check_cooperative(resolved, shape)
        } else {
            Ok(())
        }
    }

    /// Checks that the device supports the requested cluster size, and that the grid is divisible by it.
    fn check_cluster(&self, resolved: &ResolvedKernel, shape: &Shape) -> Result {
        if shape.cluster == NO_CLUSTER {
            return Ok(());
        }
        if self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let required = resolved.kernel()?.required_cluster;
        let is_whole = (0..3).all(|axis| shape.grid[axis].is_multiple_of(shape.cluster[axis]));
        if !is_whole || required.is_some_and(|required| required != shape.cluster) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let blocks = shape
            .cluster
            .iter()
            .fold(1, |blocks: u32, size| blocks.saturating_mul(*size));
        if blocks > resolved.max_cluster_blocks() {
            Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE)
        } else {
            Ok(())
        }
    }

    /// Checks that all blocks of a cooperative launch are resident simultaneously.
    fn check_cooperative(&self, resolved: &ResolvedKernel, shape: &Shape) -> Result {
        let threads = shape.block.iter().product();
        let per_multiprocessor =
            self.max_active_blocks(resolved, threads, shape.dynamic_shared as usize)?;
        let multiprocessors =
            self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        if shape.blocks() > u64::from(per_multiprocessor * multiprocessors) {
            return Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        Ok(())
    }
}

impl Launch {
    /// Returns the context that it runs in.
    pub(crate) fn context(&self) -> Id<Context> {
        self.context
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the location of the value of each parameter, for as long as this launch exists.
    pub(crate) fn values(&self) -> Result<impl Iterator<Item = *const u8>> {
        Ok(self
            .resolved
            .kernel()?
            .params
            .iter()
            .map(|parameter| self.parameters[parameter.offset..].as_ptr()))
    }
}

impl Shape {
    /// Takes the cluster that a kernel's attributes require, which must be all zero or all positive, unless the launch has one.
    fn require_cluster(&mut self, resolved: &ResolvedKernel) -> Result {
        let required = resolved.settings.required_cluster;
        if required == [0; 3] || self.cluster != NO_CLUSTER {
            return Ok(());
        }
        if required.contains(&0) {
            return Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);
        }
        self.cluster = required.map(i32::cast_unsigned);
        Ok(())
    }

    fn blocks(&self) -> u64 {
        self.grid
            .iter()
            .fold(1, |blocks, size| blocks.saturating_mul(u64::from(*size)))
    }
}
