//! Registered (page-locked) host memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use curium_driver::extend::{release, retry_or_abort, with_relaxed_capture_mode_if_possible};
use curium_driver::sys::{CUdeviceptr, CUresult};
use curium_driver::{Context, DevicePointer, Error, Result, Returned, call, sys};

/// A mutable slice whose memory is page-locked for as long as this value exists. Copies from and to
/// it run at full speed, and asynchronously in a [`copy_scope`](crate::copy::copy_scope). It
/// dereferences to the slice.
///
/// [`Registered::scope`] pins a slice while a closure runs, and is safe. Pinning takes tens of
/// microseconds per megabyte, so it pays off for memory that is copied repeatedly. Whole pages are
/// pinned; other data on the same pages remains usable.
///
/// If the driver refuses to unpin the memory at the end, the attempt is repeated for ten seconds,
/// or for the time that `CURIUM_ABORT_AFTER` sets, and then the process aborts, as for
/// [copies](crate::copy): other memory at the address would be taken for the pinned pages.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, RegisterFlags, Registered};
///
/// # let context = driver.device(0)?.primary_context()?;
/// let stream = context.stream()?;
/// let mut values = vec![1_u32; 1024];
/// let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1024)?;
/// Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
///     buffer.copy_from_slice(values)?;
///     values.fill(0);
///     buffer.copy_to_slice(values)
/// })??;
/// assert_eq!(values, [1; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Registered<'a, T> {
    elements: &'a mut [T],
    registration: Registration,
}

/// A shared slice whose memory is page-locked for as long as this value exists. See [`Registered`].
pub struct RegisteredRef<'a, T> {
    elements: &'a [T],
    registration: Registration,
}

bitflags::bitflags! {
    /// Flags of registered memory (`CU_MEMHOSTREGISTER_…`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct RegisterFlags: u32 {
        /// The memory is pinned in every context, not only in its own.
        const PORTABLE = sys::CU_MEMHOSTREGISTER_PORTABLE;
        /// The device can access the memory in place.
        const DEVICE_MAP = sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        /// The memory is I/O memory of another PCIe device.
        const IO_MEMORY = sys::CU_MEMHOSTREGISTER_IOMEMORY;
        /// The device only reads the memory, whose pages may be read-only. Not supported on every
        /// system.
        const READ_ONLY = sys::CU_MEMHOSTREGISTER_READ_ONLY;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

const SCOPE: &str = "Registered::scope";
const SCOPE_OF_REF: &str = "RegisteredRef::scope";

/// Pinned pages owned by other code.
struct Registration {
    context: Context,
    /// Their address; 0 once they were unregistered.
    address: usize,
    _memory: PhantomData<*mut u8>,
}

// SAFETY: any thread may register and unregister memory, and the registration itself gives no
// access to it.
unsafe impl Send for Registration {}
// SAFETY: any thread may register and unregister memory, and the registration itself gives no
// access to it.
unsafe impl Sync for Registration {}

impl<T> Registered<'_, T> {
    /// Runs `operation` while the memory of `elements` is pinned, and returns its result. The
    /// memory is unpinned even if `operation` panics.
    ///
    /// CUDA: `cuMemHostRegister_v2`, `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// As for [`Registered::new`]; `operation` does not run in that case. The error of earlier
    /// asynchronous work, with which the driver refused to unpin the memory; the result of
    /// `operation` is then dropped.
    #[doc(alias = "cuMemHostRegister")]
    #[doc(alias = "cudaHostRegister")]
    pub fn scope<R>(
        context: &Context,
        elements: &mut [T],
        flags: RegisterFlags,
        operation: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        // SAFETY: the value is closed before this function returns, or dropped if it unwinds.
        let mut registered = unsafe { Registered::new(context, elements, flags) }
            .map_err(|error| error.during(SCOPE))?;
        let result = operation(&mut registered);
        registered
            .registration
            .end_or_abort()
            .map_err(|error| error.during(SCOPE))
            .map(|()| result)
    }
}

impl<'a, T> Registered<'a, T> {
    /// Pins the memory of `elements`.
    ///
    /// CUDA: `cuMemHostRegister_v2`.
    ///
    /// # Safety
    ///
    /// The result is dropped or [closed](Registered::close) before the memory of `elements` is
    /// freed. It is not forgotten ([`mem::forget`](std::mem::forget)) unless the memory lives until
    /// the process exits: otherwise the driver would treat other memory at this address as the
    /// pinned pages, and copies would access the wrong pages.
    ///
    /// # Errors
    ///
    /// An argument error if the slice has no bytes; `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED` if
    /// a part of it is already pinned.
    #[doc(alias = "cuMemHostRegister")]
    #[doc(alias = "cudaHostRegister")]
    pub unsafe fn new(
        context: &Context,
        elements: &'a mut [T],
        flags: RegisterFlags,
    ) -> Result<Self> {
        let bytes = size_of_val(elements);
        let registration = Registration::new(
            "Registered::new",
            context,
            elements.as_mut_ptr().cast(),
            bytes,
            flags,
        )?;
        Ok(Self {
            elements,
            registration,
        })
    }

