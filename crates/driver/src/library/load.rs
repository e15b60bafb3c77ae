//! Loading of libraries.

use std::path::Path;
use std::sync::Arc;

use curium_sys::{CUlibrary, CUlibraryOption, CUresult, Function};

use super::context_modules::ContextModules;
use super::{Library, Shared};
use crate::base::c_string::c_path;
use crate::base::handle::Handle;
use crate::call;
use crate::image::declared::Declared;
use crate::jit::Compilation;
use crate::{Context, Driver, Error, Image, JitOptions, Result};

impl Library {
    /// Compiles and loads PTX text. `driver` can be a driver, a device, a context or a stream.
    ///
    /// CUDA: `cuLibraryLoadData`, and `cuModuleLoadDataEx` before 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the text is not PTX or contains a NUL. A compilation error contains the
    /// log of the JIT compiler.
    #[doc(alias = "cuLibraryLoadData")]
    #[doc(alias = "cudaLibraryLoadData")]
    pub fn from_ptx(driver: &impl AsRef<Driver>, ptx: &str) -> Result<Self> {
        Self::from_image(
            driver,
            &Image::ptx("Library::from_ptx", ptx)?,
            &JitOptions::new(),
        )
    }

    /// Loads an image. PTX is compiled first.
    ///
    /// CUDA: `cuLibraryLoadData`, and `cuModuleLoadDataEx` before 12.0. Some drivers report
    /// compilation errors only when a kernel is looked up, so `cuLibraryGetKernel` is called if the
    /// compiler wrote to its log.
    ///
    /// # Errors
    ///
    /// A compilation error contains the log of the JIT compiler. An argument error if `options`
    /// contain [`JitOptions::symbols`] or names, which only modules support.
    pub fn from_image(
        driver: &impl AsRef<Driver>,
        image: &Image<'_>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        Self::load(driver.as_ref(), None, image, options, &mut [])
    }

