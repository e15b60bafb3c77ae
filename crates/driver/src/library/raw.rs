//! Conversion of libraries to and from raw handles.

use std::sync::Arc;

use curium_sys::CUlibrary;

use super::{Library, Shared};
use crate::base::handle::Handle;
use crate::image::declared::Declared;
use crate::{Driver, JitReport};

impl Library {
    /// Takes ownership of a library that other code loaded. It is unloaded with the last clone of
    /// the result.
    ///
    /// # Safety
    ///
    /// `raw` is a library of this driver, and no other code unloads it.
    #[must_use]
    pub unsafe fn from_raw(driver: &impl AsRef<Driver>, raw: CUlibrary) -> Self {
        Self::foreign(driver.as_ref(), raw, false)
    }

    /// Borrows a library that other code owns.
    ///
    /// # Safety
    ///
    /// `raw` is a library of this driver, and stays loaded for as long as a clone of the result, or
    /// any object created from it, exists.
    #[must_use]
    pub unsafe fn borrow_raw(driver: &impl AsRef<Driver>, raw: CUlibrary) -> Self {
        Self::foreign(driver.as_ref(), raw, true)
    }

    /// Returns the raw handle and transfers ownership to the caller. Memory that the driver may
    /// still use is leaked.
    ///
    /// # Errors
    ///
    /// Returns the library to the caller if clones of it, or kernels of it, still exist, if it is
    /// borrowed, or if it has no handle because the driver is older than CUDA 12.0.
    pub fn into_raw(self) -> Result<CUlibrary, Self> {
        let mut library = Arc::try_unwrap(self.shared).map_err(|shared| Self { shared })?;
        if library.is_borrowed || library.modules.is_some() {
            return Err(Self {
                shared: Arc::new(library),
            });
        }
        let raw = library.raw.raw();
        library.raw.clear();
        std::mem::forget((library._compilation.take(), library._image.take()));
        Ok(raw)
    }

    fn foreign(driver: &Driver, raw: CUlibrary, is_borrowed: bool) -> Self {
        let shared = Shared {
            raw: Handle::new(raw),
            driver: driver.clone(),
            is_borrowed,
            declared: Declared::default(),
            report: JitReport::default(),
            _compilation: None,
            _image: None,
            modules: None,
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}
