//! Enqueuing of kernels.

use std::ffi::c_void;
use std::sync::Arc;

use curium_sys::{CUfunction, CUlaunchConfig};

use super::Inner;
use crate::base::capture_guard::PASS_THE_SCOPE;
use crate::call;
use crate::hazard::{AccessGuard, Key};
use crate::kernel::launch::{self, LaunchAttributes, LaunchConfig};
use crate::{Result, Stream};

impl Inner {
    /// Prepares a launch on the guard's stream, and returns the handle to launch: that of the module in the stream's
    /// context if the driver has no libraries. The driver rejects a launch without threads, which is recognized by its
    /// error.
    #[inline]
    pub(super) fn begin(&self, guard: &mut AccessGuard<'_>) -> Result<CUfunction> {
        let handle = self.raw.raw();
        if !handle.is_null() && guard.stream().executes_for(&self.driver) {
            Ok(handle)
        } else {
            self.begin_slow(guard)
        }
    }

    /// Prepares a launch if the stream belongs to another driver or is being captured (its graph keeps the kernel
    /// alive), if this thread is in a capture closure, or if the kernel has no handle.
    #[cold]
    #[inline(never)]
    fn begin_slow(&self, guard: &mut AccessGuard<'_>) -> Result<CUfunction> {
        let stream = guard.stream();
        self.driver.expect_same(stream.driver(), "Kernel::launch")?;
        stream.refuse_outside_scope("Kernel::launch", PASS_THE_SCOPE)?;
        // Before the access begins, because it may load code.
        let handle = if self.is_unbound() {
            self.function("Kernel::launch", stream.context())?
        } else {
            self.raw.raw()
        };
        guard.enter()?;
        if let Some(scope) = guard.scope() {
            scope.keep(Key::Kernel(handle.addr()), || Arc::new(self.clone()));
        }
        Ok(handle)
    }

    /// Enqueues a launch.
    ///
    /// # Safety
    ///
    /// `handle` is the handle that [`Inner::begin`] returned for this stream, `values` holds the address of a value for
    /// each parameter, and the kernel may run with them.
    #[inline]
    pub(super) unsafe fn enqueue(
        &self,
        handle: CUfunction,
        stream: &Stream,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = config;
        let extra = std::ptr::null_mut();
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is responsible for `values`.
        let result = unsafe {
            call!(
                stream.driver(),
                cuLaunchKernel(
                    handle,
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    *shared_bytes,
                    stream.as_raw(),
                    values,
                    extra
                )
            )
        };
        result.map_err(|error| launch::explain(error, self, stream.device(), config))
    }

    /// Enqueues a launch with attributes.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`], and the kernel may run with these attributes.
    #[inline]
    pub(super) unsafe fn enqueue_with(
        &self,
        handle: CUfunction,
        stream: &Stream,
        config: &LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        values: *mut *mut c_void,
    ) -> Result<()> {
        if attributes.is_empty() {
            // SAFETY: the caller is responsible for `values` and the kernel.
            return unsafe { self.enqueue(handle, stream, config, values) };
        }
        attributes.check(&self.driver)?;
        if let Some(scope) = stream.scope() {
            attributes.keep_events(scope);
        }
        let raw_config = attributes.launch_config(config, stream.as_raw());
        // SAFETY: the events of the attributes are live and belong to this driver; the caller is responsible for
        // `values` and the kernel.
        unsafe { self.enqueue_config(handle, stream, config, &raw_config, values) }
    }

    /// Enqueues a launch with the driver's configuration.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`], and `raw_config` is `config` on this stream with attributes that are live.
    #[inline]
    pub(super) unsafe fn enqueue_config(
        &self,
        handle: CUfunction,
        stream: &Stream,
        config: &LaunchConfig,
        raw_config: &CUlaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let extra = std::ptr::null_mut();
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is responsible for `values`
        // and the attributes.
        let result = unsafe {
            call!(
                stream.driver(),
                cuLaunchKernelEx(raw_config, handle, values, extra)
            )
        };
        result.map_err(|error| launch::explain(error, self, stream.device(), config))
    }

    /// Enqueues a cooperative launch.
    ///
    /// # Safety
    ///
    /// As for [`Inner::enqueue`].
    #[inline]
    pub(super) unsafe fn enqueue_cooperative(
        &self,
        handle: CUfunction,
        stream: &Stream,
        config: &LaunchConfig,
        values: *mut *mut c_void,
    ) -> Result<()> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = *config;
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller is responsible for `values`.
        let result = unsafe {
            call!(
                stream.driver(),
                cuLaunchCooperativeKernel(
                    handle,
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    shared_bytes,
                    stream.as_raw(),
                    values
                )
            )
        };
        result.map_err(|error| launch::explain(error, self, stream.device(), config))
    }
}
