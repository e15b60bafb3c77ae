//! Textures and surfaces that a worker has looked up.

use std::sync::Arc;

use super::image::{Surface, Texture};
use super::runtime::Runtime;

/// The last texture and the last surface of a worker. The objects of a launch do not change until it ends.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    texture: Option<(u64, Arc<Texture>)>,
    surface: Option<(u64, Arc<Surface>)>,
}

impl Objects {
    /// Returns the texture with this handle.
    pub(crate) fn texture(&mut self, runtime: &dyn Runtime, handle: u64) -> Option<Arc<Texture>> {
        last(&mut self.texture, handle, |handle| runtime.texture(handle))
    }

    /// Returns the surface with this handle.
    pub(crate) fn surface(&mut self, runtime: &dyn Runtime, handle: u64) -> Option<Arc<Surface>> {
        last(&mut self.surface, handle, |handle| runtime.surface(handle))
    }
}

fn last<T>(
    known: &mut Option<(u64, Arc<T>)>,
    handle: u64,
    find: impl Fn(u64) -> Option<Arc<T>>,
) -> Option<Arc<T>> {
    match known {
        Some((of, object)) if *of == handle => Some(Arc::clone(object)),
        _ => Some(Arc::clone(&known.insert((handle, find(handle)?)).1)),
    }
}
