//! Options for LTO IR of CUDA 11.

use std::ffi::CStr;

/// Options for LTO IR produced by CUDA 11 compilers. CUDA 12 moved link-time optimization to
/// nvJitLink.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LtoOptions<'a> {
    /// `true` to flush denormal `f32` values to zero.
    pub flush_to_zero: Option<bool>,
    /// `true` to use IEEE-compliant `f32` division.
    pub precise_division: Option<bool>,
    /// `true` to use IEEE-compliant `f32` square root.
    pub precise_square_root: Option<bool>,
    /// `true` to contract multiplications and additions into fused multiply-adds.
    pub fused_multiply_add: Option<bool>,
    /// The referenced kernels. Others may be removed.
    pub referenced_kernels: &'a [&'a CStr],
    /// The referenced variables. Others may be removed.
    pub referenced_variables: &'a [&'a CStr],
    /// `true` to remove unreferenced variables.
    pub remove_unused_variables: bool,
}

impl<'a> LtoOptions<'a> {
    /// Returns options that leave every choice to the compiler.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            flush_to_zero: None,
            precise_division: None,
            precise_square_root: None,
            fused_multiply_add: None,
            referenced_kernels: &[],
            referenced_variables: &[],
            remove_unused_variables: false,
        }
    }

    /// Sets the referenced kernels. Others may be removed.
    #[must_use]
    pub const fn with_referenced_kernels(mut self, names: &'a [&'a CStr]) -> Self {
        self.referenced_kernels = names;
        self
    }

    /// Sets the referenced variables. Others may be removed.
    #[must_use]
    pub const fn with_referenced_variables(mut self, names: &'a [&'a CStr]) -> Self {
        self.referenced_variables = names;
        self
    }

    /// Enables or disables flushing denormal `f32` values to zero.
    #[must_use]
    pub const fn with_flush_to_zero(mut self, flush_to_zero: bool) -> Self {
        self.flush_to_zero = Some(flush_to_zero);
        self
    }

    /// Enables or disables IEEE-compliant `f32` division.
    #[must_use]
    pub const fn with_precise_division(mut self, precise_division: bool) -> Self {
        self.precise_division = Some(precise_division);
        self
    }

    /// Enables or disables IEEE-compliant `f32` square root.
    #[must_use]
    pub const fn with_precise_square_root(mut self, precise_square_root: bool) -> Self {
        self.precise_square_root = Some(precise_square_root);
        self
    }

    /// Enables or disables contraction into fused multiply-adds.
    #[must_use]
    pub const fn with_fused_multiply_add(mut self, fused_multiply_add: bool) -> Self {
        self.fused_multiply_add = Some(fused_multiply_add);
        self
    }

    /// Enables or disables removing unreferenced variables.
    #[must_use]
    pub const fn with_remove_unused_variables(mut self, remove_unused_variables: bool) -> Self {
        self.remove_unused_variables = remove_unused_variables;
        self
    }
}
