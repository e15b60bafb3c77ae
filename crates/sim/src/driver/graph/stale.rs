//! Detection of nodes that use an object after its end.
//!
//! Hardware has no check for this: a graph refers to the functions, events and memory of its nodes and does not keep them alive.

use super::Content;
use super::content::KernelNode;
use super::plan::{Plan, Step};
use crate::driver::{Driver, Event, Kernel, State};
use crate::handle::Id;
use curium_ptx::exec::{Access, Report, Stale};

/// A range of addresses that a node accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) write: bool,
}

impl Plan {
    /// Returns the first node that uses a destroyed object.
    pub(super) fn stale(&self, driver: &Driver, state: &State) -> Option<Report> {
        self.enabled().find_map(|step| step.stale(driver, state))
    }

    /// Returns the same for a part that may never run: memory is checked only when it is accessed.
    fn stale_handle(&self, state: &State) -> Option<Report> {
        self.enabled().find_map(|step| step.stale_handle(state))
    }

    fn enabled(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_enabled)
    }
}

impl Step {
    fn stale(&self, driver: &Driver, state: &State) -> Option<Report> {
        let runs_always = matches!(self.content, Content::Child(_));
        let own = || {
            self.fault_of_handle(state)
                .or_else(|| self.fault_of_memory(driver))
        };
        let part = |part: &Plan| {
            if runs_always {
                part.stale(driver, state)
            } else {
                part.stale_handle(state)
            }
        };
        own().or_else(|| self.parts.iter().find_map(part))
    }

    fn stale_handle(&self, state: &State) -> Option<Report> {
        let own = self.fault_of_handle(state);
        own.or_else(|| self.parts.iter().find_map(|part| part.stale_handle(state)))
    }

    fn fault_of_handle(&self, state: &State) -> Option<Report> {
        let what = match &self.content {
            Content::Kernel(kernel) if !state.has_kernel(kernel) => Stale::Kernel,
            Content::Record(event) | Content::Wait(event) if !state.has_event(*event) => {
                Stale::Event
            }
            _ => return None,
        };
        Some(Report::for_node(self.number, what, None))
    }

    fn fault_of_memory(&self, driver: &Driver) -> Option<Report> {
        let is_freed = |it: &Touched| driver.memory().is_freed(it.address, it.size);
        let Touched {
            address,
            size,
            write,
        } = self.content.touched().into_iter().find(is_freed)?;
        let access = Access {
            address,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            write,
        };
        Some(Report::for_node(self.number, Stale::Memory, Some(access)))
    }
}

impl State {
    fn has_event(&self, event: Id<Event>) -> bool {
        self.events.contains(event)
    }

    /// Returns `true` if the code of a launch is loaded: the handle is that of a function or of a kernel of a library.
    fn has_kernel(&self, node: &KernelNode) -> bool {
        let of_library: Id<Kernel> = Id::from_number(node.function.number());
        self.functions.contains(node.function) || self.kernels.contains(of_library)
    }
}

impl Content {
    /// Returns the addresses that the node certainly accesses. Those of a kernel are unknown.
    fn touched(&self) -> Vec<Touched> {
        match self {
            Self::Copy(copy) => copy.touched(),
            Self::Set(set) => vec![set.touched()],
            Self::Batch(batch) => batch.touched(),
            Self::Library(operation) => operation.touched(),
            _ => Vec::new(),
        }
    }
}
