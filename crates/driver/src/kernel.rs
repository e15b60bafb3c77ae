//! Kernels: functions that run on the device, with their signatures.

mod admission;
mod argument_list;
mod attribute;
mod enqueue;
mod function;
#[cfg(feature = "half")]
mod half;
pub(crate) mod launch;
mod look_up;
mod occupancy;
mod optional;
mod parameter;
mod preference;
pub(crate) mod signature;

use std::borrow::Cow;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUfunc_st, CUfunction, CUgraphDeviceNode};

use self::admission::Launch;
pub use self::argument_list::ArgumentList;
pub use self::function::LoadState;
pub(crate) use self::look_up::{Candidates, function_name, kernel_name};
pub use self::occupancy::{OccupancyFlags, SuggestedSize};
pub use self::preference::{Carveout, ClusterScheduling, SharedMemoryMode};
use crate::base::handle::Handle;
use crate::image::declared::Entry;
use crate::kernel::launch::{LaunchAttributes, LaunchConfig};
use crate::kernel::signature::{Arguments, Signature};
use crate::{Context, Driver, Library, Module, Result, Stream};

/// A kernel with the parameters that `S` declares. Clones are cheap.
///
/// `S` is a tuple with one type per parameter: a scalar or another [`ByValue`](crate::ByValue)
/// type, `&[T]` for a pointer that the kernel reads through, and `&mut [T]` for a pointer that it
/// writes through. Looking up a kernel compares the number and the sizes of the parameters with the
/// loaded image. Drivers before CUDA 12.4 cannot report them: the parameters of PTX are then read
/// from its text, and those of machine code are not compared.
///
/// A `Kernel` without `S` is [`Untyped`].
///
/// ```no_run
/// # fn example(library: curium_driver::Library) -> Result<(), curium_driver::Error> {
/// let saxpy = library.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;
/// # Ok(())
/// # }
/// ```
pub struct Kernel<S = Untyped> {
    inner: Inner,
    _signature: PhantomData<fn(S)>,
}

/// A [`Kernel`] that was declared safe to launch from safe code. See [`Kernel::declare_safe`].
pub struct SafeKernel<S>(Kernel<S>);

/// The signature of a kernel whose parameters are not declared. [`Kernel::typed`] declares them. An
/// untyped kernel is launched with an [`ArgumentList`].
#[derive(Clone, Copy, Debug)]
pub struct Untyped;

/// A kernel with any parameters.
#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) raw: Handle<CUfunc_st>,
    pub(crate) driver: Driver,
    pub(crate) owner: Owner,
    pub(crate) name: Arc<str>,
    parameters: Arc<parameter::Cached>,
}

/// The object that keeps the code loaded.
#[derive(Clone)]
pub(crate) enum Owner {
    Library(Library),
    Module(Module),
    /// A library's code, loaded in one context.
    LibraryIn(Library, Context),
}

