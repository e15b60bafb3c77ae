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
    /// [`Error::Missing`](crate::Error::Missing) before CUDA 13.2. [`Kernel::parameters`] works with older drivers.
    #[doc(alias = "cuKernelGetParamCount")]
    #[doc(alias = "cuFuncGetParamCount")]
    pub fn parameter_count(&self) -> Result<usize> {
        let (kernel, mut count) = (self.inner(), 0);
        let (raw, driver, place) = (kernel.raw.raw(), &kernel.driver, &raw mut count);
        let query = || match kernel.owner {
            // SAFETY: the kernel is live and belongs to a library, and `place` is valid for writes.
            Owner::Library(_) => unsafe { call!(driver, cuKernelGetParamCount(raw.cast(), place)) },
            // SAFETY: the function is live, and `place` is valid for writes.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncGetParamCount(raw, place))
            },
        };
        kernel
            .with_context(query)
            .map_err(|error| error.about(format!("kernel `{}`", kernel.name)))?;
        Ok(count)
    }
}

impl Inner {
    /// Returns an error unless the parameters have the declared sizes. Unknown parameters are not compared.
    #[inline]
    pub(super) fn check_signature(
        &self,
        declared: &[usize],
        types: fn() -> Vec<&'static str>,
    ) -> Result<()> {
        match self.parameters()? {
            Some(found) => compare(&self.name, &found, declared, types),
            None => Ok(()),
        }
    }

    /// Checks the signature like [`Inner::check_signature`] for a launch. Queries the parameters the first time only.
    pub(super) fn compare_parameters(
        &self,
        passed: &[usize],
        types: impl FnOnce() -> Vec<&'static str>,
    ) -> Result<()> {
        let found = match self.parameters.get() {
            Some(found) => found,
            None => {
                let found = self.parameters()?.map(Vec::into_boxed_slice);
                self.parameters.get_or_init(|| found)
            }
        };
        found
            .as_deref()
            .map_or(Ok(()), |found| compare(&self.name, found, passed, types))
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
        let query = || {
            let mut parameters = Vec::new();
            while let Some(parameter) = self.parameter(parameters.len())? {
                parameters.push(parameter);
            }
            Ok(Some(parameters))
        };
        self.with_context(query)
    }

    /// Runs `operation` with a context current if the kernel belongs to a library: the driver reports its parameters
    /// only then.
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
        let (mut offset, mut size) = (0, 0);
        let (raw, driver) = (self.raw.raw(), &self.driver);
        let (offset_place, size_place) = (&raw mut offset, &raw mut size);
        let result = match self.owner {
            // SAFETY: the kernel is live and belongs to a library, and both pointers are valid for writes.
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

/// Runs `operation` with any context current: the one that is current on this thread, or else a primary context. An
/// active primary context is preferred, since creating one is slow.
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
    found: &[KernelParameter],
    declared: &[usize],
    types: impl FnOnce() -> Vec<&'static str>,
) -> Result<()> {
    if found.len() != declared.len() {
        let (found, declared, types) = (found.len(), declared.len(), types().join(", "));
        return Err(refuse(&format!(
            "kernel `{name}` has {found} parameters, and `({types})` declares {declared}"
        )));
    }
    let Some(index) = found
        .iter()
        .zip(declared)
        .position(|(found, declared)| found.size != *declared)
    else {
        return Ok(());
    };
    let (found, declared) = (found[index].size, declared[index]);
    let ty = types().get(index).copied().unwrap_or_default();
    Err(refuse(&format!(
        "parameter {index} (counting from 0) of kernel `{name}` has {found} bytes, and `{ty}` has {declared}"
    )))
}

#[cold]
fn refuse(reason: &str) -> Error {
    Error::argument("kernel look-up", format!("signature mismatch ({reason})"))
}
