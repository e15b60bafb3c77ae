//! Fused multiply-add, rounded once on every target.

/// A number with a fused multiply-add.
pub(crate) trait Fused: Copy {
    /// Returns `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
}

/// The C library of MinGW rounds twice: its `fma` adds in the 64-bit significand of x87. Elsewhere
/// this is a single instruction, or a correct function of the C library.
macro_rules! fused {
    ($($number:ident by $software:ident),*) => {$(
        impl Fused for $number {
            #[inline(always)]
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

#[cfg(test)]
mod tests {
    use crate::exec::tests::arithmetic;
    use crate::exec::values::float::{self, Mode, Real};

    /// Returns numbers whose products are close to a midpoint, and addends that determine the
    /// rounding.
    fn singles() -> Vec<[f32; 3]> {
        let ulp = f32::EPSILON;
        let mut cases = vec![
            [1.0 + ulp, 1.0 + ulp, f32::MIN_POSITIVE * ulp],
            [1.0 + ulp, 1.0 - ulp / 2.0, -1.0],
            [f32::MAX, 2.0, -f32::MAX],
            [f32::MIN_POSITIVE, 0.5 + ulp, f32::MIN_POSITIVE * ulp],
            [4097.0, 4097.0, f32::MIN_POSITIVE],
            [4097.0, 4097.0, -f32::MIN_POSITIVE],
        ];
        for shift in 0..60 {
            let tiny = 2.0_f32.powi(-shift);
            cases.extend([
                [1.0 + ulp * 3.0, 1.0 + ulp * 5.0, tiny],
                [4095.0, 4097.0, -tiny],
            ]);
        }
        cases
    }

    fn doubles() -> Vec<[f64; 3]> {
        let ulp = f64::EPSILON;
        let mut cases = vec![
            [1.0 + ulp, 1.0 + ulp, f64::MIN_POSITIVE],
            [1.0 + ulp, 1.0 - ulp / 2.0, -1.0],
            [f64::MAX, 2.0, -f64::MAX],
            [f64::MIN_POSITIVE, 0.5 + ulp, f64::MIN_POSITIVE * ulp],
            [134_217_729.0, 134_217_729.0, f64::MIN_POSITIVE],
            [134_217_729.0, 134_217_729.0, -f64::MIN_POSITIVE],
        ];
        for shift in 0..120 {
            let tiny = 2.0_f64.powi(-shift);
            cases.extend([
                [1.0 + ulp * 3.0, 1.0 + ulp * 5.0, tiny],
                [134_217_727.0, 134_217_729.0, -tiny],
            ]);
        }
        cases
    }

    /// Runs an instruction on these operands, and compares its result with the exact one.
    fn check<T: Real>(instruction: &str, class: (char, char), operands: [T; 3]) {
        let [a, b, c] = operands;
        let exact = float::fma(a, b, c, Mode::NEAREST).bits();
        arithmetic::check(&[(instruction, class, &operands.map(T::bits), exact)]);
    }

    #[test]
    fn hard_cases_are_rounded_once_by_all_handlers() {
        for operands in singles() {
            check("fma.rn.f32 $d, $a, $b, $c;", arithmetic::F, operands);
        }
        for operands in doubles() {
            check("fma.rn.f64 $d, $a, $b, $c;", arithmetic::E, operands);
        }
    }
}
