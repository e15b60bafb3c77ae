//! User objects, which graphs keep alive.

use std::ffi::c_void;

use curium_sys::{CUgraph_st, CUhostFn, CUresult, CUuserObject, CUuserObject_st};

use super::Graph;
use crate::argument::Pointer;
use crate::driver::{Driver, HostFunction, Result, State};
use crate::handle::{Id, Kind, Object};
use crate::lock::MutexGuard;

/// An object of the caller that is destroyed with its last reference.
pub(crate) struct UserObject {
    destroy: HostFunction,
    references: u64,
}

impl Object for UserObject {
    type Raw = CUuserObject_st;
    const KIND: Kind = Kind::UserObject;
}

const NO_DESTRUCTOR_SYNC: u32 = 1;
const MOVE: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
                .objects
                .insert(UserObject {
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
        let object = state.user_object(object, count)?;
        state.retain_objects(&[(object, count)]);
        Ok(())
    }

    pub(crate) fn cuUserObjectRelease(
        &self,
        object: Pointer<CUuserObject_st>,
        count: u32,
    ) -> Result {
        let mut state = self.lock();
        let object = state.user_object(object, count)?;
        state.release_objects(&[(object, count)]);
        self.call_destructors(state);
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
        let graph = state.graph(graph)?;
        let object = state.user_object(object, count)?;
        if flags & !MOVE != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if flags & MOVE == 0 {
            state.retain_objects(&[(object, count)]);
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
        let graph = state.graph(graph)?;
        let object = state.user_object(object, count)?;
        let objects = state.graphs.get_mut(graph).map(|graph| &mut graph.objects);
        let retained = objects
            .into_iter()
            .flatten()
            .find(|(other, retained)| *other == object && *retained >= count);
        // As on hardware, releasing an object that a graph does not retain succeeds. The references of others remain.
        let Some(retained) = retained else {
            return Ok(());
        };
        retained.1 -= count;
        state.release_objects(&[(object, count)]);
        self.call_destructors(state);
        Ok(())
    }
}

impl Driver {
    /// Calls the destructors of objects without references, outside of the lock, since they are the caller's code.
    pub(crate) fn call_destructors(&self, mut state: MutexGuard<'_, State>) {
        let destructors = std::mem::take(&mut state.destructors);
        drop(state);
        destructors.iter().for_each(HostFunction::call);
    }
}

impl State {
    fn user_object(&self, raw: Pointer<CUuserObject_st>, count: u32) -> Result<Id<UserObject>> {
        let id = Id::from(raw);
        let is_valid = count > 0 && self.objects.contains(id);
        if is_valid {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(super) fn retain_objects(&mut self, objects: &[(Id<UserObject>, u32)]) {
        for (object, count) in objects {
            if let Some(object) = self.objects.get_mut(*object) {
                object.references += u64::from(*count);
            }
        }
    }

    /// Releases all objects that a graph retains.
    pub(in crate::driver) fn release_graph_objects(&mut self, graph: Id<Graph>) {
        let objects = self
            .graphs
            .get_mut(graph)
            .map(|graph| std::mem::take(&mut graph.objects));
        self.release_objects(&objects.unwrap_or_default());
    }

    /// Removes references. Destructors of objects that lose the last one are left to [`Driver::call_destructors`].
    pub(super) fn release_objects(&mut self, objects: &[(Id<UserObject>, u32)]) {
        for (id, count) in objects {
            let Some(object) = self.objects.get_mut(*id) else {
                continue;
            };
            object.references = object.references.saturating_sub((*count).into());
            if object.references == 0
                && let Some(object) = self.objects.remove(*id)
            {
                self.destructors.push(object.destroy);
            }
        }
    }
}
