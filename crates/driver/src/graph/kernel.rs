//! Kernel nodes.

use std::ffi::c_void;

use curium_sys::{CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUgraphNode, Function};

use super::kernel_attribute::refuse_events;
use super::node::{KernelNode, Node};
use super::resource::Resource;
use super::{Graph, NewNode};
use crate::call;
use crate::kernel::launch::explain;
use crate::kernel::signature::{NodeArguments, Signature};
use crate::kernel::{Inner, Owner, function_name, kernel_name};
use crate::{Context, Driver, Error, Kernel, LaunchAttributes, LaunchConfig, Result, Untyped};

impl Graph {
    /// Adds a kernel node that depends on the nodes in `after`. The arguments are copied
    /// immediately; pass a [`DevicePointer`](crate::DevicePointer) for a pointer parameter.
    ///
    /// CUDA: `cuGraphAddKernelNode_v2`, and `cuGraphAddKernelNode` before 12.0.
    ///
    /// # Safety
    ///
    /// - The memory that the arguments point to outlives every executable graph instantiated from
    ///   the graph, and its launches.
    /// - With these arguments and this configuration, the kernel stays within that memory and
    ///   accesses it as its signature declares.
    /// - During each launch, no other work that is not ordered with the launch accesses the memory
    ///   in a conflicting way.
    /// - Nodes that access the same memory, of which at least one writes it, are ordered by
    ///   dependencies for as long as they are in the graph.
    ///
    /// # Errors
    ///
    /// An argument error if the kernel belongs to another driver or context, or if a node in
    /// `after` belongs to another graph or was removed; `CUDA_ERROR_INVALID_VALUE` if a device
    /// limit is exceeded.
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cudaGraphAddKernelNode")]
    #[inline]
    pub unsafe fn add_kernel<S: Signature>(
        &mut self,
        after: &[Node],
        kernel: &Kernel<S>,
        config: LaunchConfig,
        arguments: impl NodeArguments<S>,
    ) -> Result<KernelNode<S>> {
        arguments.values_with(|values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter,
            // and the caller is responsible for the rest.
            unsafe { self.add_kernel_node("Graph::add_kernel", after, kernel, config, values) }
        })
    }

    /// Adds a kernel node like [`Graph::add_kernel`], with launch attributes such as a cluster size
    /// or a priority.
    ///
    /// CUDA: `cuGraphAddKernelNode_v2`, and `cuGraphKernelNodeSetAttribute` for each attribute.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_kernel`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_kernel`], and an argument error for attributes that record an event; use
    /// nodes and edges instead.
    #[inline]
    pub unsafe fn add_kernel_with<S: Signature>(
        &mut self,
        after: &[Node],
        kernel: &Kernel<S>,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        arguments: impl NodeArguments<S>,
    ) -> Result<KernelNode<S>> {
        refuse_events(attributes, "Graph::add_kernel_with")?;
        // SAFETY: the caller is responsible for the kernel and the arguments.
        let node = unsafe { self.add_kernel(after, kernel, config, arguments) }?;
        self.keep_if(node, |graph, node| {
            graph.set_attributes("Graph::add_kernel_with", **node, attributes)
        })
    }

    /// Adds a kernel node that depends on the nodes in `after`. `arguments` contains a pointer to
    /// the value of each parameter; the values are copied immediately.
    ///
    /// CUDA: `cuGraphAddKernelNode_v2`, and `cuGraphKernelNodeSetAttribute` for each attribute.
    ///
    /// # Safety
    ///
    /// - `arguments` contains the address of a value of the right size for each parameter.
    /// - As for [`Graph::add_kernel`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_kernel_with`].
    #[inline]
    pub unsafe fn add_kernel_raw(
        &mut self,
        after: &[Node],
        kernel: &Kernel,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        arguments: &mut [*mut c_void],
    ) -> Result<KernelNode<Untyped>> {
        refuse_events(attributes, "Graph::add_kernel_raw")?;
        let values = arguments.as_mut_ptr();
        // SAFETY: the caller is responsible for the kernel and the arguments.
        let node = unsafe {
            self.add_kernel_node("Graph::add_kernel_raw", after, kernel, config, values)
        }?;
        self.keep_if(node, |graph, node| {
            graph.set_attributes("Graph::add_kernel_raw", **node, attributes)
        })
    }

    /// Sets the kernel, the launch configuration and the arguments of a kernel node. Existing
    /// executable graphs are not affected; use
    /// [`GraphExec::set_kernel`](crate::GraphExec::set_kernel) for those.
    ///
    /// CUDA: `cuGraphKernelNodeSetParams_v2`, and `cuGraphKernelNodeSetParams` before 12.0.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_kernel`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_kernel`].
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    #[inline]
    pub unsafe fn set_kernel<S: Signature>(
        &mut self,
        node: &KernelNode<S>,
        kernel: &Kernel<S>,
        config: LaunchConfig,
        arguments: impl NodeArguments<S>,
    ) -> Result<()> {
        check_kernel(self.context(), kernel.inner(), "Graph::set_kernel")?;
        let bound = kernel.bound(self.context())?;
        let kernel = bound.inner();
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::set_kernel", self.number, **node)?;
        let set = arguments.values_with(|values| {
            let params = params(kernel, self.context(), &config, values);
            self.context()
                .entered(|driver| set_params(driver, raw, &params))
        });
        set.map_err(|error| {
            explain(error, kernel, self.context().device(), &config).during("Graph::set_kernel")
        })?;
        let before = state.replace_resource(**node, Some(Resource::Kernel(kernel.clone())));
        drop(state);
        drop(before);
        Ok(())
    }

    /// Returns the launch configuration of a kernel node.
    ///
    /// CUDA: `cuGraphKernelNodeGetParams_v2`, and `cuGraphKernelNodeGetParams` before 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphKernelNodeGetParams")]
    #[doc(alias = "cudaGraphKernelNodeGetParams")]
    #[inline]
    pub fn kernel_config<S>(&self, node: &KernelNode<S>) -> Result<LaunchConfig> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::kernel_config", self.number, **node)?;
        let params = get_params(self.driver(), raw)?;
        let grid = (params.gridDimX, params.gridDimY, params.gridDimZ);
        let block = (params.blockDimX, params.blockDimY, params.blockDimZ);
        Ok(LaunchConfig::new(grid, block).with_shared_bytes(params.sharedMemBytes))
    }

    /// Adds a kernel node.
    ///
    /// # Safety
    ///
    /// - `values` holds the address of a value for each parameter.
    /// - The requirements of [`Graph::add_kernel`] are met.
    #[inline]
    unsafe fn add_kernel_node<S>(
        &mut self,
        operation: &'static str,
        after: &[Node],
        kernel: &Kernel<S>,
        config: LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<KernelNode<S>> {
        check_kernel(self.context(), kernel.inner(), operation)?;
        let context = self.context().clone();
        let bound = kernel.bound(&context)?;
        let inner = bound.inner();
        let params = params(inner, &context, &config, values);
        let added = self.add(
            operation,
            after,
            Some(Resource::Kernel(inner.clone())),
            |_, arguments| {
                let added = context.entered(|driver| add_params(driver, arguments, &params));
                added.map_err(|error| {
                    explain(error, inner, context.device(), &config).during(operation)
                })
            },
        );
        added.map(|node| KernelNode {
            node,
            kernel: kernel.clone(),
            config,
        })
    }

    /// Removes `node` again if `check` fails.
    #[inline]
    fn keep_if<S>(
        &mut self,
        node: KernelNode<S>,
        check: impl FnOnce(&mut Self, &KernelNode<S>) -> Result<()>,
    ) -> Result<KernelNode<S>> {
        let Err(error) = check(self, &node) else {
            return Ok(node);
        };
        // Returns the first error. No dependency on the new node exists yet.
        let _ = self.remove_if(*node, |_| Ok(()));
        Err(error)
    }
}

