//! User objects, which graphs keep alive.

use curium_sys::{CUresult, CUuserObject_st};

use crate::argument::Pointer;
use crate::driver::graph::Graphs;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::host_function::HostFunction;
use crate::object::graph::Graph;
use crate::object::graph::object::UserObject;
use crate::result::Result;

impl Locked<'_> {
    /// Unlocks the state, and calls the destructors of user objects that have lost their last
    /// reference.
    pub(crate) fn call_destructors(mut self) {
        let destructors = std::mem::take(&mut self.graphs.destructors);
        drop(self);
        destructors.iter().for_each(HostFunction::call);
    }
}

impl Graphs {
    pub(crate) fn user_object(
        &self,
        raw: Pointer<CUuserObject_st>,
        count: u32,
    ) -> Result<Id<UserObject>> {
        let id = Id::from(raw);
        let is_valid = count > 0 && self.objects.contains(id);
        if is_valid {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(crate) fn insert_object(&mut self, object: UserObject) -> Id<UserObject> {
        self.objects.insert(object)
    }

    pub(crate) fn retain_objects(&mut self, objects: &[(Id<UserObject>, u32)]) {
        for (object, count) in objects {
            if let Some(object) = self.objects.get_mut(*object) {
                object.references += u64::from(*count);
            }
        }
    }

    /// Releases all objects that a graph retains.
    pub(crate) fn release_graph_objects(&mut self, graph: Id<Graph>) {
        let objects = self
            .graphs
            .get_mut(graph)
            .map(|graph| std::mem::take(&mut graph.objects));
        self.release_objects(&objects.unwrap_or_default());
    }

    /// Removes references. Destructors of objects that lose the last one are left to
    /// [`Locked::call_destructors`].
    pub(crate) fn release_objects(&mut self, objects: &[(Id<UserObject>, u32)]) {
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
