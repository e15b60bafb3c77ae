//! Libraries whose compiled code is cached on disk.

use std::sync::Arc;

use curium_sys::Function;

use super::Library;
use crate::disk_cache::compile::load_cached;
use crate::image::declared::Declared;
use crate::{Context, DiskCache, Image, JitOptions, Result};

impl Library {
    /// Loads PTX text as machine code for the device of `context`: from `cache` if present,
    /// otherwise compiled and cached. The library can be used on devices of this architecture only.
    /// See [`Image::compile_cached`] for the cache key.
    ///
    /// CUDA: `cuLibraryLoadData`, and `cuModuleLoadDataEx` before 12.0; `cuLinkCreate_v2`,
    /// `cuLinkAddData_v2`, `cuLinkComplete` if the code is not cached.
    ///
    /// # Errors
    ///
    /// As for [`Library::from_ptx`] and [`Image::compile_cached`]. A failure of the cache is not an
    /// error.
    pub fn from_ptx_cached(
        context: &Context,
        ptx: &str,
        options: &JitOptions<'_>,
        cache: &DiskCache,
    ) -> Result<Self> {
        let image = Image::ptx("Library::from_ptx_cached", ptx)?;
        let mut library = load_cached(cache, context, &image, options, |code| {
            Self::load(
                context.driver(),
                Some(context),
                code,
                &JitOptions::new(),
                &mut [],
            )
        })?;
        if let Some(shared) = Arc::get_mut(&mut library.shared) {
            shared.declared = Declared::by(&image, &shared.driver, Function::cuKernelGetParamInfo);
        }
        Ok(library)
    }
}
