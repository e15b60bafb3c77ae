//! Modules: code loaded into one context.

// In a group of its own, so that the page of the type begins with the constructors.
mod create;

mod cached;
mod loading;
mod raw;

use std::fmt;
use std::sync::Arc;

use curium_sys::{CUfunction, CUmod_st, CUmodule};

pub use self::loading::LoadingMode;
use crate::base::c_string::c_name;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::image::declared::Declared;
use crate::kernel::signature::Signature;
use crate::kernel::{Candidates, Owner, function_name};
use crate::{
    Context, Driver, Error, Global, JitReport, Kernel, Library, Result, Returned, Untyped,
};

/// Code loaded into one context. Clones are cheap and refer to the same module.
///
/// Modules work with every driver. A [`Library`], which requires a driver for CUDA 12.0, is not
/// bound to a context.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_driver::{LaunchConfig, Module};
///
/// # const PTX: &str = ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";
/// let context = driver.device(0)?.primary_context()?;
/// let module = Module::from_ptx(&context, PTX)?;
/// let nothing = module.kernel::<()>("nothing")?;
/// let stream = context.stream()?;
/// // SAFETY: the kernel accesses no memory.
/// unsafe { nothing.launch(&stream, LaunchConfig::new(1, 32), ()) }?;
/// stream.synchronize()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Module {
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUmod_st>,
    context: Context,
    origin: Origin,
    declared: Declared,
    report: JitReport,
}

/// The origin of a module, which determines who unloads it.
enum Origin {
    /// Unloaded by this handle.
    Loaded,
    /// Unloaded by other code.
    Borrowed,
    /// Unloaded with its library.
    Library(#[expect(dead_code, reason = "the library is kept loaded")] Library),
}

impl Module {
    /// Returns the context that this module was loaded into.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the raw handle. It is valid for as long as a clone of this module, or a kernel of
    /// it, exists.
    #[must_use]
    pub fn as_raw(&self) -> CUmodule {
        self.shared.raw.raw()
    }

    /// Returns the log of the JIT compiler for this module.
    #[must_use]
    pub fn report(&self) -> &JitReport {
        &self.shared.report
    }

    /// Returns the kernel `name`, with the parameters that `S` declares. See [`Kernel`] for how
    /// they are checked.
    ///
    /// CUDA: `cuModuleGetFunction`, `cuFuncGetParamInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if the kernel does not exist; an argument
    /// error if its parameters do not match `S`.
    #[doc(alias = "cuModuleGetFunction")]
    pub fn kernel<S: Signature>(&self, name: &str) -> Result<Kernel<S>> {
        self.untyped_kernel(name)
            .map_err(|error| error.during("Module::kernel"))?
            .typed()
    }

    /// Returns the kernel `name` without a signature.
    ///
    /// CUDA: `cuModuleGetFunction`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if the kernel does not exist.
    pub fn untyped_kernel(&self, name: &str) -> Result<Kernel<Untyped>> {
        let text = c_name("Module::untyped_kernel", name)?;
        let mut raw: CUfunction = std::ptr::null_mut();
        let driver = self.shared.context.driver();
        // SAFETY: `raw` is valid for writes, the module is live, and `text` is NUL-terminated.
        let result = unsafe {
            call!(driver, cuModuleGetFunction(&raw mut raw, self.as_raw(), text.as_ptr()) creates raw)
        };
        result.map_err(|error| {
            Candidates::kernels(self.kernel_names(), self.declared()).explain(error, name)
        })?;
        Ok(Kernel::untyped(raw, Owner::Module(self.clone()), name))
    }

    /// Returns every kernel of the module.
    ///
    /// CUDA: `cuModuleGetFunctionCount`, `cuModuleEnumerateFunctions`, `cuFuncGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuModuleEnumerateFunctions")]
    #[doc(alias = "cuModuleGetFunctionCount")]
    pub fn kernels(&self) -> Result<Vec<Kernel<Untyped>>> {
        let driver = self.shared.context.driver();
        let mut kernels = Vec::new();
        for raw in self.functions()? {
            let name = function_name(driver, raw)?;
            kernels.push(Kernel::untyped(raw, Owner::Module(self.clone()), &name));
        }
        Ok(kernels)
    }

