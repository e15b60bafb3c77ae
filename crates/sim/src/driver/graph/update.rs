//! Updates of executables.

use curium_sys::{CUgraphExec_st, CUgraphNode_st, CUresult};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::graph::Graphs;
use crate::object::graph::content::Content;
use crate::result::Result;

pub(crate) const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

impl Graphs {
    /// Replaces the content of a step by one of the same kind.
    pub(crate) fn update(
        &mut self,
        driver: &Driver,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        content: Content,
    ) -> Result {
        let step = self.step(executable, node)?;
        if step.content.kind() != content.kind() {
            return Err(INVALID);
        }
        if let (Content::Copy(before), Content::Copy(after)) = (&step.content, &content)
            && before.memory_kinds(driver) != after.memory_kinds(driver)
        {
            return Err(INVALID);
        }
        if let (Content::Batch(before), Content::Batch(after)) = (&step.content, &content)
            && !before.has_same_operations(after)
        {
            return Err(INVALID);
        }
        step.content = driver
            .devices()
            .inherit_attributes(&step.content, content)?;
        Ok(())
    }
}
