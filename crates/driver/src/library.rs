//! A library: code that belongs to no context.

mod raw;

use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use curium_sys::{CUkernel, CUlib_st, CUlibrary, CUlibraryOption, CUmodule, CUresult, Function};

use crate::call;
use crate::handle::Handle;
use crate::image::ptx::Entry;
use crate::jit::Compilation;
use crate::kernel::{Candidates, Owner, c_name, kernel_name};
use crate::module::{c_path, unknown_entries};
use crate::release::release;
use crate::signature::Signature;
use crate::{Context, Driver, Error, Global, Image, JitOptions, JitReport, Kernel, Module, Result, Untyped};

/// Code that is loaded into each context when it is first used there. Clones are cheap and stand for the same library.
///
/// Needs a driver for CUDA 12.0. On an older one use a [`Module`].
#[derive(Clone)]
pub struct Library {
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUlib_st>,
    driver: Driver,
    is_borrowed: bool,
    /// What the PTX says of its kernels, if the driver cannot tell.
    entries: Box<[Entry]>,
    report: JitReport,
    /// The driver may compile when the code is first used: what it may read and write then is kept.
    _compilation: Option<Compilation>,
    _image: Option<Image<'static>>,
}

impl Library {
    /// Compiles and loads PTX text. A driver, a device, a context and a stream all name the driver.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the text is no PTX or has an interior NUL. What the driver's compiler wrote is part of its error.
    #[doc(alias = "cuLibraryLoadData")]
    pub fn from_ptx(driver: &impl AsRef<Driver>, ptx: &str) -> Result<Self> {
        Self::from_image(driver, &Image::ptx("Library::from_ptx", ptx)?, &JitOptions::new())
    }

    /// Loads an image, and compiles it first if it is PTX.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0. A driver may tell what its compiler found only when a kernel is looked up, which is why
    /// `cuLibraryGetKernel` is called if the compiler wrote something.
    ///
    /// # Errors
    ///
    /// What the driver's compiler wrote is part of its error; an argument error if `options` hold [`JitOptions::symbols`] or names,
    /// which only modules take.
    pub fn from_image(driver: &impl AsRef<Driver>, image: &Image<'_>, options: &JitOptions<'_>) -> Result<Self> {
        Self::load(driver.as_ref(), image, options, &mut [])
    }

    /// As [`Library::from_image`], and the library keeps the image so that the driver needs no copy of its own.
    ///
    /// CUDA: `cuLibraryLoadData` with `CU_LIBRARY_BINARY_IS_PRESERVED`, since 12.0.
    ///
    /// # Errors
    ///
    /// As for [`Library::from_image`].
    #[doc(alias = "CU_LIBRARY_BINARY_IS_PRESERVED")]
    pub fn from_kept_image(
        driver: &impl AsRef<Driver>,
        image: Image<'static>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let mut preserved = [CUlibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED];
        let mut library = Self::load(driver.as_ref(), &image, options, &mut preserved)?;
        if let Some(shared) = Arc::get_mut(&mut library.shared) {
            shared._image = Some(image);
        }
        Ok(library)
    }

    /// Loads the image in the file at `path`, and compiles it first if it is PTX. The file is read and checked here.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// As for [`Image::from_file`] and [`Library::from_image`].
    pub fn from_file(driver: &impl AsRef<Driver>, path: impl AsRef<Path>, options: &JitOptions<'_>) -> Result<Self> {
        Self::from_image(driver, &Image::from_file(path)?, options)
    }

