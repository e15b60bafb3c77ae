//! Update of kernel nodes in executable graphs.
//!
//! New arguments for a node are what an executable is given between launches, so the common case is to cost what the call does. What an
//! update has to find out, whether the kernel is of the executable's driver and context and the node still in its graph, stays true for as
//! long as the executable keeps the kernel and is the only one that has the graph: it is noted, and the next update only sees that it is
//! about the same kernel.

use std::ffi::c_void;

use curium_sys::{CUDA_KERNEL_NODE_PARAMS, CUgraphExec, CUgraphNode, CUgraphNode_st, Function};

use super::kernel::{expect_kernel, older, params};
use super::{GraphExec, KernelNode, Node};
use crate::base::handle::Handle;
use crate::call;
use crate::kernel::Inner;
use crate::kernel::launch::explain;
use crate::kernel::signature::{NodeArguments, Signature};
use crate::{Context, Driver, Kernel, LaunchConfig, Result};

/// The operation that errors name.
const OPERATION: &str = "GraphExec::set_kernel";

/// The kernels of nodes that were updated one by one, at the numbers of the nodes in the source.
#[derive(Default)]
pub(super) struct UpdatedKernels(Vec<Option<UpdatedKernel>>);

struct UpdatedKernel {
    kernel: Inner,
    /// The source that the node is of, if `node` is its handle for as long as the executable exists; else 0, which no graph has.
    settled_in: u64,
    node: Handle<CUgraphNode_st>,
}

impl GraphExec {
    /// Makes a node run its kernel with other arguments from the next launch on, with the kernel and the size that the node was added
    /// with.
    ///
    /// This is one call of the driver for a kernel of a [`Library`](crate::Library), and nothing is allocated where the node was updated
    /// before.
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
    #[inline]
    pub unsafe fn set_kernel<S: Signature>(
        &mut self,
        node: &KernelNode<S>,
        arguments: impl NodeArguments<S>,
    ) -> Result<()> {
        // SAFETY: the caller is responsible for the kernel and the arguments.
        unsafe { self.set_kernel_with(node, &node.kernel, node.config, arguments) }
    }

    /// Makes a node run `kernel` from the next launch on: the same with other arguments or another size, or another of the same signature.
    ///
    /// CUDA: `cuGraphExecKernelNodeSetParams_v2`, and `cuGraphExecKernelNodeSetParams` before 12.0.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_kernel`](crate::Graph::add_kernel).
    ///
    /// # Errors
    ///
    /// An argument error if the kernel is of another driver or context, or the node is not one of the graph that was instantiated, or was
    /// removed from it; `CUDA_ERROR_INVALID_VALUE` if the executable does not have the node, or the kernel cannot take the place of the
    /// other.
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
            // SAFETY: `values` holds the address of one value of the right size for each parameter, and the caller is responsible for the
            // rest.
            unsafe { self.set_kernel_values(**node, inner, &config, values) }
        })
    }

    /// # Safety
    ///
    /// `values` holds the address of a value for each parameter of the kernel, and as for [`Graph::add_kernel`](crate::Graph::add_kernel).
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
        // SAFETY: the executable, the node and the kernel are live, and the caller is responsible for the rest.
        let set =
            unsafe { call!(&kernel.driver, cuGraphExecKernelNodeSetParams_v2(self.as_raw(), raw, &raw const params)) };
        set.map_err(|error| explain(error, kernel, self.context().device(), config).during(OPERATION))
    }

    /// Returns the same for a kernel and a node of which nothing is known.
    ///
    /// # Safety
    ///
    /// As for [`GraphExec::set_kernel_values`].
    #[cold]
    #[inline]
    unsafe fn set_other_kernel(
        &mut self,
        node: Node,
        kernel: &Inner,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        expect_kernel(self.context(), kernel, OPERATION)?;
        let params = params(kernel, self.context(), config, values);
        let set = self.with_own_node(OPERATION, node, |context, exec, raw| {
            // SAFETY: the executable, the node and the kernel are live, and the caller is responsible for the rest.
            unsafe { set_params(context, exec, raw, &params) }
        });
        let set = set.map_err(|error| explain(error, kernel, self.context().device(), config).during(OPERATION))?;
        let settled = set.filter(|_| needs_no_context(self.driver(), &params));
        self.updated_kernels_mut().keep(node, kernel, settled);
        Ok(())
    }
}

impl UpdatedKernels {
    /// Returns the driver's handle of a node, if it runs the same kernel already and nothing has to be found out about it.
    #[inline]
    fn settled(&self, node: Node, kernel: &Inner) -> Option<CUgraphNode> {
        let known = self.0.get(node.number as usize)?.as_ref()?;
        (known.settled_in == node.tree && known.kernel.is_clone_of(kernel)).then(|| known.node.raw())
    }

    /// Keeps the kernel that a node runs, in place of the one before. The handle is given if it stays the node's.
    #[inline]
    fn keep(&mut self, node: Node, kernel: &Inner, settled: Option<CUgraphNode>) {
        let index = node.number as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let kernel = match self.0[index].take() {
            Some(known) if known.kernel.is_clone_of(kernel) => known.kernel,
            _ => kernel.clone(),
        };
        let settled_in = if settled.is_some() { node.tree } else { 0 };
        self.0[index] =
            Some(UpdatedKernel { kernel, settled_in, node: Handle::new(settled.unwrap_or(std::ptr::null_mut())) });
    }

    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns `true` if the kernel of a node can be described without its context being current: one of a library is put into the context that
/// the description names; a function is of a context, and drivers before 12.0 ask for that one.
#[inline]
fn needs_no_context(driver: &Driver, params: &CUDA_KERNEL_NODE_PARAMS) -> bool {
    !params.kern.is_null() && driver.has(Function::cuGraphExecKernelNodeSetParams_v2)
}

/// Describes a node of an executable anew.
///
/// # Safety
///
/// The executable, the node and the kernel are live, and the node may run as `params` say.
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
        return unsafe { call!(driver, cuGraphExecKernelNodeSetParams_v2(exec, node, params)) };
    }
    context.entered(|driver| {
        if driver.has(Function::cuGraphExecKernelNodeSetParams_v2) {
            // SAFETY: the caller is responsible for all of it.
            return unsafe { call!(driver, cuGraphExecKernelNodeSetParams_v2(exec, node, params)) };
        }
        let params = older(params);
        // SAFETY: the caller is responsible for all of it.
        unsafe { call!(driver, cuGraphExecKernelNodeSetParams(exec, node, &raw const params)) }
    })
}
