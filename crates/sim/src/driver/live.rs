//! The list of live objects.

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::state::State;
use crate::live::LiveObject;

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
        let contexts = self
            .contexts
            .live_objects("context", Context::is_active, |_| 0);
        let streams = self.streams.live_objects(
            "stream",
            |stream| stream.is_created,
            |stream| stream.context.number(),
        );
        let events = self
            .events
            .live_objects("event", |_| true, |event| event.context.number());
        let listeners = self.listeners.live_objects("listener", |_| true, |_| 0);
        let modules = self.modules.live_objects(
            "module",
            |module| module.library.is_none(),
            |module| module.context.number(),
        );
        let libraries = self.libraries.live_objects("library", |_| true, |_| 0);
        let links = self.links.live_objects("link", |_| true, |_| 0);
        contexts
            .chain(streams)
            .chain(events)
            .chain(listeners)
            .chain(modules)
            .chain(libraries)
            .chain(links)
            .chain(self.textures.live_objects())
            .chain(self.graphs.live_objects())
            .collect()
    }
}