    /// Has the driver load the image in the file at `path`.
    ///
    /// CUDA: `cuLibraryLoadFromFile`, since 12.0.
    ///
    /// # Safety
    ///
    /// The file holds a whole image: the driver may crash on another.
    ///
    /// # Errors
    ///
    /// As for [`Library::from_image`], and `CUDA_ERROR_FILE_NOT_FOUND` if there is no such file.
    #[doc(alias = "cuLibraryLoadFromFile")]
    pub unsafe fn from_file_unchecked(
        driver: &impl AsRef<Driver>,
        path: impl AsRef<Path>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let (driver, path) = (driver.as_ref(), path.as_ref());
        let name = c_path("Library::from_file_unchecked", path)?;
        let mut compilation = compilation("Library::from_file_unchecked", options)?;
        let mut raw = std::ptr::null_mut();
        let (count, options, values) = (compilation.len(), compilation.options(), compilation.values());
        let (name, none, no_values) = (name.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `name` ends in NUL, `compilation` holds `count` options with their values and outlives the library, and the caller
        // vouches for the file.
        let result = unsafe {
            call!(driver, cuLibraryLoadFromFile(&raw mut raw, name, options, values, count, none, no_values, 0))
        };
        result.map_err(|error| compilation.explain(driver, None, error).about(path.display().to_string()))?;
        Ok(Self::new(raw, driver, Box::default(), compilation))
    }

    /// The driver's handle of this library. It is valid for as long as a clone of this library, or a kernel of it, exists.
    #[must_use]
    pub fn as_raw(&self) -> CUlibrary {
        self.shared.raw.raw()
    }

    /// What the driver's compiler said when the library was loaded. It may compile when the code is first used, and then says nothing
    /// here.
    #[must_use]
    pub fn report(&self) -> &JitReport {
        &self.shared.report
    }

    /// The kernel called `name`, with the parameters that `S` declares. See [`Kernel`] for how they are checked.
    ///
    /// If no context is current on this thread, a primary context is for the moment, since the driver tells parameters only then.
    ///
    /// CUDA: `cuLibraryGetKernel`, `cuKernelGetParamInfo`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if there is no kernel of this name; an argument error if its parameters are not
    /// those of `S`.
    #[doc(alias = "cuLibraryGetKernel")]
    pub fn kernel<S: Signature>(&self, name: &str) -> Result<Kernel<S>> {
        self.untyped_kernel(name)?.typed()
    }

    /// The kernel called `name`, whatever its parameters are.
    ///
    /// CUDA: `cuLibraryGetKernel`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if there is no kernel of this name.
    pub fn untyped_kernel(&self, name: &str) -> Result<Kernel<Untyped>> {
        let text = c_name("Library::kernel", name)?;
        let explain = |error| Candidates::new(self.kernel_names(), self.entries()).explain(error, name);
        let raw = self.look_up(&text).map_err(explain)?;
        Ok(Kernel::untyped(raw.cast(), Owner::Library(self.clone()), name))
    }

    /// Every kernel of the library.
    ///
    /// CUDA: `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`, `cuKernelGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuLibraryEnumerateKernels")]
    #[doc(alias = "cuLibraryGetKernelCount")]
    pub fn kernels(&self) -> Result<Vec<Kernel<Untyped>>> {
        let owned = |raw: CUkernel| {
            let name = kernel_name(&self.shared.driver, raw)?;
            Ok(Kernel::untyped(raw.cast(), Owner::Library(self.clone()), &name))
        };
        self.raw_kernels()?.into_iter().map(owned).collect()
    }

    /// The names of all kernels, in no particular order.
    ///
    /// CUDA: `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`, `cuKernelGetName`, since 12.4.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        self.raw_kernels()?.into_iter().map(|raw| kernel_name(&self.shared.driver, raw)).collect()
    }

    /// The global variable called `name` as it is in `context`, as one or several values of `T`.
    ///
    /// CUDA: `cuLibraryGetGlobal`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if there is no variable of this name; an argument error if its size is not one of values of `T`.
    #[doc(alias = "cuLibraryGetGlobal")]
    pub fn global<T>(&self, context: &Context, name: &str) -> Result<Global<T>> {
        const OPERATION: &str = "Library::global";
        self.shared.driver.expect_same(context.driver(), OPERATION)?;
        let text = c_name(OPERATION, name)?;
        let variable = context.entered(|driver| {
            let (mut address, mut bytes) = (0, 0);
            let (address_place, bytes_place, library) = (&raw mut address, &raw mut bytes, self.as_raw());
            // SAFETY: both places are valid for the answers, the library is live, a context of its driver is current, and `text` ends in
            // NUL.
            let result =
                unsafe { call!(driver, cuLibraryGetGlobal(address_place, bytes_place, library, text.as_ptr())) };
            result.map_err(|error| error.about(format!("variable `{name}`")))?;
            Ok((address, bytes))
        })?;
        Global::checked(OPERATION, Owner::LibraryIn(self.clone(), context.clone()), name, variable)
    }

