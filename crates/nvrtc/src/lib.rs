//! CUDA C++ to PTX at run time through NVRTC.
//!
//! NVRTC is NVIDIA's compiler as a library. It needs no GPU and no driver, and none of it is needed to compile or start a program:
//! it is found when [`Nvrtc::load`] is called, and any NVRTC from CUDA 11.2 on serves.
//!
//! The PTX is of the version that the NVRTC brings, and a driver for an older CUDA refuses it. Where that matters, use an NVRTC
//! that is no newer than the oldest driver.
//!
//! # Example
//!
//! ```no_run
//! use curium_driver::Device;
//! use curium_nvrtc::{CompileOptions, Nvrtc};
//!
//! let nvrtc = Nvrtc::load()?;
//! let device = Device::first()?;
//! let options = CompileOptions::new().with_architecture(nvrtc.architecture_for(device.compute_capability()?)?);
//! let source = r#"extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }"#;
//! let ptx = nvrtc.compile(source, "twice.cu", &options)?;
//! let module = curium_driver::Module::from_ptx(&device.primary_context()?, ptx.as_str())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod architecture;
mod diagnostic;
mod error;
mod load;
mod nvrtc;
mod options;
mod program;
mod ptx;

pub use self::architecture::Architecture;
pub use self::diagnostic::{Diagnostic, Severity};
pub use self::error::{CallError, CompileError, Error, Result};
pub use self::load::{Attempt, LoadError, Rejection};
pub use self::nvrtc::Nvrtc;
pub use self::options::CompileOptions;
pub use self::ptx::Ptx;
