//! Modules whose compiled code is cached on disk.

use std::sync::Arc;

use curium_sys::Function;

use super::Module;
use crate::disk_cache::compile::load_cached;
use crate::image::declared::Declared;
use crate::{Context, DiskCache, Image, JitOptions, Result};

impl Module {
    /// Loads PTX text as machine code: from `cache` if present, otherwise compiled and cached. See
    /// [`Image::compile_cached`] for the cache key.
    ///
    /// CUDA: `cuModuleLoadDataEx`; `cuLinkCreate_v2`, `cuLinkAddData_v2`, `cuLinkComplete` if the
    /// code is not cached.
    ///
    /// # Errors
    ///
    /// As for [`Module::from_ptx`] and [`Image::compile_cached`]. A failure of the cache is not an
    /// error.
    pub fn from_ptx_cached(
        context: &Context,
        ptx: &str,
        options: &JitOptions<'_>,
        cache: &DiskCache,
    ) -> Result<Self> {
        let image = Image::ptx("Module::from_ptx_cached", ptx)?;
        let mut module = load_cached(cache, context, &image, options, |code| {
            Self::from_image(context, code, &JitOptions::new())
        })?;
        if let Some(shared) = Arc::get_mut(&mut module.shared) {
            shared.declared = Declared::by(&image, context.driver(), Function::cuFuncGetParamInfo);
        }
        Ok(module)
    }
}