    /// The managed variable called `name`, which is one for all contexts, as one or several values of `T`.
    ///
    /// CUDA: `cuLibraryGetManaged`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if there is no managed variable of this name; an argument error if its size is not one of values of `T`.
    #[doc(alias = "cuLibraryGetManaged")]
    pub fn managed<T>(&self, name: &str) -> Result<Global<T>> {
        const OPERATION: &str = "Library::managed";
        let text = c_name(OPERATION, name)?;
        let (mut address, mut bytes) = (0, 0);
        let (address_place, bytes_place) = (&raw mut address, &raw mut bytes);
        let (driver, library) = (&self.shared.driver, self.as_raw());
        // SAFETY: both places are valid for the answers, the library is live, and `text` ends in NUL.
        let result = unsafe { call!(driver, cuLibraryGetManaged(address_place, bytes_place, library, text.as_ptr())) };
        result.map_err(|error| error.about(format!("managed variable `{name}`")))?;
        Global::checked(OPERATION, Owner::Library(self.clone()), name, (address, bytes))
    }

    /// The address of the unified function called `name`, which code on the host and on every device may call by it.
    ///
    /// CUDA: `cuLibraryGetUnifiedFunction`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if there is no function of this name, `CUDA_ERROR_NOT_SUPPORTED` if a device has no unified function
    /// pointers.
    #[doc(alias = "cuLibraryGetUnifiedFunction")]
    pub fn unified_function(&self, name: &str) -> Result<*mut c_void> {
        let text = c_name("Library::unified_function", name)?;
        let mut function = std::ptr::null_mut();
        let (driver, library, place) = (&self.shared.driver, self.as_raw(), &raw mut function);
        // SAFETY: `place` is valid for the answer, the library is live, and `text` ends in NUL.
        let result = unsafe { call!(driver, cuLibraryGetUnifiedFunction(place, library, text.as_ptr())) };
        result.map_err(|error| error.about(format!("unified function `{name}`")))?;
        Ok(function)
    }

    /// The library's code as a module of `context`, into which it is loaded if it is not there yet. The module goes with the library.
    ///
    /// CUDA: `cuLibraryGetModule`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuLibraryGetModule")]
    pub fn module(&self, context: &Context) -> Result<Module> {
        self.shared.driver.expect_same(context.driver(), "Library::module")?;
        let raw = context.entered(|driver| {
            let mut raw: CUmodule = std::ptr::null_mut();
            // SAFETY: `raw` is a valid place for the answer, the library is live, and a context of its driver is current.
            unsafe { call!(driver, cuLibraryGetModule(&raw mut raw, self.as_raw())) }?;
            Ok(raw)
        })?;
        Ok(Module::of_library(raw, context, self))
    }

