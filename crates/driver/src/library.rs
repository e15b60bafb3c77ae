//! Libraries: code that is not bound to a context.

mod cached;
mod context_modules;
mod load;
mod raw;

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

use curium_sys::{CUkernel, CUlib_st, CUlibrary, CUmodule};

use self::context_modules::ContextModules;
use crate::base::c_string::c_name;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::image::declared::Declared;
use crate::jit::Compilation;
use crate::kernel::signature::Signature;
use crate::kernel::{Candidates, Owner, kernel_name};
use crate::{
    Context, Driver, Error, Global, Image, JitReport, Kernel, Module, Result, Returned, Untyped,
};

/// Code that the driver loads into each context on first use. Clones are cheap and refer to the
/// same library.
///
/// Drivers before CUDA 12.0 have no libraries. There, the code is loaded as a [`Module`] of each
/// context on first use, with the following differences:
///
/// - Loading needs a context: a primary context that is active, or else that of the first device
///   that can run the code.
/// - The library keeps the contexts that have used it.
/// - Each launch looks up the kernel in the context of its stream, which is one more driver call.
///   [`Kernel::in_context`] avoids it.
/// - [`Library::managed`] and [`Library::unified_function`] return [`Error::Missing`], and the raw
///   handles are null.
#[derive(Clone)]
pub struct Library {
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUlib_st>,
    driver: Driver,
    is_borrowed: bool,
    declared: Declared,
    report: JitReport,
    /// The driver may compile on first use, so the buffers that it may then read and write are
    /// kept.
    _compilation: Option<Compilation>,
    _image: Option<Image<'static>>,
    /// The code on a driver without libraries; the handle is then null.
    modules: Option<ContextModules>,
}

impl Library {
    /// Returns the raw handle. It is valid for as long as a clone of this library, or a kernel of
    /// it, exists. It is null on drivers before CUDA 12.0.
    #[must_use]
    pub fn as_raw(&self) -> CUlibrary {
        self.shared.raw.raw()
    }

    /// Returns the JIT compiler's logs of loading the library. If the driver defers compilation to
    /// the first use, they are empty.
    #[must_use]
    pub fn report(&self) -> &JitReport {
        &self.shared.report
    }

    /// Returns the kernel `name`, with the parameters that `S` declares. See [`Kernel`] for how
    /// they are checked.
    ///
    /// If no context is current on this thread, a primary context is made current for the duration
    /// of the call, since the driver reports parameters only then.
    ///
    /// CUDA: `cuLibraryGetKernel`, `cuKernelGetParamInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if the kernel does not exist; an argument
    /// error if its parameters do not match `S`.
    #[doc(alias = "cuLibraryGetKernel")]
    #[doc(alias = "cudaLibraryGetKernel")]
    pub fn kernel<S: Signature>(&self, name: &str) -> Result<Kernel<S>> {
        self.untyped_kernel(name)
            .map_err(|error| error.during("Library::kernel"))?
            .typed()
    }

    /// Returns the kernel `name` without a signature.
    ///
    /// CUDA: `cuLibraryGetKernel`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if the kernel does not exist.
    pub fn untyped_kernel(&self, name: &str) -> Result<Kernel<Untyped>> {
        if let Some(module) = self.shared.modules.as_ref().and_then(ContextModules::any) {
            module
                .untyped_kernel(name)
                .map_err(|error| error.during("Library::untyped_kernel"))?;
            return Ok(Kernel::untyped(
                std::ptr::null_mut(),
                Owner::Library(self.clone()),
                name,
            ));
        }
        let text = c_name("Library::untyped_kernel", name)?;
        let explain =
            |error| Candidates::kernels(self.kernel_names(), self.declared()).explain(error, name);
        let raw = self.look_up(&text).map_err(explain)?;
        Ok(Kernel::untyped(
            raw.cast(),
            Owner::Library(self.clone()),
            name,
        ))
    }

