//! A module: code loaded into one context.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use curium_sys::{CUfunction, CUmod_st, CUmodule};

use crate::call;
use crate::handle::Handle;
use crate::jit::{Log, checked_ptx};
use crate::kernel::{Kernel, Owner, c_name};
use crate::release::release;
use crate::signature::Signature;
use crate::{Context, Driver, Error, Result};

/// Code that was loaded into one context. Clones are cheap and stand for the same module.
///
/// Modules work with every driver. A [`Library`](crate::Library), which needs a driver for CUDA 12.0, belongs to no context.
#[derive(Clone)]
pub struct Module {
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUmod_st>,
    context: Context,
}

impl Module {
    /// Compiles and loads PTX text into `context`.
    ///
    /// CUDA: `cuModuleLoadDataEx`.
    ///
    /// # Errors
    ///
    /// An argument error if the text is no PTX or has an interior NUL. What the driver's compiler wrote is part of its error.
    #[doc(alias = "cuModuleLoadData")]
    #[doc(alias = "cuModuleLoadDataEx")]
    pub fn from_ptx(context: &Context, ptx: &str) -> Result<Self> {
        let image = checked_ptx("Module::from_ptx", ptx)?;
        let mut log = Log::new();
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            let image = image.as_ptr().cast::<c_void>();
            let (count, options, values) = (log.len(), log.options(), log.values());
            // SAFETY: `image` is text that ends in NUL, `log` holds `count` options with their values and outlives the call, and the
            // context is current.
            let result = unsafe { call!(driver, cuModuleLoadDataEx(&raw mut raw, image, count, options, values)) };
            result.map_err(|error| log.explain(driver, ptx, error))?;
            Ok(raw)
        })?;
        Ok(Self { shared: Arc::new(Shared { raw: Handle::new(raw), context: context.clone() }) })
    }

    /// The context that this module was loaded into.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// The driver's handle of this module. It is valid for as long as a clone of this module, or a kernel of it, exists.
    #[must_use]
    pub fn as_raw(&self) -> CUmodule {
        self.shared.raw.raw()
    }

    /// The kernel called `name`, with the parameters that `S` declares. See [`Kernel`] for how they are checked.
    ///
    /// CUDA: `cuModuleGetFunction`, `cuFuncGetParamInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if there is no kernel of this name; an argument error if its parameters are not those of `S`.
    #[doc(alias = "cuModuleGetFunction")]
    pub fn kernel<S: Signature>(&self, name: &str) -> Result<Kernel<S>> {
        let text = c_name("Module::kernel", name)?;
        let mut raw: CUfunction = std::ptr::null_mut();
        let driver = self.shared.context.driver();
        // SAFETY: `raw` is a valid place for the answer, the module is live, and `text` ends in NUL.
        let result = unsafe { call!(driver, cuModuleGetFunction(&raw mut raw, self.as_raw(), text.as_ptr())) };
        result.map_err(|error| error.about(format!("kernel `{name}`")))?;
        Kernel::checked(raw, Owner::Module(self.clone()), name)
    }

    /// Unloads the module, which [`Drop`] does as well, and says whether it succeeded. Waits for the work of the device.
    ///
    /// CUDA: `cuModuleUnload`.
    ///
    /// # Errors
    ///
    /// Gives the module back if clones of it, or kernels of it, still exist, or if the driver refuses.
    #[doc(alias = "cuModuleUnload")]
    pub fn close(self) -> Result<(), (Self, Error)> {
        let mut module = Arc::try_unwrap(self.shared)
            .map_err(|shared| (Self { shared }, Error::argument("Module::close", "the module is still in use")))?;
        match module.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err((Self { shared: Arc::new(module) }, error)),
        }
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the module is live, nobody else has its handle, and it is forgotten once it is unloaded.
            unsafe { call!(driver, cuModuleUnload(self.raw.raw())) }
        })?;
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Module {
    fn as_ref(&self) -> &Driver {
        self.shared.context.driver()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Module({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
