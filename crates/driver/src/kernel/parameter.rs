//! The parameters of a kernel in the loaded image.

use std::sync::OnceLock;

use curium_sys::{CUresult, Function};

use super::{Inner, Kernel, Owner};
use crate::base::current;
use crate::call;
use crate::{Driver, Error, KernelParameter, Result};

/// The parameters of a kernel, once queried; `None` if neither the driver nor PTX reports them.
pub(super) type Cached = OnceLock<Option<Box<[KernelParameter]>>>;

impl<S> Kernel<S> {
    /// Returns the parameters in order; `None` if neither the driver nor PTX reports them.
    ///
    /// CUDA: `cuKernelGetParamInfo` or `cuFuncGetParamInfo`, since 12.4.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuKernelGetParamInfo")]
    #[doc(alias = "cuFuncGetParamInfo")]
    #[inline]
    pub fn parameters(&self) -> Result<Option<Vec<KernelParameter>>> {
        self.inner().parameters()
    }

    /// Returns the number of parameters.
    ///
    /// CUDA: `cuKernelGetParamCount` or `cuFuncGetParamCount`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) before CUDA 13.2. [`Kernel::parameters`] works
    /// with older drivers.
    #[doc(alias = "cuKernelGetParamCount")]
    #[doc(alias = "cuFuncGetParamCount")]
    pub fn parameter_count(&self) -> Result<usize> {
        let kernel = self.inner();
        let mut count = 0;
        let raw = kernel.raw.raw();
        let driver = &kernel.driver;
        kernel
            .with_context(|| match kernel.owner {
                // SAFETY: the kernel is live and belongs to a library, and `count` is valid for
                // writes.
                Owner::Library(_) => unsafe {
                    call!(driver, cuKernelGetParamCount(raw.cast(), &raw mut count))
                },
                // SAFETY: the function is live, and `count` is valid for writes.
                Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                    call!(driver, cuFuncGetParamCount(raw, &raw mut count))
                },
            })
            .map_err(|error| error.about(format!("kernel `{}`", kernel.name)))?;
        Ok(count)
    }
}

impl Inner {
    /// Returns an error unless the parameters have the declared sizes. Unknown parameters are not
    /// compared.
    #[inline]
    pub(super) fn check_signature(
        &self,
        declared: &[usize],
        types: fn() -> Vec<&'static str>,
    ) -> Result<()> {
        match self.parameters()? {
            Some(actual) => compare(&self.name, &actual, declared, types),
            None => Ok(()),
        }
    }

    /// Checks the signature like [`Inner::check_signature`] for a launch. Queries the parameters
    /// the first time only.
    pub(super) fn compare_parameters(
        &self,
        passed: &[usize],
        types: impl FnOnce() -> Vec<&'static str>,
    ) -> Result<()> {
        let parameters = match self.parameters.get() {
            Some(parameters) => parameters,
            None => {
                let parameters = self.parameters()?.map(Vec::into_boxed_slice);
                self.parameters.get_or_init(|| parameters)
            }
        };
        match parameters {
            Some(parameters) => compare(&self.name, parameters, passed, types),
            None => Ok(()),
        }
    }

    fn parameters(&self) -> Result<Option<Vec<KernelParameter>>> {
        // A driver without libraries reports no parameters either.
        if self.is_unbound() || !self.driver.has(self.info_function()) {
            let entry = self
                .owner
                .entries()
                .iter()
                .find(|entry| *entry.name == *self.name);
            return Ok(entry
                .and_then(|entry| entry.parameters.as_deref())
                .map(Vec::from));
        }
        self.with_context(|| {
            let mut parameters = Vec::new();
            while let Some(parameter) = self.parameter(parameters.len())? {
                parameters.push(parameter);
            }
            Ok(Some(parameters))
        })
    }

    /// Runs `operation` with a context current if the kernel belongs to a library: the driver
    /// reports its parameters only then.
    fn with_context<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.owner {
            Owner::Library(_) => in_any_context(&self.driver, operation),
            Owner::Module(_) | Owner::LibraryIn(..) => operation(),
        }
    }

    #[inline]
    fn info_function(&self) -> Function {
        match self.owner {
            Owner::Library(_) => Function::cuKernelGetParamInfo,
            Owner::Module(_) | Owner::LibraryIn(..) => Function::cuFuncGetParamInfo,
        }
    }

    /// Returns the parameter at `index`; `None` past the last one.
    fn parameter(&self, index: usize) -> Result<Option<KernelParameter>> {
        let mut offset = 0;
        let mut size = 0;
        let raw = self.raw.raw();
        let driver = &self.driver;
        let offset_place = &raw mut offset;
        let size_place = &raw mut size;
        let result = match self.owner {
            // SAFETY: the kernel is live and belongs to a library, and both pointers are valid for
            // writes.
            Owner::Library(_) => unsafe {
                call!(
                    driver,
                    cuKernelGetParamInfo(raw.cast(), index, offset_place, size_place)
                )
            },
            // SAFETY: the function is live, and both pointers are valid for writes.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(
                    driver,
                    cuFuncGetParamInfo(raw, index, offset_place, size_place)
                )
            },
        };
        match result {
            Ok(()) => Ok(Some(KernelParameter { offset, size })),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => Ok(None),
            Err(error) => Err(error.about(format!("parameter {index} of kernel `{}`", self.name))),
        }
    }
}

/// Runs `operation` with any context current: the one that is current on this thread, or else a
/// primary context. An active primary context is preferred, since creating one is slow.
fn in_any_context<T>(driver: &Driver, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    if !current::get(driver)?.is_null() {
        return operation();
    }
    for device in driver.devices()? {
        if device.primary_state()?.is_active {
            return device.primary_context()?.entered(|_| operation());
        }
    }
    driver
        .device(0)?
        .primary_context()?
        .entered(|_| operation())
}

/// Returns an error if the parameters of a kernel differ from the declared ones.
fn compare(
    name: &str,
    actual: &[KernelParameter],
    declared: &[usize],
    types: impl FnOnce() -> Vec<&'static str>,
) -> Result<()> {
    if actual.len() != declared.len() {
        let actual = actual.len();
        let declared = declared.len();
        let types = types().join(", ");
        return Err(refuse(&format!(
            "kernel `{name}` has {actual} parameters, and `({types})` declares {declared}"
        )));
    }
    let Some(index) = actual
        .iter()
        .zip(declared)
        .position(|(actual, declared)| actual.size != *declared)
    else {
        return Ok(());
    };
    let actual = actual[index].size;
    let declared = declared[index];
    let ty = types().get(index).copied().unwrap_or_default();
    Err(refuse(&format!(
        "parameter {index} (counting from 0) of kernel `{name}` has {actual} bytes, and `{ty}` has {declared}"
    )))
}

#[cold]
fn refuse(reason: &str) -> Error {
    Error::argument("kernel look-up", format!("signature mismatch ({reason})"))
}
