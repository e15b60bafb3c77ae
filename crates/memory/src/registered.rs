//! Ordinary memory of the host that is pinned for a while.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use curium_driver::sys::{CUdeviceptr, CUresult};
use curium_driver::{Context, DevicePointer, Error, Result, Returned, call, release, sys};

/// A slice whose memory is pinned for as long as this value exists: copies from and to it run at full speed, in a
/// [`copy_scope`](crate::copy::copy_scope) beside the host. It is the slice.
///
/// [`Registered::scope`] pins a slice while a closure runs, and is safe. Pinning takes long, tens of microseconds for each megabyte: it
/// pays
/// for memory that is copied often. Whole pages are pinned; memory that shares a page with the slice stays usable.
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
///     buffer.as_slice_mut().copy_from_slice(values)?;
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

/// A slice that may only be read, whose memory is pinned for as long as this value exists. See [`Registered`].
pub struct RegisteredRef<'a, T> {
    elements: &'a [T],
    registration: Registration,
}

bitflags::bitflags! {
    /// Flags of registered memory.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct RegisterFlags: u32 {
        /// The memory counts as pinned in every context, not only in its own.
        const PORTABLE = sys::CU_MEMHOSTREGISTER_PORTABLE;
        /// The device may read and write the memory in place.
        const DEVICE_MAP = sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        /// The memory is that of another device on the bus.
        const IO_MEMORY = sys::CU_MEMHOSTREGISTER_IOMEMORY;
        /// The device only reads the memory, which may lie in pages that cannot be written. Not every system has it.
        const READ_ONLY = sys::CU_MEMHOSTREGISTER_READ_ONLY;
        /// Flags of newer drivers.
        const _ = !0;
    }
}

const SCOPE: &str = "Registered::scope";
const SCOPE_OF_REF: &str = "RegisteredRef::scope";

/// Pinned pages, which belong to others.
struct Registration {
    context: Context,
    /// Where they begin; 0 once they were given back.
    address: usize,
    _memory: PhantomData<*mut u8>,
}

// SAFETY: memory may be registered and given back on any thread; the registration itself gives no access to it.
unsafe impl Send for Registration {}
// SAFETY: as for `Send`.
unsafe impl Sync for Registration {}

impl<T> Registered<'_, T> {
    /// Runs `operation` while the memory of `elements` is pinned, also if it panics, and returns what it returns.
    ///
    /// CUDA: `cuMemHostRegister_v2`, `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// As for [`Registered::new`]; `operation` does not run then.
    #[doc(alias = "cuMemHostRegister")]
    #[inline]
    pub fn scope<R>(
        context: &Context,
        elements: &mut [T],
        flags: RegisterFlags,
        operation: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        // SAFETY: the value is dropped before this returns or unwinds.
        let mut registered =
            unsafe { Registered::new(context, elements, flags) }.map_err(|error| error.during(SCOPE))?;
        Ok(operation(&mut registered))
    }
}

impl<'a, T> Registered<'a, T> {
    /// Pins the memory of `elements`.
    ///
    /// CUDA: `cuMemHostRegister_v2`.
    ///
    /// # Safety
    ///
    /// The result is dropped, or [closed](Registered::close), before the memory of `elements` is freed. It is not forgotten
    /// ([`mem::forget`](std::mem::forget)) unless the memory lives as long as the process: the driver would take other memory at this
    /// address
    /// for the pinned pages, and copies from and to it would miss it.
    ///
    /// # Errors
    ///
    /// An argument error if the slice has no bytes; `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED` if a part of it is pinned already.
    #[doc(alias = "cuMemHostRegister")]
    #[inline]
    pub unsafe fn new(context: &Context, elements: &'a mut [T], flags: RegisterFlags) -> Result<Self> {
        let bytes = size_of_val(elements);
        let registration = Registration::new("Registered::new", context, elements.as_mut_ptr().cast(), bytes, flags)?;
        Ok(Self { elements, registration })
    }

