//! A struct of kernels, declared once and compiled when the program runs.

use std::collections::BTreeMap;

use curium_driver::{Device, Library};

use crate::{CompileOptions, Nvrtc, Program, Result};

/// Declares a struct of kernels as [`curium_driver::kernels!`] does, and can compile their source when the program runs.
///
/// ```no_run
/// curium_nvrtc::kernels! {
///     pub struct Kernels source "../../../tests/kernels/saxpy.cu" {
///         pub fn saxpy(a: f32, x: &[f32], y: &mut [f32], n: u32);
///     }
/// }
///
/// let device = curium_driver::Device::first()?;
/// let kernels = Kernels::compile(&curium_nvrtc::Nvrtc::load()?, &device, &curium_nvrtc::CompileOptions::new())?;
/// println!("{:?}", kernels.saxpy);
/// # Ok::<(), curium_nvrtc::Error>(())
/// ```
///
/// `source "file"` makes the text of the file part of the program; its path is relative to the source file. The names of the kernels are
/// name expressions: a kernel need not be `extern "C"`, and one behind `=` may be the instance of a template, such as
/// `fn scale(x: &mut [f32]) = "scale<float>";`. In place of `load` the struct has:
///
/// - `program()`: the [`Program`], to which headers can be added,
/// - `compile(nvrtc, device, options)`: compiles it for the device, unless the options name an architecture, and loads it,
/// - `from_program(program, nvrtc, device, options)`: the same of a program that was made from `program()`.
///
/// The other forms are those of [`curium_driver::kernels!`].
#[macro_export]
macro_rules! kernels {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident source $path:literal $($functions:tt)*) => {
        $crate::__driver::kernels! { $(#[$attribute])* $vis struct $name $($functions)* }

        impl $name {
            /// The program that the kernels are compiled from.
            #[must_use]
            $vis fn program() -> $crate::Program {
                $crate::__program($path, include_str!($path), Self::KERNEL_NAMES)
            }

            /// Compiles the program for `device`, loads it and looks up the kernels.
            ///
            /// # Errors
            ///
            /// `Error::Compile` if the source or an option is wrong; an argument error if the parameters of a kernel are not those
            /// that were declared.
            $vis fn compile(
                nvrtc: &$crate::Nvrtc,
                device: &$crate::__driver::Device,
                options: &$crate::CompileOptions,
            ) -> $crate::Result<Self> {
                Self::from_program(&Self::program(), nvrtc, device, options)
            }

            /// As `compile`, of a program that was made from `program()`.
            ///
            /// # Errors
            ///
            /// As for `compile`.
            $vis fn from_program(
                program: &$crate::Program,
                nvrtc: &$crate::Nvrtc,
                device: &$crate::__driver::Device,
                options: &$crate::CompileOptions,
            ) -> $crate::Result<Self> {
                let (library, names) = $crate::__load(program, nvrtc, device, options)?;
                let lowered = |name: &str| names.get(name).cloned().unwrap_or_else(|| name.to_owned());
                Ok(Self::from_library_by(&library, lowered)?)
            }
        }
    };
    ($($other:tt)*) => {
        $crate::__driver::kernels! { $($other)* }
    };
}

/// The program of a struct of kernels.
#[doc(hidden)]
#[must_use]
pub fn __program(path: &str, source: &str, names: &[&str]) -> Program {
    names.iter().fold(Program::new(path, source), |program, name| program.with_name_expression(*name))
}

/// Compiles a program for a device and loads it; with the names of its kernels in the image.
#[doc(hidden)]
pub fn __load(
    program: &Program,
    nvrtc: &Nvrtc,
    device: &Device,
    options: &CompileOptions,
) -> Result<(Library, BTreeMap<String, String>)> {
    let mut options = options.clone();
    if !options.has_architecture() {
        options = options.with_architecture(nvrtc.architecture_for(device.compute_capability()?)?);
    }
    let compiled = nvrtc.compile(program, &options)?;
    let names = compiled.lowered_names.iter().cloned().collect();
    Ok((compiled.library(device)?, names))
}
