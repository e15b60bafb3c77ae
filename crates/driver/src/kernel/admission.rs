//! The admission of launches. A launch gives its operation, and its kernel a handle, only after
//! this check.

use std::sync::Arc;

use curium_sys::CUfunction;

use super::Inner;
use crate::base::kept_value::Key;
use crate::hazard::Operation;
use crate::{Result, Stream};

/// A launch whose operation is not admitted yet.
pub(super) struct Launch<'a>(Operation<'a>);

/// A kernel that is admitted with the operation of its launch.
#[derive(Clone, Copy)]
pub(super) struct AdmittedKernel(CUfunction);

impl<'a> Launch<'a> {
    /// Begins a launch. Its operation is created in place, because launches are the most frequent
    /// operations.
    #[inline]
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self(Operation::new(stream, "Kernel::launch", None))
    }
}

impl AdmittedKernel {
    /// Returns the handle to launch.
    #[inline]
    pub(super) fn handle(self) -> CUfunction {
        self.0
    }
}

impl Inner {
    /// Admits a launch, and returns its operation. The handle of the kernel is that of the module
    /// in the stream's context if the driver has no libraries. The driver rejects a launch without
    /// threads, which is recognized by its error.
    #[inline]
    pub(super) fn admit<'l, 'a>(
        &self,
        launch: &'l mut Launch<'a>,
    ) -> Result<(&'l mut Operation<'a>, AdmittedKernel)> {
        let operation = &mut launch.0;
        let mut handle = self.raw.raw();
        if handle.is_null() || !operation.stream().executes_for(&self.driver) {
            handle = self.admit_slow(operation)?;
        }
        Ok((operation, AdmittedKernel(handle)))
    }

    /// Admits a launch if the stream belongs to another driver or is being captured (its graph
    /// keeps the kernel alive), if this thread is in a capture closure, or if the kernel has no
    /// handle.
    #[cold]
    #[inline(never)]
    fn admit_slow(&self, operation: &mut Operation<'_>) -> Result<CUfunction> {
        self.driver
            .check_same(operation.driver(), operation.name())?;
        operation.admit()?;
        let handle = if self.is_unbound() {
            self.function(operation.name(), operation.stream().context())?
        } else {
            self.raw.raw()
        };
        if let Some(scope) = operation.scope() {
            scope.keep(Key::Kernel(handle.addr()), || Arc::new(self.clone()));
        }
        Ok(handle)
    }
}
