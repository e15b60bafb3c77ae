//! User objects, which graphs keep alive.

use std::ffi::c_void;

use curium_sys::{CUgraph_st, CUhostFn, CUresult, CUuserObject, CUuserObject_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::host_function::HostFunction;
use crate::object::graph::object::UserObject;
use crate::result::Result;

const NO_DESTRUCTOR_SYNC: u32 = 1;

const MOVE: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuUserObjectCreate(
        &self,
        object: Pointer<CUuserObject>,
        data: Pointer<c_void>,
        destroy: CUhostFn,
        references: u32,
        flags: u32,
    ) -> Result {
        let output = object.required()?;
        let destroy = HostFunction::new(destroy, data.as_ptr())?;
        if references == 0 || flags != NO_DESTRUCTOR_SYNC {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(
            self.lock()
                .graphs
                .insert_object(UserObject {
                    destroy,
                    references: references.into(),
                })
                .as_raw(),
        )
    }

    pub(crate) fn cuUserObjectRetain(
        &self,
        object: Pointer<CUuserObject_st>,
        count: u32,
    ) -> Result {
        let mut state = self.lock();
        let object = state.graphs.user_object(object, count)?;
        state.graphs.retain_objects(&[(object, count)]);
        Ok(())
    }

    pub(crate) fn cuUserObjectRelease(
        &self,
        object: Pointer<CUuserObject_st>,
        count: u32,
    ) -> Result {
        let mut state = self.lock();
        let object = state.graphs.user_object(object, count)?;
        state.graphs.release_objects(&[(object, count)]);
        state.call_destructors();
        Ok(())
    }

    pub(crate) fn cuGraphRetainUserObject(
        &self,
        graph: Pointer<CUgraph_st>,
        object: Pointer<CUuserObject_st>,
        count: u32,
        flags: u32,
    ) -> Result {
        let mut state = self.lock();
        let graph = state.graphs.graph(graph)?;
        let object = state.graphs.user_object(object, count)?;
        if flags & !MOVE != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if flags & MOVE == 0 {
            state.graphs.retain_objects(&[(object, count)]);
        }
        if let Some(graph) = state.graphs.get_mut(graph) {
            match graph.objects.iter_mut().find(|(other, _)| *other == object) {
                Some((_, retained)) => *retained += count,
                None => graph.objects.push((object, count)),
            }
        }
        Ok(())
    }

    pub(crate) fn cuGraphReleaseUserObject(
        &self,
        graph: Pointer<CUgraph_st>,
        object: Pointer<CUuserObject_st>,
        count: u32,
    ) -> Result {
        let mut state = self.lock();
        let graph = state.graphs.graph(graph)?;
        let object = state.graphs.user_object(object, count)?;
        let objects = state.graphs.get_mut(graph).map(|graph| &mut graph.objects);
        let retained = objects
            .into_iter()
            .flatten()
            .find(|(other, retained)| *other == object && *retained >= count);
        // As on hardware, releasing an object that a graph does not retain succeeds. The references
        // of others remain.
        let Some(retained) = retained else {
            return Ok(());
        };
        retained.1 -= count;
        state.graphs.release_objects(&[(object, count)]);
        state.call_destructors();
        Ok(())
    }
}
