//! Fused multiply-add, rounded once on every target.

/// A number with a fused multiply-add, which the C library of MinGW rounds twice.
pub trait Fused: Copy {
    /// Returns `self * b + c`, rounded once.
    #[must_use]
    fn fused(self, b: Self, c: Self) -> Self;
}

macro_rules! fused {
    ($($number:ident by $software:ident),*) => {$(
        impl Fused for $number {
            fn fused(self, b: Self, c: Self) -> Self {
                #[cfg(all(windows, target_env = "gnu"))]
                return libm::$software(self, b, c);
                #[cfg(not(all(windows, target_env = "gnu")))]
                return self.mul_add(b, c);
            }
        }
    )*};
}

fused!(f32 by fmaf, f64 by fma);
