//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::{ErrorClass, LibraryStatus, declare_library_error};

use crate::sys::cufftResult;

declare_library_error! {
    library: "cuFFT",
    status: cufftResult,
    /// A shape is invalid, or does not fit the memory. The library was not called.
    Shape(ShapeError),
}

impl LibraryStatus for cufftResult {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUFFT_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUFFT_INVALID_PLAN
            | Self::CUFFT_INVALID_TYPE
            | Self::CUFFT_INVALID_VALUE
            | Self::CUFFT_INVALID_SIZE
            | Self::CUFFT_UNALIGNED_DATA
            | Self::CUFFT_INVALID_DEVICE
            | Self::CUFFT_NO_WORKSPACE => ErrorClass::Usage,
            Self::CUFFT_NOT_IMPLEMENTED
            | Self::CUFFT_NOT_SUPPORTED
            | Self::CUFFT_MISSING_DEPENDENCY => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUFFT_ALLOC_FAILED
    }
}