/// Returns an error of `operation` unless nodes of `context` can run `kernel`.
#[inline]
pub(super) fn check_kernel(
    context: &Context,
    kernel: &Inner,
    operation: &'static str,
) -> Result<()> {
    context.driver().check_same(&kernel.driver, operation)?;
    let kernel_context = match &kernel.owner {
        Owner::Library(_) => return Ok(()),
        Owner::Module(module) => module.context(),
        Owner::LibraryIn(_, context) => context,
    };
    if kernel_context.as_raw() == context.as_raw() {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("context mismatch (kernel `{}` and the graph)", kernel.name),
    ))
}

/// Returns the driver's parameters of a kernel node.
#[inline]
pub(super) fn params(
    kernel: &Inner,
    context: &Context,
    config: &LaunchConfig,
    values: *mut *mut c_void,
) -> CUDA_KERNEL_NODE_PARAMS {
    debug_assert!(!kernel.is_unbound(), "the kernel has no handle");
    let mut params = CUDA_KERNEL_NODE_PARAMS {
        gridDimX: config.grid.x,
        gridDimY: config.grid.y,
        gridDimZ: config.grid.z,
        blockDimX: config.block.x,
        blockDimY: config.block.y,
        blockDimZ: config.block.z,
        sharedMemBytes: config.shared_bytes,
        kernelParams: values,
        ctx: context.as_raw(),
        ..CUDA_KERNEL_NODE_PARAMS::default()
    };
    match kernel.owner {
        Owner::Library(_) => params.kern = kernel.raw.raw().cast(),
        Owner::Module(_) | Owner::LibraryIn(..) => params.func = kernel.raw.raw(),
    }
    params
}