    /// Returns every kernel of the library.
    ///
    /// CUDA: `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`, `cuKernelGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuLibraryEnumerateKernels")]
    #[doc(alias = "cudaLibraryEnumerateKernels")]
    #[doc(alias = "cuLibraryGetKernelCount")]
    #[doc(alias = "cudaLibraryGetKernelCount")]
    pub fn kernels(&self) -> Result<Vec<Kernel<Untyped>>> {
        let mut kernels = Vec::new();
        for raw in self.raw_kernels()? {
            let name = kernel_name(&self.shared.driver, raw)?;
            let owner = Owner::Library(self.clone());
            kernels.push(Kernel::untyped(raw.cast(), owner, &name));
        }
        Ok(kernels)
    }

    /// Returns the names of all kernels, in no particular order.
    ///
    /// CUDA: `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`, `cuKernelGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        self.raw_kernels()?
            .into_iter()
            .map(|raw| kernel_name(&self.shared.driver, raw))
            .collect()
    }

    /// Returns the global variable `name` in `context`, as one or more elements of `T`.
    ///
    /// CUDA: `cuLibraryGetGlobal`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if the variable does not exist; an argument error if its size is not
    /// a multiple of the size of `T`.
    #[doc(alias = "cuLibraryGetGlobal")]
    #[doc(alias = "cudaLibraryGetGlobal")]
    pub fn global<T>(&self, context: &Context, name: &str) -> Result<Global<T>> {
        const OPERATION: &str = "Library::global";
        self.shared.driver.check_same(context.driver(), OPERATION)?;
        if self.shared.modules.is_some() {
            return self
                .module(context)?
                .global(name)
                .map_err(|error| error.during(OPERATION));
        }
        let text = c_name(OPERATION, name)?;
        let (address, bytes) = context.entered(|driver| {
            let mut address = 0;
            let mut bytes = 0;
            let library = self.as_raw();
            // SAFETY: both pointers are valid for writes, the library is live, a context of its
            // driver is current, and `text` is NUL-terminated.
            let result = unsafe {
                call!(
                    driver,
                    cuLibraryGetGlobal(&raw mut address, &raw mut bytes, library, text.as_ptr())
                )
            };
            result.map_err(|error| Candidates::variables(self.declared()).explain(error, name))?;
            Ok((address, bytes))
        })?;
        Global::checked(
            OPERATION,
            Owner::LibraryIn(self.clone(), context.clone()),
            name,
            address,
            bytes,
        )
    }

    /// Returns the managed variable `name`, which all contexts share, as one or more elements of
    /// `T`.
    ///
    /// CUDA: `cuLibraryGetManaged`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if the managed variable does not exist; an argument error if its size
    /// is not a multiple of the size of `T`.
    #[doc(alias = "cuLibraryGetManaged")]
    #[doc(alias = "cudaLibraryGetManaged")]
    pub fn managed<T>(&self, name: &str) -> Result<Global<T>> {
        const OPERATION: &str = "Library::managed";
        let text = c_name(OPERATION, name)?;
        let mut address = 0;
        let mut bytes = 0;
        let driver = &self.shared.driver;
        let library = self.as_raw();
        // SAFETY: both pointers are valid for writes, the library is live, and `text` is
        // NUL-terminated.
        let result = unsafe {
            call!(
                driver,
                cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, text.as_ptr())
            )
        };
        result
            .map_err(|error| Candidates::managed_variables(self.declared()).explain(error, name))?;
        Global::checked(
            OPERATION,
            Owner::Library(self.clone()),
            name,
            address,
            bytes,
        )
    }

    /// Returns the address of the unified function `name`, which is valid on the host and on every
    /// device.
    ///
    /// CUDA: `cuLibraryGetUnifiedFunction`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_NOT_FOUND` if the function does not exist,
    /// depending on the driver; `CUDA_ERROR_NOT_SUPPORTED` if a device does not support unified
    /// function pointers.
    #[doc(alias = "cuLibraryGetUnifiedFunction")]
    #[doc(alias = "cudaLibraryGetUnifiedFunction")]
    pub fn unified_function(&self, name: &str) -> Result<*mut c_void> {
        let text = c_name("Library::unified_function", name)?;
        let mut function = std::ptr::null_mut();
        let driver = &self.shared.driver;
        let library = self.as_raw();
        // SAFETY: `function` is valid for writes, the library is live, and `text` is
        // NUL-terminated.
        let result = unsafe {
            call!(driver, cuLibraryGetUnifiedFunction(&raw mut function, library, text.as_ptr()) creates function)
        };
        result.map_err(|error| error.about(format!("unified function `{name}`")))?;
        Ok(function)
    }

    /// Returns the library's code as a module of `context`. Loads it into the context if necessary.
    /// The module keeps the library alive.
    ///
    /// CUDA: `cuLibraryGetModule`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuLibraryGetModule")]
    pub fn module(&self, context: &Context) -> Result<Module> {
        self.shared
            .driver
            .check_same(context.driver(), "Library::module")?;
        if let Some(modules) = &self.shared.modules {
            return modules.in_context(context);
        }
        let raw = context.entered(|driver| {
            let mut raw: CUmodule = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, the library is live, and a context of its driver
            // is current.
            unsafe { call!(driver, cuLibraryGetModule(&raw mut raw, self.as_raw()) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Module::from_library(raw, context, self))
    }

    /// Unloads the library and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuLibraryUnload`.
    ///
    /// # Errors
    ///
    /// Returns the library to the caller if clones of it, or kernels of it, still exist, or if the
    /// driver call fails.
    #[doc(alias = "cuLibraryUnload")]
    #[doc(alias = "cudaLibraryUnload")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut library = Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument("Library::close", "the library is still in use"),
            )
        })?;
        match library.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(
                Self {
                    shared: Arc::new(library),
                },
                error,
            )),
        }
    }

    /// Returns `true` if the driver has no libraries, so that kernels of this one must be bound to
    /// a context.
    #[inline]
    pub(crate) fn is_module_based(&self) -> bool {
        self.shared.modules.is_some()
    }

    /// Returns the declarations of the image that the driver cannot report.
    pub(crate) fn declared(&self) -> &Declared {
        &self.shared.declared
    }

    fn look_up(&self, name: &CStr) -> Result<CUkernel> {
        let mut raw: CUkernel = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes, the library is live, and `name` is NUL-terminated.
        unsafe {
            call!(&self.shared.driver, cuLibraryGetKernel(&raw mut raw, self.as_raw(), name.as_ptr()) creates raw)
        }?;
        Ok(raw)
    }

    fn raw_kernels(&self) -> Result<Vec<CUkernel>> {
        let driver = &self.shared.driver;
        let library = self.as_raw();
        let mut count = 0;
        // SAFETY: `count` is valid for writes, and the library is live.
        unsafe { call!(driver, cuLibraryGetKernelCount(&raw mut count, library)) }?;
        let mut kernels: Vec<CUkernel> = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: `kernels` has room for `count` handles, and the library is live.
        unsafe {
            call!(
                driver,
                cuLibraryEnumerateKernels(kernels.as_mut_ptr(), count, library)
            )
        }?;
        Ok(kernels)
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        // Each module unloads itself.
        if self.modules.take().is_none() && !self.is_borrowed {
            // SAFETY: the library is live, no other code has its handle, and it is not used again
            // once it is unloaded.
            unsafe { call!(&self.driver, cuLibraryUnload(self.raw.raw())) }
                .map_err(|error| error.about(format!("library {:?}", self.raw)))?;
        }
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
        if !self.raw.is_cleared() || self.modules.is_some() {
            release(|| self.destroy());
        }
    }
}
