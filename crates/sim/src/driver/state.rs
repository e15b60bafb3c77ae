//! The state of a driver, protected by one lock.

use std::sync::Arc;

use crate::config::Config;
use crate::context::Context;
use crate::context::resource::Descriptor;
use crate::driver::capture::Captures;
use crate::driver::context::{Contexts, Numbers};
use crate::driver::graph::Graphs;
use crate::driver::schedule::Schedule;
use crate::driver::texture::Textures;
use crate::handle::{Id, Table};
use crate::link::Link;
use crate::live::LiveHandles;
use crate::object::function::Function;
use crate::object::kernel::Kernel;
use crate::object::library::Library;
use crate::object::module::Module;
use crate::object::notification::Listener;
use crate::race::Races;

/// The objects of a driver and their queued work.
pub(crate) struct State {
    pub(crate) contexts: Contexts,
    pub(crate) captures: Captures,
    pub(crate) descriptors: Table<Descriptor>,
    pub(crate) listeners: Table<Listener>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pub(crate) libraries: Table<Library>,
    pub(crate) kernels: Table<Kernel>,
    pub(crate) links: Table<Link>,
    pub(crate) textures: Textures,
    pub(crate) graphs: Graphs,
    pub(crate) schedule: Schedule,
    pub(crate) workers_started: bool,
    numbers: Numbers,
}

impl State {
    pub(crate) fn new(config: &Config, races: Option<Arc<Races>>) -> Self {
        let numbers = Numbers::default();
        Self {
            contexts: Contexts::new(config.devices, numbers.clone()),
            captures: Captures::default(),
            descriptors: Table::new(),
            listeners: Table::new(),
            modules: Table::new(),
            functions: Table::new(),
            libraries: Table::new(),
            kernels: Table::new(),
            links: Table::new(),
            textures: Textures::new(),
            graphs: Graphs::new(numbers.clone()),
            schedule: Schedule::new(config.seed, config.workers, races),
            workers_started: false,
            numbers,
        }
    }

    /// Returns a number for a capture or a graph.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers.next()
    }

    /// Ends the objects of a context that has ended.
    pub(crate) fn remove_context_objects(&mut self, context: Id<Context>) {
        let lost = self.contexts.remove_objects(context);
        self.abandon_captures(|origin| lost.contains(&origin));
        self.textures.remove_context(context);
        for module in self
            .modules
            .remove_dependents(|module| module.context == context)
        {
            for function in module.functions {
                self.functions.remove(function);
            }
        }
    }

    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        self.contexts.count_live(live);
        live.listeners = self.listeners.iter().count() as u64;
        live.modules = self
            .modules
            .iter()
            .filter(|(_, module)| module.library.is_none())
            .count() as u64;
        live.libraries = self.libraries.iter().count() as u64;
        live.links = self.links.iter().count() as u64;
        self.textures.count_live(live);
        self.graphs.count_live(live);
    }
}
