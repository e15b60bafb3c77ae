//! Enqueuing of kernels.

use std::ffi::c_void;

use curium_sys::CUlaunchConfig;

use super::Inner;
use super::admission::AdmittedKernel;
use crate::Result;
use crate::call;
use crate::hazard::Operation;
use crate::kernel::launch::{self, LaunchAttributes, LaunchConfig};

impl Inner {
    /// Enqueues a launch.
    ///
    /// # Safety
    ///
    /// `kernel` was admitted with this operation, `values` holds the address of a value for each
    /// parameter, and the kernel may run with them.
    #[inline]
    pub(super) unsafe fn enqueue(
        &self,
        kernel: AdmittedKernel,
        operation: &Operation<'_>,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = config;
        let extra = std::ptr::null_mut();
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is
        // responsible for `values`.
        let result = unsafe {
            call!(
                operation.driver(),
                cuLaunchKernel(
                    kernel.handle(),
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    *shared_bytes,
                    operation.raw_stream(),
                    values,
                    extra
                )
            )
        };
        result.map_err(|error| launch::explain(error, self, operation.stream().device(), config))
    }

    /// Enqueues a launch with attributes.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`], and the kernel may run with these attributes.
    #[inline]
    pub(super) unsafe fn enqueue_with(
        &self,
        kernel: AdmittedKernel,
        operation: &Operation<'_>,
        config: &LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        values: *mut *mut c_void,
    ) -> Result<()> {
        if attributes.is_empty() {
            // SAFETY: the caller is responsible for `values` and the kernel.
            return unsafe { self.enqueue(kernel, operation, config, values) };
        }
        attributes.check(&self.driver)?;
        if let Some(scope) = operation.scope() {
            attributes.keep_events(scope);
        }
        let raw_config = attributes.launch_config(config, operation.raw_stream());
        // SAFETY: the events of the attributes are live and belong to this driver; the caller is
        // responsible for `values` and the kernel.
        unsafe { self.enqueue_config(kernel, operation, config, &raw_config, values) }
    }

    /// Enqueues a launch with the driver's configuration.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`], and `raw_config` is `config` on this stream with attributes that
    /// are live.
    #[inline]
    pub(super) unsafe fn enqueue_config(
        &self,
        kernel: AdmittedKernel,
        operation: &Operation<'_>,
        config: &LaunchConfig,
        raw_config: &CUlaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let extra = std::ptr::null_mut();
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is
        // responsible for `values` and the attributes.
        let result = unsafe {
            call!(
                operation.driver(),
                cuLaunchKernelEx(raw_config, kernel.handle(), values, extra)
            )
        };
        result.map_err(|error| launch::explain(error, self, operation.stream().device(), config))
    }

    /// Enqueues a cooperative launch.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`].
    #[inline]
    pub(super) unsafe fn enqueue_cooperative(
        &self,
        kernel: AdmittedKernel,
        operation: &Operation<'_>,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = *config;
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is
        // responsible for `values`.
        let result = unsafe {
            call!(
                operation.driver(),
                cuLaunchCooperativeKernel(
                    kernel.handle(),
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    shared_bytes,
                    operation.raw_stream(),
                    values
                )
            )
        };
        result.map_err(|error| launch::explain(error, self, operation.stream().device(), config))
    }
}