    /// Where the device finds the first element, if the memory was registered to be used in place. What is done with it is not tracked.
    ///
    /// CUDA: `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn device_pointer(&mut self) -> Result<DevicePointer<T>> {
        let host = self.elements.as_mut_ptr();
        self.registration.context.entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid place for the answer, the memory is registered, and the context is current.
            unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&raw mut raw, host.cast(), 0)) }?;
            Ok(DevicePointer::from_raw(raw))
        })
    }

    /// Ends the registration, which [`Drop`] does as well, and says whether it succeeded. Waits for the work of the device.
    ///
    /// CUDA: `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// Gives the value back if the driver refuses.
    #[doc(alias = "cuMemHostUnregister")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.registration.end().map_err(|error| Returned::new(self, error))
    }
}

impl<T> RegisteredRef<'_, T> {
    /// Runs `operation` while the memory of `elements` is pinned. See [`Registered::scope`] and [`RegisteredRef::new`].
    ///
    /// CUDA: `cuMemHostRegister_v2`, `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredRef::new`]; `operation` does not run then.
    #[inline]
    pub fn scope<R>(
        context: &Context,
        elements: &[T],
        flags: RegisterFlags,
        operation: impl FnOnce(&[T]) -> R,
    ) -> Result<R> {
        // SAFETY: the value is dropped before this returns or unwinds.
        let registered = unsafe { RegisteredRef::new(context, elements, flags) };
        let registered = registered.map_err(|error| error.during(SCOPE_OF_REF))?;
        Ok(operation(&registered))
    }
}

impl<'a, T> RegisteredRef<'a, T> {
    /// Pins the memory of `elements`, which may lie in pages that cannot be written if the flags say [`RegisterFlags::READ_ONLY`].
    ///
    /// CUDA: `cuMemHostRegister_v2`.
    ///
    /// # Safety
    ///
    /// As for [`Registered::new`].
    ///
    /// # Errors
    ///
    /// As for [`Registered::new`]; `CUDA_ERROR_NOT_SUPPORTED` if the system cannot register memory to be read only.
    #[inline]
    pub unsafe fn new(context: &Context, elements: &'a [T], flags: RegisterFlags) -> Result<Self> {
        let (start, bytes) = (elements.as_ptr().cast_mut().cast(), size_of_val(elements));
        let registration = Registration::new("RegisteredRef::new", context, start, bytes, flags)?;
        Ok(Self { elements, registration })
    }

    /// Ends the registration, which [`Drop`] does as well, and says whether it succeeded. Waits for the work of the device.
    ///
    /// CUDA: `cuMemHostUnregister`.
    ///
    /// # Errors
    ///
    /// Gives the value back if the driver refuses.
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.registration.end().map_err(|error| Returned::new(self, error))
    }
}

impl Registration {
    #[inline]
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
            // SAFETY: the memory is borrowed by the caller, who vouches that the registration ends before it does. The context is current.
            let result = unsafe { call!(driver, cuMemHostRegister_v2(start.cast(), bytes, flags.bits())) };
            result.map_err(|error| error.about(format!("{bytes} bytes at {start:p}")))
        })?;
        Ok(Self { context: context.clone(), address: start.expose_provenance(), _memory: PhantomData })
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        if self.address == 0 {
            return Ok(());
        }
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        let result = self.context.entered(|driver| {
            // SAFETY: the memory was registered at this address, all copies that this crate began have been waited for, and it is forgotten
            // once it is given back. The context is current.
            unsafe { call!(driver, cuMemHostUnregister(start)) }
        });
        result.map_err(explain)?;
        self.address = 0;
        Ok(())
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> DerefMut for Registered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T> Deref for RegisteredRef<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T: fmt::Debug> fmt::Debug for Registered<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for RegisteredRef<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl Drop for Registration {
    #[inline]
    fn drop(&mut self) {
        release(|| self.end());
    }
}

#[cold]
#[inline]
fn explain(error: Error) -> Error {
    error.advised(|error| {
        let is_unknown = error.code == CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        is_unknown.then_some("other code has ended the registration already".into())
    })
}
