//! Launches of kernels.

pub(crate) mod parameters;

use std::sync::Arc;

use curium_sys::CUresult;

use crate::context::Context;
use crate::handle::Id;
use crate::object::function::ResolvedKernel;
use crate::result::Result;

/// A queued launch with everything that it needs to run.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) resolved: ResolvedKernel,
    pub(crate) shape: Shape,
    pub(crate) parameters: Box<[u8]>,
    pub(crate) globals: Arc<[u64]>,
    pub(crate) device: usize,
    pub(crate) context: Id<Context>,
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
    /// Takes the cluster that a kernel's attributes require, which must be all zero or all
    /// positive, unless the launch has one.
    pub(crate) fn require_cluster(&mut self, resolved: &ResolvedKernel) -> Result {
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

    pub(crate) fn blocks(&self) -> u64 {
        self.grid
            .iter()
            .fold(1, |blocks, size| blocks.saturating_mul(u64::from(*size)))
    }
}
