//! The objects that nodes of a graph keep alive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::object_reference::ObjectReference;
use super::semaphore::SemaphoreOwner;
use crate::Event;
use crate::base::kept_value::KeptValue;
use crate::hazard::Lease;
use crate::kernel::Inner as Kernel;

/// An object that a node uses for as long as it can run.
pub(crate) enum Resource {
    Kernel(Kernel),
    Event(Event),
    /// The objects that the nodes of a child graph keep.
    Child(ResourceSet),
    /// The closure of a host function. The driver retains it for executable graphs.
    Object(ObjectReference),
    /// Memory that also has an owner outside the graph.
    Lease(Lease),
    /// The owners of external semaphores.
    Semaphores(Arc<[Arc<dyn SemaphoreOwner>]>),
    Other(KeptValue),
}

/// The objects that a set of nodes uses, without duplicates.
#[derive(Clone, Default)]
pub(crate) struct ResourceSet(HashMap<usize, Resource>);

impl ResourceSet {
    pub(crate) fn add(&mut self, resource: &Resource) {
        match resource {
            // The driver retains these for everything created from the graph.
            Resource::Object(_) => {}
            Resource::Child(resources) => self.extend(resources),
            Resource::Lease(lease) => self.add_lease(lease),
            resource => {
                self.0
                    .entry(resource.address())
                    .or_insert_with(|| resource.clone());
            }
        }
    }

    fn add_lease(&mut self, lease: &Lease) {
        match self.0.entry(lease.key()) {
            Entry::Vacant(vacant) => {
                vacant.insert(Resource::Lease(lease.clone()));
            }
            Entry::Occupied(mut occupied) => {
                if let (Resource::Lease(existing), true) = (occupied.get_mut(), lease.is_write()) {
                    existing.write_as_well();
                }
            }
        }
    }

    /// Returns the objects.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.0.values()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.iter().filter_map(|resource| {
            if let Resource::Lease(lease) = resource {
                Some(lease)
            } else {
                None
            }
        })
    }

    /// Returns the lease of the same memory.
    pub(super) fn matching_lease(&self, lease: &Lease) -> Option<&Lease> {
        if let Resource::Lease(existing) = self.0.get(&lease.key())? {
            Some(existing)
        } else {
            None
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        other.0.values().for_each(|resource| self.add(resource));
    }
}

impl Resource {
    /// Returns the identity of the object. It is unique for as long as the object exists.
    fn address(&self) -> usize {
        match self {
            Self::Kernel(kernel) => kernel.raw.raw().addr(),
            Self::Event(event) => event.as_raw().addr(),
            Self::Object(object) => object.as_raw().addr(),
            Self::Lease(lease) => lease.key(),
            Self::Semaphores(owners) => Arc::as_ptr(owners).addr(),
            Self::Other(other) => other.address(),
            Self::Child(_) => 0,
        }
    }
}

impl Clone for Resource {
    fn clone(&self) -> Self {
        match self {
            Self::Kernel(kernel) => Self::Kernel(kernel.clone()),
            Self::Event(event) => Self::Event(event.share()),
            Self::Child(resources) => Self::Child(resources.clone()),
            Self::Object(object) => Self::Object(object.clone()),
            Self::Lease(lease) => Self::Lease(lease.clone()),
            Self::Semaphores(owners) => Self::Semaphores(Arc::clone(owners)),
            Self::Other(other) => Self::Other(other.clone()),
        }
    }
}
