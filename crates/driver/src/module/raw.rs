//! Modules from and for other code.

use std::sync::Arc;

use curium_sys::CUmodule;

use super::{Module, Origin};
use crate::image::declared::Declared;
use crate::{Context, JitReport};

impl Module {
    /// Takes over a module that other code has loaded: it is unloaded with the last clone of the result.
    ///
    /// # Safety
    ///
    /// `raw` is a module in `context`, and nobody else unloads it.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUmodule) -> Self {
        Self::new(raw, context, Origin::Loaded, Declared::default(), JitReport::default())
    }

    /// Uses a module that other code has loaded and unloads.
    ///
    /// # Safety
    ///
    /// `raw` is a module in `context`, and stays one for as long as a clone of the result, or anything made from it, exists.
    #[must_use]
    #[inline]
    pub unsafe fn borrow_raw(context: &Context, raw: CUmodule) -> Self {
        Self::new(raw, context, Origin::Borrowed, Declared::default(), JitReport::default())
    }

    /// Passes the module to other code, which unloads it.
    ///
    /// # Errors
    ///
    /// Gives the module back if clones of it, or kernels of it, still exist, or if this handle does not unload it either.
    #[inline]
    pub fn into_raw(self) -> Result<CUmodule, Self> {
        let mut module = Arc::try_unwrap(self.shared).map_err(|shared| Self { shared })?;
        if !matches!(module.origin, Origin::Loaded) {
            return Err(Self { shared: Arc::new(module) });
        }
        let raw = module.raw.raw();
        module.raw.clear();
        Ok(raw)
    }
}
