//! Options for LTO IR of CUDA 11.

use std::ffi::CStr;

/// Options for intermediate code that compilers of CUDA 11 made. CUDA 12 moved link-time optimization to nvJitLink.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LtoOptions<'a> {
    /// `true` if `f32` values too small for the normal form are zero.
    pub flush_to_zero: Option<bool>,
    /// `true` if division of `f32` is exact.
    pub precise_division: Option<bool>,
    /// `true` if the square root of `f32` is exact.
    pub precise_square_root: Option<bool>,
    /// `true` if multiplications and additions are contracted.
    pub fused_multiply_add: Option<bool>,
    /// The kernels that are used: others may be removed.
    pub referenced_kernels: &'a [&'a CStr],
    /// The variables that are used: others may be removed.
    pub referenced_variables: &'a [&'a CStr],
    /// `true` if variables that no code uses are removed.
    pub remove_unused_variables: bool,
}

impl<'a> LtoOptions<'a> {
    /// Every choice is the compiler's.
    #[must_use]
    #[inline]
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

    /// Names the kernels that are used. The others may be removed.
    #[must_use]
    #[inline]
    pub const fn with_referenced_kernels(mut self, names: &'a [&'a CStr]) -> Self {
        self.referenced_kernels = names;
        self
    }

    /// Names the variables that are used. The others may be removed.
    #[must_use]
    #[inline]
    pub const fn with_referenced_variables(mut self, names: &'a [&'a CStr]) -> Self {
        self.referenced_variables = names;
        self
    }

    /// Enables or disables small `f32` values as zero.
    #[must_use]
    #[inline]
    pub const fn with_flush_to_zero(mut self, flush_to_zero: bool) -> Self {
        self.flush_to_zero = Some(flush_to_zero);
        self
    }

    /// Enables or disables exact division of `f32`.
    #[must_use]
    #[inline]
    pub const fn with_precise_division(mut self, precise_division: bool) -> Self {
        self.precise_division = Some(precise_division);
        self
    }

    /// Enables or disables an exact square root of `f32`.
    #[must_use]
    #[inline]
    pub const fn with_precise_square_root(mut self, precise_square_root: bool) -> Self {
        self.precise_square_root = Some(precise_square_root);
        self
    }

    /// Enables or disables contraction of multiplications and additions.
    #[must_use]
    #[inline]
    pub const fn with_fused_multiply_add(mut self, fused_multiply_add: bool) -> Self {
        self.fused_multiply_add = Some(fused_multiply_add);
        self
    }

    /// Enables or disables removing variables that no code uses.
    #[must_use]
    #[inline]
    pub const fn with_remove_unused_variables(mut self, remove_unused_variables: bool) -> Self {
        self.remove_unused_variables = remove_unused_variables;
        self
    }
}
