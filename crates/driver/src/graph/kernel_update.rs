//! Individual updates of kernel nodes in executable graphs.
//!
//! Executable graphs are typically updated between launches, so the common case must cost little
//! more than the driver call. An update checks that the kernel belongs to the driver and context of
//! the executable graph and that the node still belongs to its source graph. Both stay true for as
//! long as the executable graph keeps the kernel and is the only owner of the source graph. The
//! result is stored, and the next update only checks that it uses the same kernel.

use std::ffi::c_void;

use curium_sys::{CUDA_KERNEL_NODE_PARAMS, CUgraphExec, CUgraphNode, CUgraphNode_st, Function};

use super::exec::GraphExec;
use super::kernel::{check_kernel, older, params};
use super::node::{KernelNode, Node};
use crate::base::handle::Handle;
use crate::call;
use crate::kernel::Inner;
use crate::kernel::launch::explain;
use crate::kernel::signature::{NodeArguments, Signature};
use crate::{Context, Driver, Kernel, LaunchConfig, Result};

/// The operation named in errors.
const OPERATION: &str = "GraphExec::set_kernel";

/// The kernels of individually updated nodes, indexed by node number in the source graph.
#[derive(Default)]
pub(super) struct UpdatedKernels(Vec<Option<UpdatedKernel>>);

struct UpdatedKernel {
    kernel: Inner,
    /// The identity of the source graph if the node's handle is valid for as long as the executable
    /// graph exists; otherwise 0, which is no graph's identity.
    settled_in: u64,
    node: Handle<CUgraphNode_st>,
}

impl GraphExec {
    /// Sets the arguments of a kernel node for subsequent launches. The kernel and the launch
    /// configuration become those with which the node was added, even after
    /// [`GraphExec::set_kernel_with`].
    ///
    /// This is a single driver call for a kernel of a [`Library`](crate::Library), without an
    /// allocation from the second update of a node on.
    ///
    /// CUDA: `cuGraphExecKernelNodeSetParams_v2`, and `cuGraphExecKernelNodeSetParams` before 12.0.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_kernel`](crate::Graph::add_kernel).
    ///
    /// # Errors
    ///
    /// As for [`GraphExec::set_kernel_with`].
    #[doc(alias = "cuGraphExecKernelNodeSetParams")]
    #[doc(alias = "cudaGraphExecKernelNodeSetParams")]
    #[inline]
    pub unsafe fn set_kernel<S: Signature>(
        &mut self,
        node: &KernelNode<S>,
        arguments: impl NodeArguments<S>,
    ) -> Result<()> {
        // SAFETY: the caller is responsible for the kernel and the arguments.
        unsafe { self.set_kernel_with(node, &node.kernel, node.config, arguments) }
    }

    /// Sets the kernel, the launch configuration and the arguments of a kernel node for subsequent
    /// launches. The kernel must have the same signature.
    ///
    /// CUDA: `cuGraphExecKernelNodeSetParams_v2`, and `cuGraphExecKernelNodeSetParams` before 12.0.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_kernel`](crate::Graph::add_kernel).
    ///
    /// # Errors
    ///
    /// An argument error if the kernel belongs to another driver or context, or if the node does
    /// not belong to the source graph or was removed from it; `CUDA_ERROR_INVALID_VALUE` if the
    /// executable graph does not have the node, or if the kernel cannot replace the previous one.
    #[inline]
    pub unsafe fn set_kernel_with<S: Signature>(
        &mut self,
        node: &KernelNode<S>,
        kernel: &Kernel<S>,
        config: LaunchConfig,
        arguments: impl NodeArguments<S>,
    ) -> Result<()> {
        let inner = kernel.inner();
        arguments.values_with(|values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter,
            // and the caller is responsible for the rest.
            unsafe { self.set_kernel_values(**node, inner, &config, values) }
        })
    }

    /// Updates a node, with the checks of a previous update if it had the same kernel.
    ///
    /// # Safety
    ///
    /// - `values` holds the address of a value for each parameter of the kernel.
    /// - The requirements of [`Graph::add_kernel`](crate::Graph::add_kernel) are met.
    #[inline]
    unsafe fn set_kernel_values(
        &mut self,
        node: Node,
        kernel: &Inner,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let Some(raw) = self.updated_kernels().settled(node, kernel) else {
            // SAFETY: the caller is responsible for all of it.
            return unsafe { self.set_other_kernel(node, kernel, config, values) };
        };
        let params = params(kernel, self.context(), config, values);
        // SAFETY: the executable graph, the node and the kernel are live, and the caller is
        // responsible for the rest.
        let set = unsafe {
            call!(
                &kernel.driver,
                cuGraphExecKernelNodeSetParams_v2(self.as_raw(), raw, &raw const params)
            )
        };
        set.map_err(|error| {
            explain(error, kernel, self.context().device(), config).during(OPERATION)
        })
    }

    /// Updates a node with a kernel that has not been checked yet.
    ///
    /// # Safety
    ///
    /// As for [`GraphExec::set_kernel_values`].
    #[cold]
    unsafe fn set_other_kernel(
        &mut self,
        node: Node,
        kernel: &Inner,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        if kernel.is_unbound() {
            let bound = kernel.bound_to(OPERATION, self.context())?;
            // SAFETY: the caller is responsible for the kernel in every context.
            return unsafe { self.set_kernel_values(node, &bound, config, values) };
        }
        check_kernel(self.context(), kernel, OPERATION)?;
        let params = params(kernel, self.context(), config, values);
        let set = self.with_own_node(OPERATION, node, |context, exec, raw| {
            // SAFETY: the executable graph, the node and the kernel are live, and the caller is
            // responsible for the rest.
            unsafe { set_params(context, exec, raw, &params) }
        });
        let set = set.map_err(|error| {
            explain(error, kernel, self.context().device(), config).during(OPERATION)
        })?;
        let settled = set.filter(|_| needs_no_context(self.driver(), &params));
        self.updated_kernels_mut().keep(node, kernel, settled);
        Ok(())
    }
}

