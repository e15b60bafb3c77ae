//! The driver's part in launches of kernels.

pub(crate) mod attribute;
pub(crate) mod run;
pub(crate) mod runtime;

use std::sync::Arc;

use curium_sys::{
    CUdevice_attribute, CUfunc_st, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUresult, CUstream_st,
};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::context::MAX_STACK;
use crate::driver::device::Devices;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::function::ResolvedKernel;
use crate::object::graph::attribute::Attributes;
use crate::object::graph::content::Content;
use crate::object::launch::parameters::Arguments;
use crate::object::launch::{Launch, NO_CLUSTER, Shape};
use crate::result::Result;

impl Devices<'_> {
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
        if resident * u64::from(kernel.local_size) > self.config.device_model.memory() {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        self.check_cluster(resolved, shape)?;
        if shape.is_cooperative {
            self.check_cooperative(resolved, shape)
        } else {
            Ok(())
        }
    }

    /// Checks that the device supports the requested cluster size, and that the grid is divisible
    /// by it.
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

impl Devices<'_> {
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
}

impl Driver {
    /// Checks a launch, copies its parameters and enqueues it.
    pub(crate) fn launch(
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
        self.output().flush();
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let context = state
            .contexts
            .owning_context(state.contexts.stream_context(stream)?);
        let launch = state.prepare(function, context, shape, arguments)?;
        if state.captures.is_capturing(stream) {
            return state.add_captured(
                stream,
                Content::kernel(function, launch, Attributes::from_launch(attributes))?,
            );
        }
        state
            .contexts
            .valid_context_mut(context)?
            .limits_mut()
            .record_launch(launch.resolved.kernel()?.runtime);
        state.queue(
            stream,
            Work::Device(Box::new(move |driver| launch.run(driver, None))),
        );
        Ok(())
    }
}

impl Locked<'_> {
    /// Checks a launch and copies its parameters.
    pub(crate) fn prepare(
        &mut self,
        function: Pointer<CUfunc_st>,
        context: Id<Context>,
        mut shape: Shape,
        arguments: Arguments,
    ) -> Result<Launch> {
        let driver = self.driver;
        let (resolved, globals) = self.resolve_launched_kernel(function, context)?;
        shape.require_cluster(&resolved)?;
        driver.devices().check_shape(&resolved, &shape)?;
        let parameters = arguments.collect(resolved.kernel()?)?;
        let device = self.contexts.valid_context(context)?.device();
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
    fn resolve_launched_kernel(
        &mut self,
        function: Pointer<CUfunc_st>,
        context: Id<Context>,
    ) -> Result<(ResolvedKernel, Arc<[u64]>)> {
        let invalid = CUresult::CUDA_ERROR_INVALID_HANDLE;
        let library_kernel = self.kernels.get(Id::from_number(function.address()));
        let module = match library_kernel.map(|kernel| kernel.library) {
            Some(library) => self.library_module(library, context)?,
            None => {
                self.functions
                    .get(Id::from(function))
                    .ok_or(invalid)?
                    .module
            }
        };
        let module = self
            .modules
            .get(module)
            .filter(|module| module.context == context)
            .ok_or(invalid)?;
        let globals = Arc::clone(&module.globals);
        Ok((self.resolve_kernel_in(function, context)?, globals))
    }
}
