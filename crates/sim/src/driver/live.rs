//! The list of live objects.

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
        let listeners = self.listeners.live_objects("listener", |_| true, |_| 0);
        let modules = self.modules.live_objects(
            "module",
            |module| module.library.is_none(),
            |module| module.context.number(),
        );
        let libraries = self.libraries.live_objects("library", |_| true, |_| 0);
        let links = self.links.live_objects("link", |_| true, |_| 0);
        self.contexts
            .live_objects()
            .chain(listeners)
            .chain(modules)
            .chain(libraries)
            .chain(links)
            .chain(self.textures.live_objects())
            .chain(self.graphs.live_objects())
            .collect()
    }
}
