//! Conversion of modules to and from raw handles.

use std::sync::Arc;

use curium_sys::CUmodule;

use super::{Module, Origin};
use crate::image::declared::Declared;
use crate::{Context, JitReport};

impl Module {
    /// Takes ownership of a module that other code loaded. It is unloaded with the last clone of
    /// the result.
    ///
    /// # Safety
    ///
    /// `raw` is a module in `context`, and no other code unloads it.
    #[must_use]
    pub unsafe fn from_raw(context: &Context, raw: CUmodule) -> Self {
        Self::new(
            raw,
            context,
            Origin::Loaded,
            Declared::default(),
            JitReport::default(),
        )
    }

    /// Borrows a module that other code owns.
    ///
    /// # Safety
    ///
    /// `raw` is a module in `context`, and stays loaded for as long as a clone of the result, or
    /// any object created from it, exists.
    #[must_use]
    pub unsafe fn borrow_raw(context: &Context, raw: CUmodule) -> Self {
        Self::new(
            raw,
            context,
            Origin::Borrowed,
            Declared::default(),
            JitReport::default(),
        )
    }

    /// Returns the raw handle and transfers ownership to the caller.
    ///
    /// # Errors
    ///
    /// Returns the module to the caller if clones of it, or kernels of it, still exist, or if it is
    /// borrowed.
    pub fn into_raw(self) -> Result<CUmodule, Self> {
        let mut module = Arc::try_unwrap(self.shared).map_err(|shared| Self { shared })?;
        if !matches!(module.origin, Origin::Loaded) {
            return Err(Self {
                shared: Arc::new(module),
            });
        }
        let raw = module.raw.raw();
        module.raw.clear();
        Ok(raw)
    }
}
