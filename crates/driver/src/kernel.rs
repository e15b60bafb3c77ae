//! A kernel: a function that runs on the device, with the parameters that it takes.

use std::ffi::{CString, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUfunc_st, CUfunction, CUresult};

use crate::call;
use crate::current::in_any_context;
use crate::handle::Handle;
use crate::launch::{self, LaunchConfig};
use crate::signature::{Arguments, Signature};
use crate::{Driver, Error, Library, Module, Result, Stream};

/// A kernel with the parameters that `S` declares. Clones are cheap.
///
/// `S` is a tuple with one type for each parameter: a number or another [`ByValue`](crate::ByValue) type for itself, `&[T]` for a
/// pointer that the kernel reads through, `&mut [T]` for one that it writes through. The number and the sizes of the parameters
/// are compared with the loaded image when the kernel is looked up, by drivers for CUDA 12.4 or newer; an older driver cannot tell,
/// and then they are not.
///
/// ```no_run
/// # fn example(library: curium_driver::Library) -> Result<(), curium_driver::Error> {
/// let saxpy = library.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;
/// # Ok(())
/// # }
/// ```
pub struct Kernel<S> {
    raw: Handle<CUfunc_st>,
    owner: Owner,
    name: Arc<str>,
    _signature: PhantomData<fn(S)>,
}

/// A [`Kernel`] that safe code may launch, because somebody has vouched for it.
pub struct SafeKernel<S>(Kernel<S>);

/// What keeps a kernel loaded.
#[derive(Clone)]
pub(crate) enum Owner {
    Library(Library),
    Module(Module),
}

impl<S: Signature> Kernel<S> {
    /// Launches the kernel on `stream`. Returns before it has run.
    ///
    /// Nothing is allocated, and no context needs to be current. Whatever the arguments have to wait for on other streams is waited
    /// for by `stream`, not by the host.
    ///
    /// CUDA: `cuLaunchKernel`.
    ///
    /// # Safety
    ///
    /// With these arguments and this configuration the kernel stays within the memory that it is given, as its signature says: it
    /// reads through `&[T]`, reads and writes through `&mut [T]`, only in bounds, and leaves valid values of `T` behind.
    ///
    /// # Errors
    ///
    /// An argument error if a dimension is zero; `CUDA_ERROR_INVALID_VALUE` if a limit of the device is exceeded. An error of the
    /// kernel itself is reported by a later call.
    #[doc(alias = "cuLaunchKernel")]
    #[inline]
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, arguments: impl Arguments<S>) -> Result<()> {
        config.check()?;
        self.driver().expect_same(stream.driver(), "Kernel::launch")?;
        arguments.launch_with(stream, |values| {
            // SAFETY: `values` holds the address of one value of the right size for each parameter, and the caller vouches for what
            // the kernel does with them.
            unsafe { self.enqueue(stream, config, values) }
        })
    }

    /// Vouches for the kernel once, so that safe code may launch it.
    ///
    /// # Safety
    ///
    /// With *any* arguments that safe code can pass, and any configuration, the kernel stays within the memory that it is given, as
    /// its signature says: it reads through `&[T]`, reads and writes through `&mut [T]`, only in bounds, and leaves valid values of
    /// `T` behind.
    #[must_use]
    pub unsafe fn declare_safe(self) -> SafeKernel<S> {
        SafeKernel(self)
    }

    /// Wraps a function of `owner` if its parameters are those of `S`.
    pub(crate) fn checked(raw: CUfunction, owner: Owner, name: &str) -> Result<Self> {
        let kernel = Self { raw: Handle::new(raw), owner, name: name.into(), _signature: PhantomData };
        kernel.check_signature()?;
        Ok(kernel)
    }

    fn check_signature(&self) -> Result<()> {
        if !self.knows_parameters() {
            return Ok(());
        }
        let found = match self.owner {
            Owner::Library(_) => in_any_context(self.driver(), || self.parameter_sizes())?,
            Owner::Module(_) => self.parameter_sizes()?,
        };
        compare_parameters(&self.name, &found, S::SIZES)
    }
}

impl<S> Kernel<S> {
    /// The name under which the kernel was looked up.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's handle of this kernel: a `CUkernel` of a library or a `CUfunction` of a module, either of which `cuLaunchKernel`
    /// takes. It is valid for as long as a clone of this kernel exists.
    #[must_use]
    pub fn as_raw(&self) -> CUfunction {
        self.raw.raw()
    }