    /// Returns the names of all kernels, in no particular order.
    ///
    /// CUDA: `cuModuleGetFunctionCount`, `cuModuleEnumerateFunctions`, `cuFuncGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        let driver = self.shared.context.driver();
        self.functions()?
            .into_iter()
            .map(|raw| function_name(driver, raw))
            .collect()
    }

    /// Returns the global variable `name`, as one or more elements of `T`.
    ///
    /// CUDA: `cuModuleGetGlobal_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if the variable does not exist; an argument error if its size is not
    /// a multiple of the size of `T`.
    #[doc(alias = "cuModuleGetGlobal")]
    #[doc(alias = "cudaGetSymbolAddress")]
    pub fn global<T>(&self, name: &str) -> Result<Global<T>> {
        const OPERATION: &str = "Module::global";
        let text = c_name(OPERATION, name)?;
        let mut address = 0;
        let mut bytes = 0;
        let driver = self.shared.context.driver();
        let module = self.as_raw();
        // SAFETY: both pointers are valid for writes, the module is live, and `text` is
        // NUL-terminated.
        let result = unsafe {
            call!(
                driver,
                cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, text.as_ptr())
            )
        };
        result.map_err(|error| Candidates::variables(self.declared()).explain(error, name))?;
        Global::checked(OPERATION, Owner::Module(self.clone()), name, address, bytes)
    }

    /// Unloads the module and returns any error, instead of only reporting it as [`Drop`] does.
    /// Waits for the device's work.
    ///
    /// CUDA: `cuModuleUnload`.
    ///
    /// # Errors
    ///
    /// Returns the module to the caller if clones of it, or kernels of it, still exist, or if the
    /// driver call fails.
    #[doc(alias = "cuModuleUnload")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut module = Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument("Module::close", "the module is still in use"),
            )
        })?;
        match module.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(
                Self {
                    shared: Arc::new(module),
                },
                error,
            )),
        }
    }

    /// Returns the module of a library in `context`.
    pub(crate) fn from_library(raw: CUmodule, context: &Context, library: &Library) -> Self {
        let declared = library.declared().clone();
        Self::new(
            raw,
            context,
            Origin::Library(library.clone()),
            declared,
            JitReport::default(),
        )
    }

    /// Returns the declarations of the image that the driver cannot report.
    pub(crate) fn declared(&self) -> &Declared {
        &self.shared.declared
    }

    fn new(
        raw: CUmodule,
        context: &Context,
        origin: Origin,
        declared: Declared,
        report: JitReport,
    ) -> Self {
        let shared = Shared {
            raw: Handle::new(raw),
            context: context.clone(),
            origin,
            declared,
            report,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn functions(&self) -> Result<Vec<CUfunction>> {
        let driver = self.shared.context.driver();
        let module = self.as_raw();
        let mut count = 0;
        // SAFETY: `count` is valid for writes, and the module is live.
        unsafe { call!(driver, cuModuleGetFunctionCount(&raw mut count, module)) }?;
        let mut functions: Vec<CUfunction> = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: `functions` has room for `count` handles, and the module is live.
        unsafe {
            call!(
                driver,
                cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, module)
            )
        }?;
        Ok(functions)
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        if let Origin::Loaded = self.origin {
            self.context.entered(|driver| {
                // SAFETY: the module is live, no other code has its handle, and it is not used
                // again once it is unloaded.
                unsafe { call!(driver, cuModuleUnload(self.raw.raw())) }.map_err(|error| {
                    error.about_handle("module", self.raw.raw(), self.context.device().as_raw())
                })
            })?;
        }
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
