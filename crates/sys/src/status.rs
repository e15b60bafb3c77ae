//! The classes of errors.

use core::fmt;

use crate::CUresult;

/// The class of a failure.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Incorrect use: an invalid argument, handle, image or order of calls. Nothing else is
    /// affected.
    Usage,
    /// An exhausted resource: memory, address space or launch resources. A later call may succeed.
    Resource,
    /// The context and everything in it is lost. The process cannot recover.
    Sticky,
    /// The system lacks a driver, a device or code for the device's architecture.
    System,
    /// An unknown code.
    Unknown,
}

impl ErrorClass {
    /// Returns the class of a result code.
    #[must_use]
    pub fn of(code: CUresult) -> Self {
        match code {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED
            | CUresult::CUDA_ERROR_CDP_VERSION_MISMATCH => Self::Sticky,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
            | CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            | CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
            | CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
            | CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => Self::Resource,
            CUresult::CUDA_ERROR_NO_DEVICE
            | CUresult::CUDA_ERROR_STUB_LIBRARY
            | CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
            | CUresult::CUDA_ERROR_SYSTEM_NOT_READY
            | CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
            | CUresult::CUDA_ERROR_DEVICE_NOT_LICENSED
            | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_NOT_SUPPORTED
            | CUresult::CUDA_ERROR_OPERATING_SYSTEM
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Self::System,
            CUresult(code) if code < CUresult::CUDA_ERROR_UNKNOWN.0 => Self::Usage,
            _ => Self::Unknown,
        }
    }
}

/// The status codes of a library, which classify its errors.
pub trait LibraryStatus: fmt::Debug {
    /// Returns the class of the code.
    fn class(&self) -> ErrorClass;

    /// Returns `true` if the code reports a failed allocation.
    fn is_out_of_memory(&self) -> bool;
}