impl UpdatedKernels {
    /// Returns the raw handle of a node if it already runs this kernel and needs no further check.
    #[inline]
    fn settled(&self, node: Node, kernel: &Inner) -> Option<CUgraphNode> {
        let updated = self.0.get(node.number as usize)?.as_ref()?;
        (updated.settled_in == node.tree && updated.kernel.is_same_look_up(kernel))
            .then(|| updated.node.raw())
    }

    /// Keeps the kernel of a node, replacing the previous one. `settled` is the node's handle if it
    /// stays valid.
    #[inline]
    fn keep(&mut self, node: Node, kernel: &Inner, settled: Option<CUgraphNode>) {
        let index = node.number as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let kernel = match self.0[index].take() {
            Some(updated) if updated.kernel.is_same_look_up(kernel) => updated.kernel,
            _ => kernel.clone(),
        };
        let settled_in = if settled.is_some() { node.tree } else { 0 };
        self.0[index] = Some(UpdatedKernel {
            kernel,
            settled_in,
            node: Handle::new(settled.unwrap_or(std::ptr::null_mut())),
        });
    }

    /// Removes all kernels.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns `true` if the parameters of a kernel node can be set without a current context. A
/// library kernel is loaded into the context named by the parameters; a function belongs to a
/// context, which drivers before 12.0 require to be current.
#[inline]
fn needs_no_context(driver: &Driver, params: &CUDA_KERNEL_NODE_PARAMS) -> bool {
    !params.kern.is_null() && driver.has(Function::cuGraphExecKernelNodeSetParams_v2)
}

/// Sets the parameters of a node in an executable graph.
///
/// # Safety
///
/// The executable graph, the node and the kernel are live, and the node may run with `params`.
#[inline]
unsafe fn set_params(
    context: &Context,
    exec: CUgraphExec,
    node: CUgraphNode,
    params: &CUDA_KERNEL_NODE_PARAMS,
) -> Result<()> {
    let driver = context.driver();
    if needs_no_context(driver, params) {
        // SAFETY: the caller is responsible for all of it.
        return unsafe {
            call!(
                driver,
                cuGraphExecKernelNodeSetParams_v2(exec, node, params)
            )
        };
    }
    context.entered(|driver| {
        if driver.has(Function::cuGraphExecKernelNodeSetParams_v2) {
            // SAFETY: the caller is responsible for all of it.
            return unsafe {
                call!(
                    driver,
                    cuGraphExecKernelNodeSetParams_v2(exec, node, params)
                )
            };
        }
        let params = older(params);
        // SAFETY: the caller is responsible for all of it.
        unsafe {
            call!(
                driver,
                cuGraphExecKernelNodeSetParams(exec, node, &raw const params)
            )
        }
    })
}