/// Converts the parameters for drivers before 12.0. They have no libraries, so the kernel is a
/// function.
#[inline]
pub(super) fn older(params: &CUDA_KERNEL_NODE_PARAMS) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    }
}

#[inline]
fn add_params(driver: &Driver, arguments: NewNode, params: &CUDA_KERNEL_NODE_PARAMS) -> Result<()> {
    let NewNode {
        node,
        graph,
        after,
        count,
    } = arguments;
    if driver.has(Function::cuGraphAddKernelNode_v2) {
        // SAFETY: the graph, the nodes and the kernel are live, and the caller that adds the node
        // is responsible for the parameters.
        return unsafe {
            call!(driver, cuGraphAddKernelNode_v2(node, graph, after, count, params) creates arguments.created())
        };
    }
    let params = older(params);
    // SAFETY: the graph, the nodes and the kernel are live, and the caller that adds the node is
    // responsible for the parameters.
    unsafe {
        call!(driver, cuGraphAddKernelNode(node, graph, after, count, &raw const params) creates arguments.created())
    }
}

#[inline]
fn set_params(driver: &Driver, node: CUgraphNode, params: &CUDA_KERNEL_NODE_PARAMS) -> Result<()> {
    if driver.has(Function::cuGraphKernelNodeSetParams_v2) {
        // SAFETY: the node and the kernel are live, and the caller that sets the parameters is
        // responsible for them.
        return unsafe { call!(driver, cuGraphKernelNodeSetParams_v2(node, params)) };
    }
    let params = older(params);
    // SAFETY: the node and the kernel are live, and the caller that sets the parameters is
    // responsible for them.
    unsafe { call!(driver, cuGraphKernelNodeSetParams(node, &raw const params)) }
}

/// Returns the name of the kernel of a node, if the driver reports it (since CUDA 12.3).
#[inline]
pub(super) fn node_kernel_name(driver: &Driver, node: CUgraphNode) -> Result<Option<String>> {
    if !driver.has(Function::cuFuncGetName) {
        return Ok(None);
    }
    let CUDA_KERNEL_NODE_PARAMS { func, kern, .. } = get_params(driver, node)?;
    match (func.is_null(), kern.is_null()) {
        (false, _) => function_name(driver, func).map(Some),
        (true, false) => kernel_name(driver, kern).map(Some),
        (true, true) => Ok(None),
    }
}

#[inline]
fn get_params(driver: &Driver, node: CUgraphNode) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    if driver.has(Function::cuGraphKernelNodeGetParams_v2) {
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe { call!(driver, cuGraphKernelNodeGetParams_v2(node, &raw mut params)) }?;
        return Ok(params);
    }
    let mut older = CUDA_KERNEL_NODE_PARAMS_v1::default();
    // SAFETY: the node is live, and `older` is valid for writes.
    unsafe { call!(driver, cuGraphKernelNodeGetParams(node, &raw mut older)) }?;
    (params.gridDimX, params.gridDimY, params.gridDimZ) =
        (older.gridDimX, older.gridDimY, older.gridDimZ);
    (params.blockDimX, params.blockDimY, params.blockDimZ) =
        (older.blockDimX, older.blockDimY, older.blockDimZ);
    params.sharedMemBytes = older.sharedMemBytes;
    Ok(params)
}