    /// Returns the device address of the first element, if the memory was registered with
    /// [`RegisterFlags::DEVICE_MAP`]. Accesses through the pointer are not tracked.
    ///
    /// CUDA: `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn device_pointer(&mut self) -> Result<DevicePointer<T>> {
        let host = self.elements.as_mut_ptr();
        self.registration.context.entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid pointer, the memory is registered, and the context is
            // current.
            unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&raw mut raw, host.cast(), 0) creates raw) }?;
            Ok(DevicePointer::from_raw(raw))
        })
    }

    /// Unpins the memory, as [`Drop`] does, and returns any error. The driver waits for the device.
    ///
    /// CUDA: `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// Returns the value together with the error if the driver fails.
    #[doc(alias = "cuMemHostUnregister")]
    #[doc(alias = "cudaHostUnregister")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.registration
            .end()
            .map_err(|error| Returned::new(self, error))
    }
}

impl<T> RegisteredRef<'_, T> {
    /// Runs `operation` while the memory of `elements` is pinned. See [`Registered::scope`] and
    /// [`RegisteredRef::new`].
    ///
    /// CUDA: `cuMemHostRegister_v2`, `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredRef::new`], and as for [`Registered::scope`].
    pub fn scope<R>(
        context: &Context,
        elements: &[T],
        flags: RegisterFlags,
        operation: impl FnOnce(&[T]) -> R,
    ) -> Result<R> {
        // SAFETY: the value is closed before this function returns, or dropped if it unwinds.
        let registered = unsafe { RegisteredRef::new(context, elements, flags) };
        let mut registered = registered.map_err(|error| error.during(SCOPE_OF_REF))?;
        let result = operation(&registered);
        registered
            .registration
            .end_or_abort()
            .map_err(|error| error.during(SCOPE_OF_REF))
            .map(|()| result)
    }
}

impl<'a, T> RegisteredRef<'a, T> {
    /// Pins the memory of `elements`. Its pages may be read-only with [`RegisterFlags::READ_ONLY`].
    ///
    /// CUDA: `cuMemHostRegister_v2`.
    ///
    /// # Safety
    ///
    /// As for [`Registered::new`].
    ///
    /// # Errors
    ///
    /// As for [`Registered::new`]; `CUDA_ERROR_NOT_SUPPORTED` if the system cannot register
    /// read-only memory.
    pub unsafe fn new(context: &Context, elements: &'a [T], flags: RegisterFlags) -> Result<Self> {
        let start = elements.as_ptr().cast_mut().cast();
        let bytes = size_of_val(elements);
        let registration = Registration::new("RegisteredRef::new", context, start, bytes, flags)?;
        Ok(Self {
            elements,
            registration,
        })
    }

    /// Unpins the memory, as [`Drop`] does, and returns any error. The driver waits for the device.
    ///
    /// CUDA: `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// Returns the value together with the error if the driver fails.
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.registration
            .end()
            .map_err(|error| Returned::new(self, error))
    }
}

impl Registration {
    fn new(
        operation: &'static str,
        context: &Context,
        start: *mut u8,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::argument(operation, "slice of zero bytes"));
        }
        context.entered(|driver| {
            // SAFETY: the memory is borrowed by the caller, who guarantees that the registration
            // ends first. The context is current.
            let result = unsafe {
                call!(
                    driver,
                    cuMemHostRegister_v2(start.cast(), bytes, flags.bits())
                )
            };
            result.map_err(|error| error.about(format!("{bytes} bytes at {start:p}")))
        })?;
        Ok(Self {
            context: context.clone(),
            address: start.expose_provenance(),
            _memory: PhantomData,
        })
    }

    /// Unpins memory whose owner may free it next. Captures on other threads neither prevent this
    /// nor are invalidated by it.
    fn end_or_abort(&mut self) -> Result<()> {
        let driver = self.context.driver().clone();
        with_relaxed_capture_mode_if_possible(&driver, || self.end()).inspect_err(|error| {
            let reason = "registered memory cannot be unregistered";
            // SAFETY: the registration, which borrows the memory, ends here.
            unsafe { retry_or_abort(&driver, error, reason, || self.end()) };
        })
    }

    fn end(&mut self) -> Result<()> {
        if self.address == 0 {
            return Ok(());
        }
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        let result = self.context.entered(|driver| {
            // SAFETY: the memory was registered at this address, all copies of this crate have
            // completed, and the registration is not used after this call. The context is current.
            unsafe { call!(driver, cuMemHostUnregister(start)) }
        });
        let is_unknown =
            |error: &Error| error.code() == Some(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        if result.as_ref().err().is_none_or(is_unknown) {
            self.address = 0;
        }
        result.map_err(explain)
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> DerefMut for Registered<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T> Deref for RegisteredRef<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T: fmt::Debug> fmt::Debug for Registered<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for RegisteredRef<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.end_or_abort());
        }
    }
}

#[cold]
fn explain(error: Error) -> Error {
    error.advised(|error| {
        let is_unknown = error.code == CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        is_unknown.then_some("other code has already unregistered the memory".into())
    })
}
