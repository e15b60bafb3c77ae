//! The list of live objects.

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::state::State;
use crate::handle::{Id, Object, Table};
use crate::live::LiveObject;
use crate::object::graph::Graph;

impl Driver {
    /// Returns the live objects, the oldest first. [`Self::live_handles`] counts the same objects.
    pub(crate) fn live_objects(&self) -> Vec<LiveObject> {
        let mut objects = self.lock().live_objects();
        objects.extend(self.memory().live_objects());
        objects.extend(self.log.live_listeners());
        objects.sort_by_key(|object| object.number);
        objects
    }
}

impl State {
    fn live_objects(&self) -> Vec<LiveObject> {
        let mut all = list("context", &self.contexts, Context::is_active, |_| None);
        all.extend(list(
            "stream",
            &self.streams,
            |stream| stream.is_created,
            |stream| Some(stream.context),
        ));
        all.extend(list(
            "event",
            &self.events,
            |_| true,
            |event| Some(event.context),
        ));
        all.extend(list("listener", &self.listeners, |_| true, |_| None));
        all.extend(list(
            "module",
            &self.modules,
            |module| module.library.is_none(),
            |module| Some(module.context),
        ));
        all.extend(list("library", &self.libraries, |_| true, |_| None));
        all.extend(list("link", &self.links, |_| true, |_| None));
        all.extend(list("texture", &self.textures.textures, |_| true, |_| None));
        all.extend(list("surface", &self.textures.surfaces, |_| true, |_| None));
        all.extend(list("graph", &self.graphs.graphs, Graph::is_owned, |_| {
            None
        }));
        all.extend(list(
            "executable graph",
            &self.graphs.executables,
            |_| true,
            |_| None,
        ));
        all.extend(list(
            "user object",
            &self.graphs.objects,
            |_| true,
            |_| None,
        ));
        all
    }
}

/// Returns the objects of a table that count, each with its context.
fn list<T: Object>(
    kind: &'static str,
    table: &Table<T>,
    counts: impl Fn(&T) -> bool,
    context: impl Fn(&T) -> Option<Id<Context>>,
) -> Vec<LiveObject> {
    let live = table.iter().filter(|(_, object)| counts(object));
    live.filter_map(|(id, object)| {
        let described = LiveObject::new(kind, id.number(), table.origin(id)?);
        Some(described.with_context(context(object).map_or(0, Id::number)))
    })
    .collect()
}
