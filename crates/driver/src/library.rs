//! A library: code that belongs to no context.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

use curium_sys::{CUkernel, CUlib_st, CUlibrary, CUresult};

use crate::call;
use crate::handle::Handle;
use crate::jit::{Log, checked_ptx};
use crate::kernel::{Kernel, Owner, c_name};
use crate::release::release;
use crate::signature::Signature;
use crate::{Driver, Error, Result};

/// Code that is loaded into each context when it is first used there. Clones are cheap and stand for the same library.
///
/// Needs a driver for CUDA 12.0. On an older one use a [`Module`](crate::Module).
#[derive(Clone)]
pub struct Library {
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUlib_st>,
    driver: Driver,
}

impl Library {
    /// Compiles and loads PTX text. A driver, a device, a context and a stream all name the driver.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0. A driver may tell what its compiler found only when a kernel is looked up, which is why
    /// `cuLibraryGetKernel` is called if the compiler wrote something.
    ///
    /// # Errors
    ///
    /// An argument error if the text is no PTX or has an interior NUL. What the driver's compiler wrote is part of its error.
    #[doc(alias = "cuLibraryLoadData")]
    pub fn from_ptx(driver: &impl AsRef<Driver>, ptx: &str) -> Result<Self> {
        let driver = driver.as_ref();
        let image = checked_ptx("Library::from_ptx", ptx)?;
        let mut log = Log::new();
        let mut raw = std::ptr::null_mut();
        let image = image.as_ptr().cast::<c_void>();
        let (count, options, values) = (log.len(), log.options(), log.values());
        let (no_options, no_values) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `image` is text that ends in NUL, and `log` holds `count` options with their values and outlives the call.
        let result = unsafe {
            call!(driver, cuLibraryLoadData(&raw mut raw, image, options, values, count, no_options, no_values, 0))
        };
        result.map_err(|error| log.explain(driver, ptx, error))?;
        let library = Self { shared: Arc::new(Shared { raw: Handle::new(raw), driver: driver.clone() }) };
        if !log.is_empty() {
            library.check_compiled().map_err(|error| log.explain(driver, ptx, error))?;
        }
        Ok(library)
    }

    /// The driver's handle of this library. It is valid for as long as a clone of this library, or a kernel of it, exists.
    #[must_use]
    pub fn as_raw(&self) -> CUlibrary {
        self.shared.raw.raw()
    }

    /// The kernel called `name`, with the parameters that `S` declares. See [`Kernel`] for how they are checked.
    ///
    /// If no context is current on this thread, a primary context is for the moment, since the driver tells parameters only then.
    ///
    /// CUDA: `cuLibraryGetKernel`, `cuKernelGetParamInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if there is no kernel of this name; an argument error if its parameters are not those of `S`.
    #[doc(alias = "cuLibraryGetKernel")]
    pub fn kernel<S: Signature>(&self, name: &str) -> Result<Kernel<S>> {
        let text = c_name("Library::kernel", name)?;
        let result = self.look_up(&text);
        let raw = result.map_err(|error| error.about(format!("kernel `{name}`")))?;
        Kernel::checked(raw.cast(), Owner::Library(self.clone()), name)
    }

    fn look_up(&self, name: &CStr) -> Result<CUkernel> {
        let mut raw: CUkernel = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, the library is live, and `name` ends in NUL.
        unsafe { call!(&self.shared.driver, cuLibraryGetKernel(&raw mut raw, self.as_raw(), name.as_ptr())) }?;
        Ok(raw)
    }

    /// What the driver's compiler found, by looking up a kernel that no code has.
    #[cold]
    fn check_compiled(&self) -> Result<()> {
        match self.look_up(c"?") {
            Err(error) if error.code() != Some(CUresult::CUDA_ERROR_NOT_FOUND) => Err(error),
            _ => Ok(()),
        }
    }

    /// Unloads the library, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuLibraryUnload`.
    ///
    /// # Errors
    ///
    /// Gives the library back if clones of it, or kernels of it, still exist, or if the driver refuses.
    #[doc(alias = "cuLibraryUnload")]
    pub fn close(self) -> Result<(), (Self, Error)> {
        let mut library = Arc::try_unwrap(self.shared)
            .map_err(|shared| (Self { shared }, Error::argument("Library::close", "the library is still in use")))?;
        match library.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err((Self { shared: Arc::new(library) }, error)),
        }
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: the library is live, nobody else has its handle, and it is forgotten once it is unloaded.
        unsafe { call!(&self.driver, cuLibraryUnload(self.raw.raw())) }?;
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Library {
    fn as_ref(&self) -> &Driver {
        &self.shared.driver
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Library({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