impl<S> Kernel<S> {
    /// Launches the kernel on `stream`. Returns without waiting for it to run.
    ///
    /// This is a single driver call without an allocation, and no context needs to be current.
    /// `stream` waits on the device for conflicting accesses to the arguments on other streams,
    /// which takes one or two more driver calls the first time. The host does not wait.
    ///
    /// CUDA: `cuLaunchKernel`.
    ///
    /// # Safety
    ///
    /// - With these arguments and this configuration, the kernel accesses only the memory passed to
    ///   it, within bounds: it reads through `&[T]`, and reads and writes through `&mut [T]`.
    /// - The memory that it writes contains valid values of `T` afterwards.
    ///
    /// # Errors
    ///
    /// An argument error if a dimension is zero; `CUDA_ERROR_INVALID_VALUE` if a device limit is
    /// exceeded. Errors of the kernel itself are reported by a later call.
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cudaLaunchKernel")]
    #[inline]
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        arguments.check(self)?;
        let mut launch = Launch::new(stream);
        let (operation, kernel) = self.inner.admit(&mut launch)?;
        arguments.launch_with(operation, |operation, values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter,
            // and the caller is responsible for what the kernel does with them.
            unsafe { self.inner.enqueue(kernel, operation, &config, values) }
        })
    }

    /// Launches the kernel on `stream` with launch attributes, such as a cluster size or
    /// programmatic dependent launch. Returns without waiting for it to run.
    ///
    /// Allocates no memory. Without attributes this is [`Kernel::launch`].
    ///
    /// CUDA: `cuLaunchKernelEx`.
    ///
    /// # Safety
    ///
    /// - As for [`Kernel::launch`].
    /// - If `attributes` allow the kernel to start before earlier work has completed, or later work
    ///   to start before the kernel has completed, the kernels themselves synchronize their
    ///   conflicting accesses.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`], and an argument error if an event in `attributes` belongs to
    /// another driver.
    #[doc(alias = "cuLaunchKernelEx")]
    #[doc(alias = "cudaLaunchKernelExC")]
    #[inline]
    pub unsafe fn launch_with(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        arguments.check(self)?;
        let mut launch = Launch::new(stream);
        let (operation, kernel) = self.inner.admit(&mut launch)?;
        arguments.launch_with(operation, |operation, values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter,
            // and the caller is responsible for what the kernel does with them.
            unsafe {
                self.inner
                    .enqueue_with(kernel, operation, &config, attributes, values)
            }
        })
    }

    /// Launches the kernel on `stream` as a cooperative launch: all blocks are resident at the same
    /// time and can synchronize with each other. Returns without waiting for it to run.
    /// [`Kernel::max_active_blocks`] returns the maximum number of blocks per multiprocessor.
    ///
    /// CUDA: `cuLaunchCooperativeKernel`.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`], and `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` if the blocks
    /// cannot all be resident.
    #[doc(alias = "cuLaunchCooperativeKernel")]
    #[doc(alias = "cudaLaunchCooperativeKernel")]
    #[inline]
    pub unsafe fn launch_cooperative(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        arguments.check(self)?;
        let mut launch = Launch::new(stream);
        let (operation, kernel) = self.inner.admit(&mut launch)?;
        arguments.launch_with(operation, |operation, values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter,
            // and the caller is responsible for what the kernel does with them.
            unsafe {
                self.inner
                    .enqueue_cooperative(kernel, operation, &config, values)
            }
        })
    }
}

impl<S: Signature> Kernel<S> {
    /// Declares the kernel safe to launch from safe code.
    ///
    /// # Safety
    ///
    /// - With *any* arguments that safe code can pass and any configuration, the kernel accesses
    ///   only the memory passed to it, within bounds: it reads through `&[T]`, and reads and writes
    ///   through `&mut [T]`.
    /// - The memory that it writes contains valid values of `T` afterwards.
    #[must_use]
    #[inline]
    pub unsafe fn declare_safe(self) -> SafeKernel<S> {
        SafeKernel(self)
    }
}

impl Kernel<Untyped> {
    /// Returns the kernel with the parameters that `S` declares.
    ///
    /// CUDA: `cuKernelGetParamInfo` or `cuFuncGetParamInfo`.
    ///
    /// # Errors
    ///
    /// An argument error if the parameters do not match `S`.
    #[inline]
    pub fn typed<S: Signature>(self) -> Result<Kernel<S>> {
        self.inner.check_signature(S::SIZES, S::type_names)?;
        Ok(Kernel {
            inner: self.inner,
            _signature: PhantomData,
        })
    }

    /// Launches the kernel on `stream` with arguments given by address, one for each parameter. The
    /// values are copied before the call returns. Does not wait for the kernel to run.
    ///
    /// CUDA: `cuLaunchKernel` or `cuLaunchKernelEx`.
    ///
    /// # Safety
    ///
    /// - `arguments` contains the address of a value of the right size for each parameter, and the
    ///   kernel may run with them.
    /// - The caller orders the accesses of the kernel with other work.
    /// - The requirements of [`Kernel::launch_with`] hold if `attributes` are set.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch_with`].
    #[inline]
    pub unsafe fn launch_raw(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let mut launch = Launch::new(stream);
        let (operation, kernel) = self.inner.admit(&mut launch)?;
        // SAFETY: the caller is responsible for the arguments and the kernel.
        unsafe {
            self.inner.enqueue_with(
                kernel,
                operation,
                &config,
                attributes,
                arguments.as_mut_ptr(),
            )
        }
    }

