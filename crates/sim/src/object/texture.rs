//! Texture and surface objects over arrays and memory.

pub(crate) mod image;

use curium_sys::{CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC};

use crate::context::ticket::Ticket;
use crate::handle::{Kind, Object};

/// A texture object.
pub(crate) struct Texture {
    pub(crate) resource: Resource,
    pub(crate) description: CUDA_TEXTURE_DESC,
    pub(crate) view: Option<CUDA_RESOURCE_VIEW_DESC>,
}

/// A surface object.
pub(crate) struct Surface {
    pub(crate) resource: Resource,
}

/// Destroyed textures or surfaces that launches which were enqueued before can still access, as on
/// hardware.
pub(crate) struct Destroyed<T>(Vec<DestroyedObject<T>>);

struct DestroyedObject<T> {
    pub(crate) handle: u64,
    pub(crate) object: T,
    /// The work that was enqueued before.
    pub(crate) users: Vec<Ticket>,
}

/// The resource as the caller described it.
#[derive(Clone, Copy)]
pub(crate) struct Resource(pub(crate) CUDA_RESOURCE_DESC);

// SAFETY: the simulator treats the handles in a description as numbers and never follows them.
unsafe impl Send for Resource {}

impl Object for Texture {
    type Raw = u8;
    const KIND: Kind = Kind::Texture;
}

impl Object for Surface {
    type Raw = u8;
    const KIND: Kind = Kind::Surface;
}

impl<T> Destroyed<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an object, and drops those that no work can access any more. `pending` is all work that
    /// has not ended.
    pub(crate) fn insert(&mut self, handle: u64, object: T, pending: Vec<Ticket>) {
        self.0
            .retain(|destroyed| destroyed.users.iter().any(|user| pending.contains(user)));
        if !pending.is_empty() {
            self.0.push(DestroyedObject {
                handle,
                object,
                users: pending,
            });
        }
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        let destroyed = self.0.iter().find(|destroyed| destroyed.handle == handle)?;
        Some(&destroyed.object)
    }
}
