//! Textures and surfaces that a worker has looked up.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::exec::image::{Surface, Texture};

/// The last texture and the last surface of a worker. The objects of a launch do not change until
/// it ends.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    texture: Option<(u64, Arc<Texture>)>,
    surface: Option<(u64, Arc<Surface>)>,
}

impl Objects {
    /// Returns the texture with this handle.
    pub(crate) fn texture(&mut self, runtime: &dyn Runtime, handle: u64) -> Option<Arc<Texture>> {
        cached(&mut self.texture, handle, |handle| runtime.texture(handle))
    }

    /// Returns the surface with this handle.
    pub(crate) fn surface(&mut self, runtime: &dyn Runtime, handle: u64) -> Option<Arc<Surface>> {
        cached(&mut self.surface, handle, |handle| runtime.surface(handle))
    }
}

/// Returns the object with this handle, from the cache if it is there.
fn cached<T>(
    cache: &mut Option<(u64, Arc<T>)>,
    handle: u64,
    find: impl Fn(u64) -> Option<Arc<T>>,
) -> Option<Arc<T>> {
    if let Some((cached_handle, object)) = cache
        && *cached_handle == handle
    {
        return Some(Arc::clone(object));
    }
    let object = find(handle)?;
    *cache = Some((handle, Arc::clone(&object)));
    Some(object)
}
