//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::{ErrorClass, LibraryStatus, declare_library_error};

use crate::sys::curandStatus_t;

declare_library_error! {
    library: "cuRAND",
    status: curandStatus_t,
    /// An argument is out of range, or invalid for the generator. The library was not called.
    Argument(ArgumentError),
}

impl LibraryStatus for curandStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CURAND_STATUS_ALLOCATION_FAILED => ErrorClass::Resource,
            Self::CURAND_STATUS_NOT_INITIALIZED
            | Self::CURAND_STATUS_TYPE_ERROR
            | Self::CURAND_STATUS_OUT_OF_RANGE
            | Self::CURAND_STATUS_LENGTH_NOT_MULTIPLE => ErrorClass::Usage,
            Self::CURAND_STATUS_VERSION_MISMATCH
            | Self::CURAND_STATUS_DOUBLE_PRECISION_REQUIRED
            | Self::CURAND_STATUS_ARCH_MISMATCH => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CURAND_STATUS_ALLOCATION_FAILED
    }
}