    /// Unloads the library, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuLibraryUnload`.
    ///
    /// # Errors
    ///
    /// Gives the library back if clones of it, or kernels of it, still exist, or if the driver refuses.
    #[doc(alias = "cuLibraryUnload")]
    pub fn close(self) -> Result<(), (Self, Error)> {
        let mut library = Arc::try_unwrap(self.shared)
            .map_err(|shared| (Self { shared }, Error::argument("Library::close", "the library is still in use")))?;
        match library.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err((Self { shared: Arc::new(library) }, error)),
        }
    }

    /// What the PTX says of its kernels, if the driver cannot tell.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.shared.entries
    }

    fn load(
        driver: &Driver,
        image: &Image<'_>,
        options: &JitOptions<'_>,
        library_options: &mut [CUlibraryOption],
    ) -> Result<Self> {
        let mut compilation = compilation("Library::from_image", options)?;
        let mut raw = std::ptr::null_mut();
        let bytes = image.as_ptr();
        let (count, options, values) = (compilation.len(), compilation.options(), compilation.values());
        // None of the options of libraries that are passed has a value.
        let mut library_values = vec![std::ptr::null_mut(); library_options.len()];
        let (library_count, library_values) = (library_options.len() as u32, library_values.as_mut_ptr());
        let library_options = library_options.as_mut_ptr();
        // SAFETY: `image` was checked or somebody vouched for it, and `compilation` holds `count` options with their values and outlives
        // the library, as the image does where the options say so.
        let result = unsafe {
            call!(
                driver,
                cuLibraryLoadData(
                    &raw mut raw,
                    bytes,
                    options,
                    values,
                    count,
                    library_options,
                    library_values,
                    library_count
                )
            )
        };
        result.map_err(|error| compilation.explain(driver, image.as_ptx(), error).about(format!("{image:?}")))?;
        let entries = unknown_entries(driver, Function::cuKernelGetParamInfo, image);
        let library = Self::new(raw, driver, entries, compilation);
        library.check_compiled(image)?;
        Ok(library)
    }

    /// What the driver's compiler found, by looking up a kernel that no code has, if the compiler wrote something.
    fn check_compiled(&self, image: &Image<'_>) -> Result<()> {
        let Shared { driver, report, _compilation: Some(compilation), .. } = &*self.shared else { return Ok(()) };
        if report.errors.is_empty() {
            return Ok(());
        }
        match self.look_up(c"?") {
            Err(error) if error.code() != Some(CUresult::CUDA_ERROR_NOT_FOUND) => {
                Err(compilation.explain(driver, image.as_ptx(), error).about(format!("{image:?}")))
            }
            _ => Ok(()),
        }
    }

    fn look_up(&self, name: &CStr) -> Result<CUkernel> {
        let mut raw: CUkernel = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, the library is live, and `name` ends in NUL.
        unsafe { call!(&self.shared.driver, cuLibraryGetKernel(&raw mut raw, self.as_raw(), name.as_ptr())) }?;
        Ok(raw)
    }

    fn new(raw: CUlibrary, driver: &Driver, entries: Box<[Entry]>, compilation: Compilation) -> Self {
        let shared = Shared {
            raw: Handle::new(raw),
            driver: driver.clone(),
            is_borrowed: false,
            entries,
            report: compilation.report(),
            _compilation: Some(compilation),
            _image: None,
        };
        Self { shared: Arc::new(shared) }
    }

    fn raw_kernels(&self) -> Result<Vec<CUkernel>> {
        let (driver, library, mut count) = (&self.shared.driver, self.as_raw(), 0);
        // SAFETY: `count` is a valid place for the answer, and the library is live.
        unsafe { call!(driver, cuLibraryGetKernelCount(&raw mut count, library)) }?;
        let mut kernels: Vec<CUkernel> = vec![std::ptr::null_mut(); count as usize];
        let place = kernels.as_mut_ptr();
        // SAFETY: `kernels` has room for `count` handles, and the library is live.
        unsafe { call!(driver, cuLibraryEnumerateKernels(place, count, library)) }?;
        Ok(kernels)
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        if !self.is_borrowed {
            // SAFETY: the library is live, nobody else has its handle, and it is forgotten once it is unloaded.
            unsafe { call!(&self.driver, cuLibraryUnload(self.raw.raw())) }?;
        }
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Library {
    fn as_ref(&self) -> &Driver {
        &self.shared.driver
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Library({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}

/// The options as C reads them. A library outlives the names and symbols that options borrow.
fn compilation(operation: &'static str, options: &JitOptions<'_>) -> Result<Compilation> {
    if options.borrows() {
        return Err(Error::argument(operation, "symbols and names are options of modules and linkers only"));
    }
    Ok(Compilation::new(options))
}
