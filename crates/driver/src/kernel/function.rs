//! Kernels bound to one context.

use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUcontext, CUfunction, CUfunctionLoadingState, CUkernel, CUlibrary, CUmodule};

use super::look_up::{function_name, kernel_name};
use super::{Inner, Kernel, Owner, Untyped};
use crate::base::handle::Handle;
use crate::call;
use crate::{Context, Driver, Error, Library, Module, Result};

/// The load state of a kernel's code.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LoadState {
    /// Not loaded yet; loaded on first use.
    Unloaded,
    /// Loaded.
    Loaded,
    /// A state defined by a newer driver.
    Unknown(u32),
}

impl<S> Kernel<S> {
    /// Returns the kernel bound to `context`. Loads the code into the context if necessary.
    ///
    /// CUDA: `cuKernelGetFunction`, and `cuModuleGetFunction` before 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the kernel belongs to a module of another context, or is already bound
    /// to another context.
    #[doc(alias = "cuKernelGetFunction")]
    pub fn in_context(&self, context: &Context) -> Result<Self> {
        Ok(Self {
            inner: self.inner.bound_to("Kernel::in_context", context)?,
            _signature: PhantomData,
        })
    }

    /// Returns the load state of the kernel's code in `context`.
    ///
    /// CUDA: `cuFuncIsLoaded`, since 12.4.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::in_context`].
    #[doc(alias = "cuFuncIsLoaded")]
    pub fn load_state(&self, context: &Context) -> Result<LoadState> {
        let function = self.inner.function("Kernel::load_state", context)?;
        let mut state = CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED;
        context.entered(|driver| {
            // SAFETY: `state` is valid for writes, and the function is live.
            unsafe { call!(driver, cuFuncIsLoaded(&raw mut state, function)) }
        })?;
        Ok(match state {
            CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED => LoadState::Unloaded,
            CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED => LoadState::Loaded,
            CUfunctionLoadingState(other) => LoadState::Unknown(other),
        })
    }

    /// Loads the code of the kernel into `context` now instead of at its first launch.
    ///
    /// CUDA: `cuFuncLoad`, since 12.4.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::in_context`]; `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory for
    /// the code.
    #[doc(alias = "cuFuncLoad")]
    pub fn load(&self, context: &Context) -> Result<()> {
        let function = self.inner.function("Kernel::load", context)?;
        context.entered(|driver| {
            // SAFETY: the function is live and belongs to the current context.
            unsafe { call!(driver, cuFuncLoad(function)) }
        })
    }
}

impl Kernel<Untyped> {
    /// Borrows a kernel that other code owns. Its name is queried from the driver.
    ///
    /// CUDA: `cuKernelGetLibrary`, since 12.5, and `cuKernelGetName`.
    ///
    /// # Safety
    ///
    /// `raw` is a kernel of a library of this driver, and stays valid for as long as the result, or
    /// any object created from it, exists.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuKernelGetLibrary")]
    #[doc(alias = "cuKernelGetName")]
    pub unsafe fn borrow_raw_kernel(driver: &impl AsRef<Driver>, raw: CUkernel) -> Result<Self> {
        let driver = driver.as_ref();
        let name = kernel_name(driver, raw)?;
        let mut library: CUlibrary = std::ptr::null_mut();
        // SAFETY: `library` is valid for writes, and the caller is responsible for the kernel.
        unsafe { call!(driver, cuKernelGetLibrary(&raw mut library, raw)) }?;
        // SAFETY: the caller guarantees that the kernel stays valid, which implies its library.
        let library = unsafe { Library::borrow_raw(driver, library) };
        Ok(Self::untyped(raw.cast(), Owner::Library(library), &name))
    }

    /// Borrows a function that other code owns. Its name is queried from the driver.
    ///
    /// CUDA: `cuFuncGetModule` and, since 12.3, `cuFuncGetName`.
    ///
    /// # Safety
    ///
    /// `raw` is a function of a module in `context`, and stays valid for as long as the result, or
    /// any object created from it, exists.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuFuncGetModule")]
    #[doc(alias = "cuFuncGetName")]
    pub unsafe fn borrow_raw_function(context: &Context, raw: CUfunction) -> Result<Self> {
        let driver = context.driver();
        let name = function_name(driver, raw)?;
        let mut module: CUmodule = std::ptr::null_mut();
        // SAFETY: `module` is valid for writes, and the caller is responsible for the function.
        unsafe { call!(driver, cuFuncGetModule(&raw mut module, raw)) }?;
        // SAFETY: the caller guarantees that the function stays valid, which implies its module.
        let module = unsafe { Module::borrow_raw(context, module) };
        Ok(Self::untyped(raw, Owner::Module(module), &name))
    }
}

impl Inner {
    /// Returns the kernel bound to `context`.
    pub(crate) fn bound_to(&self, operation: &'static str, context: &Context) -> Result<Self> {
        let raw = self.function(operation, context)?;
        let owner = match &self.owner {
            Owner::Library(library) | Owner::LibraryIn(library, _) => {
                Owner::LibraryIn(library.clone(), context.clone())
            }
            Owner::Module(module) => Owner::Module(module.clone()),
        };
        Ok(Self {
            raw: Handle::new(raw),
            owner,
            // A look-up of its own, which `is_same_look_up` tells from the kernel of the library.
            name: Arc::from(&*self.name),
            ..self.clone()
        })
    }

    /// Returns the kernel's function in `context`.
    pub(super) fn function(
        &self,
        operation: &'static str,
        context: &Context,
    ) -> Result<CUfunction> {
        self.check_context(operation, context)?;
        match self.owner {
            Owner::Module(_) | Owner::LibraryIn(..) => Ok(self.raw.raw()),
            Owner::Library(ref library) if library.is_module_based() => {
                let kernel = library.module(context)?.untyped_kernel(&self.name)?;
                Ok(kernel.as_raw())
            }
            Owner::Library(_) => context.entered(|driver| {
                let mut function: CUfunction = std::ptr::null_mut();
                // SAFETY: `function` is valid for writes, the kernel is live and belongs to a
                // library, and the context is current.
                let result = unsafe {
                    call!(driver, cuKernelGetFunction(&raw mut function, self.raw.raw().cast()) creates function)
                };
                result.map_err(|error| error.about(format!("kernel `{}`", self.name)))?;
                Ok(function)
            }),
        }
    }

    /// Returns an error if the kernel is bound to another context than `context`.
    pub(super) fn check_context(&self, operation: &'static str, context: &Context) -> Result<()> {
        self.driver.check_same(context.driver(), operation)?;
        match self.context() {
            Some(own) if own != context.as_raw() => Err(Error::argument(
                operation,
                format!(
                    "context mismatch (kernel `{}` belongs to another context)",
                    self.name
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the context that the kernel is bound to, if any.
    fn context(&self) -> Option<CUcontext> {
        match &self.owner {
            Owner::Library(_) => None,
            Owner::Module(module) => Some(module.context().as_raw()),
            Owner::LibraryIn(_, context) => Some(context.as_raw()),
        }
    }
}