    /// Launches the kernel on a stream that is being captured, as a device-updatable graph node.
    /// Returns the device-side handle of the node.
    ///
    /// CUDA: `cuLaunchKernelEx`, since 12.4.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_raw`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch_with`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE")]
    #[inline]
    pub unsafe fn launch_raw_updatable(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
        arguments: &mut [*mut c_void],
    ) -> Result<CUgraphDeviceNode> {
        let mut launch = Launch::new(stream);
        let (operation, kernel) = self.inner.admit(&mut launch)?;
        let mut attributes = attributes.with_device_updatable();
        attributes.check(&self.inner.driver)?;
        let raw_config = attributes.launch_config_mut(&config, operation.raw_stream());
        // SAFETY: the caller is responsible for the arguments and the kernel.
        unsafe {
            self.inner.enqueue_config(
                kernel,
                operation,
                &config,
                &raw_config,
                arguments.as_mut_ptr(),
            )
        }?;
        Ok(attributes.device_node())
    }

    #[inline]
    pub(crate) fn untyped(raw: CUfunction, owner: Owner, name: &str) -> Self {
        let inner = Inner {
            raw: Handle::new(raw),
            driver: owner.driver().clone(),
            owner,
            name: name.into(),
            parameters: Arc::default(),
        };
        Self {
            inner,
            _signature: PhantomData,
        }
    }
}

impl<S> Kernel<S> {
    /// Returns the name with which the kernel was looked up.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the raw handle, which `cuLaunchKernel` accepts: a `CUkernel` of a library, or a
    /// `CUfunction` of a module or context. It is valid for as long as a clone of this kernel
    /// exists. It is null for a kernel of a [`Library`] on a driver before CUDA 12.0, unless the
    /// kernel is bound by [`Kernel::in_context`].
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUfunction {
        self.inner.raw.raw()
    }

    /// Returns the driver of this kernel.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.inner.driver
    }

    /// Returns the kernel without its signature.
    #[must_use]
    #[inline]
    pub fn to_untyped(&self) -> Kernel<Untyped> {
        Kernel {
            inner: self.inner.clone(),
            _signature: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns the kernel for use in `context`: bound to it if the driver has no libraries, so that
    /// a kernel without a context cannot run.
    #[inline]
    pub(crate) fn bound(&self, context: &Context) -> Result<Cow<'_, Self>> {
        if self.inner.is_unbound() {
            self.in_context(context).map(Cow::Owned)
        } else {
            Ok(Cow::Borrowed(self))
        }
    }
}

impl Inner {
    /// Returns `true` if the kernel has no handle: it belongs to a library of a driver without
    /// libraries, and to no context yet.
    #[inline]
    pub(crate) fn is_unbound(&self) -> bool {
        self.raw.is_cleared()
    }
}

impl Inner {
    /// Returns `true` if both come from the same look-up and are therefore identical. Each look-up
    /// allocates its name separately.
    #[inline]
    pub(crate) fn is_same_look_up(&self, other: &Self) -> bool {
        self.name.as_ptr() == other.name.as_ptr()
    }
}

impl Owner {
    #[inline]
    pub(crate) fn driver(&self) -> &Driver {
        match self {
            Self::Library(library) | Self::LibraryIn(library, _) => library.as_ref(),
            Self::Module(module) => module.as_ref(),
        }
    }

    /// Returns the kernels that the PTX declares, for drivers that cannot report them.
    #[inline]
    fn entries(&self) -> &[Entry] {
        match self {
            Self::Library(library) | Self::LibraryIn(library, _) => &library.declared().entries,
            Self::Module(module) => &module.declared().entries,
        }
    }
}

impl<S: Signature> SafeKernel<S> {
    /// Launches the kernel on `stream`. Returns without waiting for it to run. See
    /// [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`].
    #[inline]
    pub fn launch(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        // SAFETY: the caller of `Kernel::declare_safe` guarantees that any arguments and any
        // configuration are safe.
        unsafe { self.0.launch(stream, config, arguments) }
    }
}

impl<S> std::ops::Deref for SafeKernel<S> {
    type Target = Kernel<S>;

    #[inline]
    fn deref(&self) -> &Kernel<S> {
        &self.0
    }
}

impl<S> Clone for Kernel<S> {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            _signature: PhantomData,
        }
    }
}

impl<S> Clone for SafeKernel<S> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for Kernel<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kernel({} {:?})", self.name(), self.inner.raw)
    }
}

impl<S> fmt::Debug for SafeKernel<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
