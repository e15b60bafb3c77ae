//! CUDA C++ compiled and linked at run time, through NVRTC and nvJitLink.
//!
//! [`Nvrtc`] is NVIDIA's compiler as a library, [`NvJitLink`] its linker. They need no GPU and no driver, and none of them is needed to
//! compile or start a program: each is found when its `load` is called, and any version from CUDA 11.8 on (nvJitLink: 12.0)
//! serves. What an older version lacks is an error that names the function or the option.
//!
//! The PTX is of the version that the NVRTC brings, and a driver for an older CUDA refuses it. Where that matters, use an NVRTC
//! that is no newer than the oldest driver, or compile to a cubin.
//!
//! # Example
//!
//! ```no_run
//! use curium_driver::{Device, Kernel};
//! use curium_nvrtc::{CompileOptions, Nvrtc, Program};
//!
//! let nvrtc = Nvrtc::load()?;
//! let device = Device::first()?;
//! let options = CompileOptions::new().with_architecture(nvrtc.architecture_for(device.compute_capability()?)?);
//! let program = Program::new("scale.cu", "template<class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }")
//!     .with_name_expression("scale<float>");
//! let compiled = nvrtc.compile(&program, &options)?;
//! let library = compiled.library(&device)?;
//! let scale: Kernel<(&mut [f32], f32)> = compiled.kernel(&library, "scale<float>")?;
//! # Ok::<(), curium_nvrtc::Error>(())
//! ```
//!
//! A program that does not compile is an [`Error::Compile`]: its [`Diagnostic`]s have file, line, column, message and notes, and their
//! text shows the source.
//!
//! ```no_run
//! # use curium_nvrtc::{CompileOptions, Error, Nvrtc, Program};
//! let program = Program::new("bad.cu", "__global__ void bad() {\n  nonsense(3);\n}\n");
//! if let Err(Error::Compile(error)) = Nvrtc::load()?.compile(&program, &CompileOptions::new()) {
//!     for diagnostic in error.errors() {
//!         println!("{diagnostic}");
//!     }
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! prints
//!
//! ```text
//! error: identifier "nonsense" is undefined
//!  --> bad.cu:2:3
//!   |
//! 2 |   nonsense(3);
//!   |   ^^^^^^^^
//! ```

mod api;
mod architecture;
pub mod build;
mod cache;
mod compiled;
mod diagnostic;
mod error;
mod generated;
mod kernels;
mod linker;
mod nvrtc;
mod options;
mod program;
mod text;
mod unit;

#[doc(hidden)]
pub use curium_driver as __driver;

pub use self::architecture::Architecture;
pub use self::compiled::{CompiledProgram, PrecompiledHeader};
pub use self::diagnostic::{Diagnostic, Place, Severity};
pub use self::error::{CallError, CompileError, Error, LinkError, MissingFunction, Result};
#[doc(hidden)]
pub use self::kernels::{__load, __program};
pub use self::linker::{LinkInput, LinkOptions, LinkedProgram, Linker, NvJitLink};
pub use self::nvrtc::{BundledHeaders, InstallFlags, Nvrtc};
pub use self::options::{CompileOptions, FastCompile, LanguageStandard, TileMode, WarningKind};
pub use self::program::Program;
