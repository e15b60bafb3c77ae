//! The constructors.

use std::ffi::c_void;
use std::path::Path;

use curium_sys::Function;

use super::{Module, Origin};
use crate::base::c_string::c_path;
use crate::image::declared::Declared;
use crate::jit::Compilation;
use crate::{Context, Image, JitOptions, JitReport, Result, call};

impl Module {
    /// Compiles and loads PTX text into `context`.
    ///
    /// CUDA: `cuModuleLoadDataEx`.
    ///
    /// # Errors
    ///
    /// An argument error if the text is not PTX or contains a NUL. A compilation error contains the
    /// log of the JIT compiler.
    #[doc(alias = "cuModuleLoadData")]
    #[doc(alias = "cuModuleLoadDataEx")]
    pub fn from_ptx(context: &Context, ptx: &str) -> Result<Self> {
        Self::from_image(
            context,
            &Image::ptx("Module::from_ptx", ptx)?,
            &JitOptions::new(),
        )
    }

    /// Loads an image into `context`. PTX is compiled first.
    ///
    /// CUDA: `cuModuleLoadDataEx`.
    ///
    /// # Errors
    ///
    /// A compilation error contains the log of the JIT compiler; `CUDA_ERROR_NO_BINARY_FOR_GPU` if
    /// a binary contains no code for this device.
    pub fn from_image(
        context: &Context,
        image: &Image<'_>,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let mut compilation = Compilation::new(options);
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            let count = compilation.len();
            let options = compilation.options();
            let values = compilation.values();
            let bytes = image.as_ptr();
            // SAFETY: `image` is PTX, the output of a compiler, or was created by `unsafe` code;
            // `compilation` holds `count` options with their values and outlives the call, and the
            // context is current.
            let result =
                unsafe { call!(driver, cuModuleLoadDataEx(&raw mut raw, bytes, count, options, values) creates raw) };
            result.map_err(|error| compilation.explain(driver, image.as_ptx(), error).about(format!("{image:?}")))?;
            Ok(raw)
        })?;
        let declared = Declared::by(image, context.driver(), Function::cuFuncGetParamInfo);
        Ok(Self::new(
            raw,
            context,
            Origin::Loaded,
            declared,
            compilation.report(),
        ))
    }

    /// Loads the image in the file at `path`, which the driver reads, into `context`.
    ///
    /// [`Module::from_ptx`] loads PTX safely. [`Image::from_file`] with [`Module::from_image`]
    /// accepts options, detects truncated files, and returns the log of the JIT compiler.
    ///
    /// CUDA: `cuModuleLoad`.
    ///
    /// # Safety
    ///
    /// - A cubin, fatbin or Tile IR is the complete and unmodified output of NVIDIA's tools.
    ///   Otherwise the driver may access arbitrary memory.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_FILE_NOT_FOUND` if the file does not exist, an argument error if the path
    /// contains a NUL. The driver reports few details about an invalid image.
    #[doc(alias = "cuModuleLoad")]
    pub unsafe fn from_file(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = c_path("Module::from_file", path)?;
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, `name` is NUL-terminated, the context is current,
            // and the caller is responsible for the file.
            let result =
                unsafe { call!(driver, cuModuleLoad(&raw mut raw, name.as_ptr()) creates raw) };
            result.map_err(|error| error.about(path.display().to_string()))?;
            Ok(raw)
        })?;
        Ok(Self::new(
            raw,
            context,
            Origin::Loaded,
            Declared::default(),
            JitReport::default(),
        ))
    }

    /// Loads the fatbin that a record in this program's data points to. CUDA C++ compilers emit
    /// such records.
    ///
    /// CUDA: `cuModuleLoadFatBinary`.
    ///
    /// # Safety
    ///
    /// `record` points to such a record, or to a complete fatbin.
    ///
    /// # Errors
    ///
    /// As for [`Module::from_image`].
    #[doc(alias = "cuModuleLoadFatBinary")]
    pub unsafe fn from_fat_binary_record(context: &Context, record: *const c_void) -> Result<Self> {
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, the context is current, and the caller is
            // responsible for the record.
            unsafe { call!(driver, cuModuleLoadFatBinary(&raw mut raw, record) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Self::new(
            raw,
            context,
            Origin::Loaded,
            Declared::default(),
            JitReport::default(),
        ))
    }
}
