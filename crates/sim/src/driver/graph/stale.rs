//! Detection of nodes that use an object after its end.
//!
//! Hardware has no check for this: a graph refers to the functions, events and memory of its nodes
//! and does not keep them alive.

use curium_ptx::exec::{Access, Report, Stale};

use crate::driver::Driver;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::event::Event;
use crate::object::graph::content::{Content, KernelNode};
use crate::object::graph::plan::{Plan, Step};
use crate::object::kernel::Kernel;

impl Plan {
    /// Returns the first node that uses a destroyed object.
    pub(crate) fn stale(&self, state: &Locked<'_>) -> Option<Report> {
        self.enabled().find_map(|step| step.stale(state))
    }

    /// Returns the same for a part that may never run: memory is checked only when it is accessed.
    fn stale_handle(&self, state: &State) -> Option<Report> {
        self.enabled().find_map(|step| step.stale_handle(state))
    }
}

impl Step {
    fn stale(&self, state: &Locked<'_>) -> Option<Report> {
        let runs_always = matches!(self.content, Content::Child(_));
        self.stale_handle_report(state)
            .or_else(|| self.freed_memory_report(state.driver()))
            .or_else(|| {
                self.parts.iter().find_map(|part| {
                    if runs_always {
                        part.stale(state)
                    } else {
                        part.stale_handle(state)
                    }
                })
            })
    }

    fn stale_handle(&self, state: &State) -> Option<Report> {
        self.stale_handle_report(state)
            .or_else(|| self.parts.iter().find_map(|part| part.stale_handle(state)))
    }

    fn stale_handle_report(&self, state: &State) -> Option<Report> {
        let what = match &self.content {
            Content::Kernel(kernel) if !state.has_kernel(kernel) => Stale::Kernel,
            Content::Record(event) | Content::Wait(event) if !state.has_event(*event) => {
                Stale::Event
            }
            _ => return None,
        };
        Some(Report::for_node(self.number, what, None))
    }

    fn freed_memory_report(&self, driver: &Driver) -> Option<Report> {
        let freed = self
            .content
            .touched()
            .into_iter()
            .find(|range| driver.memory().is_freed(range.address, range.size))?;
        let access = Access {
            address: freed.address,
            size: u32::try_from(freed.size).unwrap_or(u32::MAX),
            write: freed.write,
        };
        Some(Report::for_node(self.number, Stale::Memory, Some(access)))
    }
}

impl State {
    fn has_event(&self, event: Id<Event>) -> bool {
        self.contexts.event(event).is_some()
    }

    /// Returns `true` if the code of a launch is loaded: the handle is that of a function or of a
    /// kernel of a library.
    fn has_kernel(&self, node: &KernelNode) -> bool {
        let library_kernel: Id<Kernel> = Id::from_number(node.function.number());
        self.functions.contains(node.function) || self.kernels.contains(library_kernel)
    }
}