    /// Loads an image like [`Library::from_image`]. The library keeps the image, so the driver
    /// needs no copy.
    ///
    /// CUDA: `cuLibraryLoadData` with `CU_LIBRARY_BINARY_IS_PRESERVED`, and `cuModuleLoadDataEx`
    /// before 12.0.
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
        let mut library = Self::load(driver.as_ref(), None, &image, options, &mut preserved)?;
        if let Some(shared) = Arc::get_mut(&mut library.shared) {
            shared._image = Some(image);
        }
        Ok(library)
    }

    /// Loads the image in the file at `path`, which the driver reads. PTX is compiled first.
    ///
    /// [`Library::from_ptx`] loads PTX safely. [`Image::from_file`] with [`Library::from_image`]
    /// detects truncated files.
    ///
    /// CUDA: `cuLibraryLoadFromFile`, and `cuModuleLoadDataEx` before 12.0.
    ///
    /// # Safety
    ///
    /// - A cubin, fatbin or Tile IR is the complete and unmodified output of NVIDIA's tools.
    ///   Otherwise the driver may access arbitrary memory.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_FILE_NOT_FOUND`, or an argument error before CUDA 12.0, if the file does not
    /// exist; an argument error if the path contains a NUL; the errors of [`Library::from_image`].
    #[doc(alias = "cuLibraryLoadFromFile")]
    #[doc(alias = "cudaLibraryLoadFromFile")]
    pub unsafe fn from_file(
        driver: &impl AsRef<Driver>,
        path: impl AsRef<Path>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let driver = driver.as_ref();
        let path = path.as_ref();
        if !driver.has(Function::cuLibraryLoadData) {
            // SAFETY: the caller is responsible for the file.
            let image = unsafe { Image::from_file(path) }
                .map_err(|error| error.during("Library::from_file"))?;
            return Self::from_image(driver, &image, options);
        }
        let name = c_path("Library::from_file", path)?;
        let mut compilation = compilation("Library::from_file", options)?;
        let mut raw = std::ptr::null_mut();
        let count = compilation.len();
        let options = compilation.options();
        let values = compilation.values();
        let name = name.as_ptr();
        // SAFETY: `name` is NUL-terminated, `compilation` holds `count` options with their values
        // and outlives the library, and the caller is responsible for the file.
        let result = unsafe {
            call!(driver, cuLibraryLoadFromFile(&raw mut raw, name, options, values, count, std::ptr::null_mut(), std::ptr::null_mut(), 0) creates raw)
        };
        result.map_err(|error| {
            compilation
                .explain(driver, None, error)
                .about(path.display().to_string())
        })?;
        Ok(Self::new(raw, driver, Declared::default(), compilation))
    }

    /// Loads an image. A driver without libraries loads it into `context` first, or into a context
    /// of its choice.
    pub(super) fn load(
        driver: &Driver,
        context: Option<&Context>,
        image: &Image<'_>,
        options: &JitOptions<'_>,
        library_options: &mut [CUlibraryOption],
    ) -> Result<Self> {
        if !driver.has(Function::cuLibraryLoadData) {
            return Self::load_modules(driver, context, image, options);
        }
        let mut compilation = compilation("Library::from_image", options)?;
        let mut raw = std::ptr::null_mut();
        let bytes = image.as_ptr();
        let count = compilation.len();
        let options = compilation.options();
        let values = compilation.values();
        // None of the library options passed here has a value.
        let mut library_values = vec![std::ptr::null_mut(); library_options.len()];
        let library_count = library_options.len() as u32;
        let library_values = library_values.as_mut_ptr();
        let library_options = library_options.as_mut_ptr();
        // SAFETY: `image` is PTX, the output of a compiler, or was created by `unsafe` code;
        // `compilation` holds `count` options with their values and outlives the library, and so
        // does the image if the options require it.
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
                ) creates raw
            )
        };
        result.map_err(|error| {
            compilation
                .explain(driver, image.as_ptx(), error)
                .about(format!("{image:?}"))
        })?;
        let declared = Declared::by(image, driver, Function::cuKernelGetParamInfo);
        let library = Self::new(raw, driver, declared, compilation);
        library.check_compiled(image)?;
        Ok(library)
    }

    /// Loads an image as modules.
    fn load_modules(
        driver: &Driver,
        context: Option<&Context>,
        image: &Image<'_>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let options = owned_options("Library::from_image", options)?;
        let modules = ContextModules::new(driver, context, image.clone().into_owned(), options)?;
        let module = modules.any();
        let shared = Shared {
            raw: Handle::new(std::ptr::null_mut()),
            driver: driver.clone(),
            is_borrowed: false,
            declared: Declared::by(image, driver, Function::cuLibraryLoadData),
            report: module
                .map(|module| module.report().clone())
                .unwrap_or_default(),
            _compilation: None,
            _image: None,
            modules: Some(modules),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns the compilation error, if the compiler wrote one to its log. Looking up a kernel
    /// that does not exist makes the driver compile.
    fn check_compiled(&self, image: &Image<'_>) -> Result<()> {
        let Shared {
            driver,
            report,
            _compilation: Some(compilation),
            ..
        } = &*self.shared
        else {
            return Ok(());
        };
        if report.errors.is_empty() {
            return Ok(());
        }
        match self.look_up(c"?") {
            Err(error) if error.code() != Some(CUresult::CUDA_ERROR_NOT_FOUND) => Err(compilation
                .explain(driver, image.as_ptx(), error)
                .about(format!("{image:?}"))),
            _ => Ok(()),
        }
    }

    fn new(raw: CUlibrary, driver: &Driver, declared: Declared, compilation: Compilation) -> Self {
        let shared = Shared {
            raw: Handle::new(raw),
            driver: driver.clone(),
            is_borrowed: false,
            declared,
            report: compilation.report(),
            _compilation: Some(compilation),
            _image: None,
            modules: None,
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

/// Returns the options as driver parameters.
fn compilation(operation: &'static str, options: &JitOptions<'_>) -> Result<Compilation> {
    owned_options(operation, options).map(|options| Compilation::new(&options))
}

/// Returns the options if they borrow nothing. A library outlives the names and symbols that
/// options borrow, so these are rejected.
fn owned_options(operation: &'static str, options: &JitOptions<'_>) -> Result<JitOptions<'static>> {
    options.to_static().ok_or_else(|| {
        Error::argument(
            operation,
            "symbols and names are options of modules and linkers only",
        )
    })
}
