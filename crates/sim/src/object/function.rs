//! Functions: kernels of modules.

use std::sync::Arc;

use curium_ptx::exec;
use curium_sys::{CUfunc_st, CUresult};

use crate::argument::Pointer;
use crate::handle::{Id, Kind, Object};
use crate::image::Code;
use crate::object::module::Module;
use crate::result::Result;

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) module: Id<Module>,
    /// Its position in the program.
    pub(crate) index: usize,
    pub(crate) settings: Settings,
}

impl Object for Function {
    type Raw = CUfunc_st;
    const KIND: Kind = Kind::Function;
}

/// The settings of a kernel; settings that were not made have their defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) max_dynamic_shared: Option<u32>,
    pub(crate) carveout: Option<i32>,
    pub(crate) required_cluster: [i32; 3],
    pub(crate) cluster_scheduling: i32,
    pub(crate) allows_large_clusters: bool,
}

/// A kernel with its settings, whether it was named by a function or a library's kernel.
#[derive(Clone)]
pub(crate) struct ResolvedKernel {
    pub(crate) code: Arc<Code>,
    pub(crate) index: usize,
    pub(crate) settings: Settings,
}

impl Function {
    pub(crate) fn new(module: Id<Module>, index: usize) -> Self {
        Self {
            module,
            index,
            settings: Settings::default(),
        }
    }
}

impl Settings {
    /// Merges these settings with those of the library's kernel as the fallback.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            max_dynamic_shared: self.max_dynamic_shared.or(other.max_dynamic_shared),
            carveout: self.carveout.or(other.carveout),
            ..self
        }
    }
}

/// The portable maximum cluster size, and the maximum of this device.
const PORTABLE_CLUSTER: u32 = 8;
const MAX_CLUSTER: u32 = 16;

impl ResolvedKernel {
    /// Returns the number of blocks that a cluster of the kernel may have.
    pub(crate) fn max_cluster_blocks(&self) -> u32 {
        if self.settings.allows_large_clusters {
            MAX_CLUSTER
        } else {
            PORTABLE_CLUSTER
        }
    }

    pub(crate) fn kernel(&self) -> Result<&exec::Kernel> {
        self.code.kernel(self.index)
    }

    /// Writes the offset of a parameter; an index past the last one is an invalid value.
    pub(crate) fn write_parameter(
        &self,
        index: usize,
        offset: Pointer<usize>,
        size: Pointer<usize>,
    ) -> Result {
        let output = offset.required()?;
        let parameter = self
            .kernel()?
            .params
            .get(index)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        size.write_if_not_null(parameter.size);
        output.write(parameter.offset)
    }
}
