//! CUDA C++ compiled and linked at run time, through NVRTC and nvJitLink.
//!
//! [`Nvrtc`] is NVIDIA's run-time compiler, and [`NvJitLink`] is its linker. They require neither a
//! GPU nor a driver, and neither is required to compile or start a program: `load` finds them at
//! run time. Every version since CUDA 11.8 (nvJitLink: 12.0) is supported. An error names the
//! function or option that an older version lacks.
//!
//! NVRTC generates PTX of its own version, and an older driver rejects it. [`Compile`] and
//! [`Nvrtc::architecture_for`] then compile to a cubin.
//!
//! # The book
//!
//! The chapters of the book are in the folder `docs/book/src` of the repository: `cuda-cpp.md`
//! contains examples with templates, headers, half precision, CUB, the cache and build scripts; and
//! how compiled code is loaded.
//!
//! # Example
//!
//! ```no_run
//! use curium_driver::{Device, Kernel};
//! use curium_nvrtc::{Compile as _, Program};
//!
//! let device = Device::first()?;
//! let program = Program::new("scale.cu", "template<class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }")
//!     .with_name_expression("scale<float>");
//! let scale: Kernel<(&mut [f32], f32)> = device.compile(program)?.kernel("scale<float>")?;
//! # Ok::<(), curium_nvrtc::Error>(())
//! ```
//!
//! A failed compilation is an [`Error::Compile`]. Its [`Diagnostic`]s contain file, line, column,
//! message and notes, and their text shows the source line.
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

mod architecture;
pub mod build;
mod cache;
mod compiled;
mod cuda_error;
mod diagnostic;
mod error;
mod includes;
mod kernels;
mod linker;
mod loaded;
mod nvrtc;
mod options;
mod program;
mod text;
mod unit;

#[doc(hidden)]
pub use curium_driver as __driver;
pub use curium_sys::load::{LibraryError, MissingFunction};

pub use self::architecture::Architecture;
pub use self::compiled::{CompiledProgram, PrecompiledHeader};
pub use self::diagnostic::{Diagnostic, Severity, SourceLocation};
pub use self::error::{CallError, CompileError, Error, LinkError, Result};
#[doc(hidden)]
pub use self::kernels::{__load, __program};
pub use self::linker::{LinkInput, LinkOptions, LinkedProgram, Linker, NvJitLink};
pub use self::loaded::{Compile, LoadedProgram};
pub use self::nvrtc::{BundledHeaders, InstallFlags, Nvrtc};
pub use self::options::{CompileOptions, FastCompile, LanguageStandard, TileMode, WarningKind};
pub use self::program::Program;
