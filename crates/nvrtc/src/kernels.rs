//! The form of `kernels!` that compiles CUDA C++ at run time.
//!
//! Users see a single macro, `curium::kernels!`: this one with the feature `nvrtc`, the driver's
//! without it. There are two because the `source` form refers to `Nvrtc` and `Program`, on which
//! `curium-driver` does not depend. Every other form is passed to the driver's macro.

use std::collections::BTreeMap;

use curium_driver::{Device, Library};

use crate::{CompileOptions, LoadedProgram, Nvrtc, Program, Result};

/// Declares a struct of kernels like [`curium_driver::kernels!`], optionally with source code that
/// is compiled at run time.
///
/// ```no_run,standalone_crate
/// curium_nvrtc::kernels! {
///     pub struct Kernels source "../../../tests/kernels/saxpy.cu" {
///         pub fn saxpy(a: f32, x: &[f32], y: &mut [f32], n: u32);
///     }
/// }
///
/// let device = curium_driver::Device::first()?;
/// let kernels = Kernels::compile(&curium_nvrtc::Nvrtc::load()?, &device)?;
/// println!("{:?}", kernels.saxpy);
/// # Ok::<(), curium_nvrtc::Error>(())
/// ```
///
/// `source "file"` embeds the text of the file in the program; its path is relative to the Rust
/// file. So does `headers { "name" = "file" }` for a header that the source includes as `"name"`:
///
/// ```standalone_crate
/// curium_nvrtc::kernels! {
///     struct Kernels source "../tests/real/kernels/offset.cu" headers {
///         "offset.h" = "../tests/real/kernels/offset.h",
///     } {
///         fn offset(x: &mut [f32], n: u32);
///     }
/// }
///
/// let program = Kernels::program();
/// assert!(program.source().contains("#include \"offset.h\""));
/// ```
///
/// The names of the kernels are name expressions: a kernel need not be `extern "C"`, and a name
/// after `=` may be a template instance, such as `fn scale(x: &mut [f32]) = "scale<float>";`.
/// Instead of `load` the struct has:
///
/// - `program()`: the [`Program`], to which headers can be added,
/// - `compile(nvrtc, device)`: compiles that program for the device and loads it,
/// - `from_program(program, nvrtc, device, options)`: compiles and loads a program created from
///   `program()`, with options. It is an `unsafe fn` if a kernel is declared `safe fn`, because
///   macros, headers and options change what the kernel does.
///
/// For the other forms see [`curium_driver::kernels!`].
///
/// ```compile_fail,E0133
/// curium_nvrtc::kernels! {
///     struct Kernels source "../tests/real/kernels/nothing.cu" unsafe {
///         safe fn nothing(value: f32) = "nothing<float>";
///     }
/// }
///
/// fn from_another_program(
///     program: &curium_nvrtc::Program,
///     nvrtc: &curium_nvrtc::Nvrtc,
///     device: &curium_driver::Device,
/// ) -> curium_nvrtc::Result<Kernels> {
///     Kernels::from_program(program, nvrtc, device, &curium_nvrtc::CompileOptions::new())
/// }
/// ```
#[macro_export]
macro_rules! kernels {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident source $path:literal headers $headers:tt $($functions:tt)*) => {
        $crate::__driver::kernels! {
            @from [by $crate::kernels, source $path $headers] $(#[$attribute])* $vis struct $name $($functions)*
        }
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident source $path:literal $($functions:tt)*) => {
        $crate::__driver::kernels! {
            @from [by $crate::kernels, source $path {}] $(#[$attribute])* $vis struct $name $($functions)*
        }
    };
    (@load [source $path:literal { $($header:literal = $file:literal),* $(,)? }] $proof:tt [$vis:vis] $name:ident) => {
        impl $name {
            /// Returns the program that the kernels are compiled from.
            #[must_use]
            $vis fn program() -> $crate::Program {
                $crate::__program($path, include_str!($path), Self::KERNEL_NAMES)
                    $(.with_header($header, include_str!($file)))*
            }

            /// Compiles the program for `device`, loads it and looks up the kernels.
            ///
            /// # Errors
            ///
            /// `Error::Compile` for a compilation error, and an argument error if the parameters of
            /// a kernel differ from the declared ones.
            $vis fn compile(nvrtc: &$crate::Nvrtc, device: &$crate::__driver::Device) -> $crate::Result<Self> {
                let program = Self::program();
                let options = $crate::CompileOptions::new();
                $crate::__driver::kernels!(@made_by $proof Self::from_program(&program, nvrtc, device, &options))
            }
        }
        $crate::kernels! { @from_program $proof [$vis] $name }
    };
    (@from_program [] [$vis:vis] $name:ident) => {
        impl $name {
            /// Compiles a program created from `program()`, for `device` unless `options` set an
            /// architecture, loads it and looks up the kernels.
            ///
            /// # Errors
            ///
            /// `Error::Compile` for a compilation error or an invalid option, and an argument error
            /// if the parameters of a kernel differ from the declared ones.
            $vis fn from_program(
                program: &$crate::Program,
                nvrtc: &$crate::Nvrtc,
                device: &$crate::__driver::Device,
                options: &$crate::CompileOptions,
            ) -> $crate::Result<Self> {
                let (library, name) = $crate::__load(program, nvrtc, device, options)?;
                Ok(Self::from_library_by(&library, name)?)
            }
        }
    };
    (@from_program [$($proof:tt)+] [$vis:vis] $name:ident) => {
        impl $name {
            /// Compiles a program created from `program()`, for `device` unless `options` set an
            /// architecture, loads it and looks up the kernels.
            ///
            /// # Safety
            ///
            /// Every kernel that is declared `safe fn` is safe to launch with any arguments, as
            /// `program` and `options` define it.
            ///
            /// # Errors
            ///
            /// `Error::Compile` for a compilation error or an invalid option, and an argument error
            /// if the parameters of a kernel differ from the declared ones.
            $vis unsafe fn from_program(
                program: &$crate::Program,
                nvrtc: &$crate::Nvrtc,
                device: &$crate::__driver::Device,
                options: &$crate::CompileOptions,
            ) -> $crate::Result<Self> {
                let (library, name) = $crate::__load(program, nvrtc, device, options)?;
                Ok($crate::__driver::kernels!(@proven [$($proof)+] Self::from_library_by(&library, name))?)
            }
        }
    };
    ($($other:tt)*) => {
        $crate::__driver::kernels! { $($other)* }
    };
}

/// Creates the program of a struct of kernels.
#[doc(hidden)]
#[must_use]
pub fn __program(path: &str, source: &str, names: &[&str]) -> Program {
    names
        .iter()
        .fold(Program::new(path, source), |program, name| {
            program.with_name_expression(*name)
        })
}

/// Compiles a program for a device and loads it. Also returns a function that maps name expressions
/// to the names of kernels in the image.
#[doc(hidden)]
pub fn __load(
    program: &Program,
    nvrtc: &Nvrtc,
    device: &Device,
    options: &CompileOptions,
) -> Result<(Library, impl Fn(&str) -> String)> {
    let loaded = LoadedProgram::new(nvrtc, device, program, options)?;
    let names: BTreeMap<_, _> = loaded.program().lowered_names.iter().cloned().collect();
    Ok((loaded.library().clone(), move |name: &str| {
        names.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }))
}
