//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::declare_library_error;

use crate::sys::cublasStatus_t;

declare_library_error! {
    library: "cuBLAS",
    status: cublasStatus_t,
    /// The operands of an operation do not agree with each other or with their memory. The library
    /// was not called.
    Shape(ShapeError),
    /// A plan could not be created: cuBLASLt has no algorithm for the product, or a stored plan is
    /// damaged or belongs to another library or device.
    Plan(PlanError),
}