    fn driver(&self) -> &Driver {
        match &self.owner {
            Owner::Library(library) => library.as_ref(),
            Owner::Module(module) => module.as_ref(),
        }
    }

    /// # Safety
    ///
    /// `values` holds the address of a value for each parameter, and the kernel may run with them.
    #[inline]
    unsafe fn enqueue(&self, stream: &Stream, config: LaunchConfig, values: *mut *mut c_void) -> Result<()> {
        let LaunchConfig { grid, block, shared_bytes } = config;
        let (kernel, stream_raw) = (self.as_raw(), stream.as_raw());
        let extra = std::ptr::null_mut();
        // SAFETY: the kernel and the stream are live and belong to this driver; the caller vouches for `values`.
        let result = unsafe {
            call!(
                stream.driver(),
                cuLaunchKernel(
                    kernel,
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    shared_bytes,
                    stream_raw,
                    values,
                    extra
                )
            )
        };
        result.map_err(|error| launch::explain(error, &self.name, stream, config))
    }

    /// Whether the driver can tell the parameters of a kernel.
    fn knows_parameters(&self) -> bool {
        let api = self.driver().api();
        match self.owner {
            Owner::Library(_) => api.cuKernelGetParamInfo.is_some(),
            Owner::Module(_) => api.cuFuncGetParamInfo.is_some(),
        }
    }

    /// The size of each parameter in bytes. For a kernel of a library a context must be current.
    fn parameter_sizes(&self) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        while let Some(size) = self.parameter_size(sizes.len())? {
            sizes.push(size);
        }
        Ok(sizes)
    }

    /// The size of parameter `index` in bytes; `None` past the last.
    fn parameter_size(&self, index: usize) -> Result<Option<usize>> {
        let (mut offset, mut size) = (0, 0);
        let (offset, place) = (&raw mut offset, &raw mut size);
        let driver = self.driver();
        let result = match self.owner {
            // SAFETY: the kernel is live and one of a library, and `offset` and `place` are valid places for the answers.
            Owner::Library(_) => unsafe {
                call!(driver, cuKernelGetParamInfo(self.as_raw().cast(), index, offset, place))
            },
            // SAFETY: the function is live and one of a module, and `offset` and `place` are valid places for the answers.
            Owner::Module(_) => unsafe { call!(driver, cuFuncGetParamInfo(self.as_raw(), index, offset, place)) },
        };
        match result {
            Ok(()) => Ok(Some(size)),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => Ok(None),
            Err(error) => Err(error.about(format!("parameter {index} of kernel `{}`", self.name))),
        }
    }
}

impl<S: Signature> SafeKernel<S> {
    /// Launches the kernel on `stream`. Returns before it has run. See [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`].
    #[inline]
    pub fn launch(&self, stream: &Stream, config: LaunchConfig, arguments: impl Arguments<S>) -> Result<()> {
        // SAFETY: `Kernel::declare_safe` vouches for any arguments and any configuration.
        unsafe { self.0.launch(stream, config, arguments) }
    }
}

impl<S> std::ops::Deref for SafeKernel<S> {
    type Target = Kernel<S>;

    fn deref(&self) -> &Kernel<S> {
        &self.0
    }
}

impl<S> Clone for Kernel<S> {
    fn clone(&self) -> Self {
        let Self { raw, owner, name, _signature } = self;
        Self { raw: Handle::new(raw.raw()), owner: owner.clone(), name: Arc::clone(name), _signature: PhantomData }
    }
}

impl<S> Clone for SafeKernel<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for Kernel<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kernel({} {:?})", self.name, self.raw)
    }
}

impl<S> fmt::Debug for SafeKernel<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A kernel's name as C reads it.
pub(crate) fn c_name(operation: &'static str, name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::argument(operation, format!("the name {name:?} has a NUL in it")))
}

/// An error if the parameters of a kernel are not those that were declared.
fn compare_parameters(name: &str, found: &[usize], declared: &[usize]) -> Result<()> {
    let refuse = |reason: String| Err(Error::argument("kernel look-up", reason));
    if found.len() != declared.len() {
        let (found, declared) = (found.len(), declared.len());
        return refuse(format!("kernel `{name}` has {found} parameters, but {declared} are declared"));
    }
    match found.iter().zip(declared).position(|(found, declared)| found != declared) {
        None => Ok(()),
        Some(index) => {
            let (found, declared) = (found[index], declared[index]);
            refuse(format!(
                "parameter {index} of kernel `{name}` has {found} bytes, but a type of {declared} bytes is declared"
            ))
        }
    }
}
