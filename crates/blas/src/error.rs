//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::{ErrorClass, LibraryStatus, declare_library_error};

use crate::sys::cublasStatus_t;

declare_library_error! {
    library: "cuBLAS",
    status: cublasStatus_t,
    /// The operands of an operation do not agree with each other or with their memory. The library was not called.
    Shape(ShapeError),
    /// A plan could not be created: cuBLASLt has no algorithm for the product, or a stored plan is damaged or belongs to another library
    /// or device.
    Plan(PlanError),
}

impl LibraryStatus for cublasStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUBLAS_STATUS_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUBLAS_STATUS_NOT_INITIALIZED | Self::CUBLAS_STATUS_INVALID_VALUE => {
                ErrorClass::Usage
            }
            Self::CUBLAS_STATUS_ARCH_MISMATCH
            | Self::CUBLAS_STATUS_NOT_SUPPORTED
            | Self::CUBLAS_STATUS_LICENSE_ERROR => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUBLAS_STATUS_ALLOC_FAILED
    }
}
