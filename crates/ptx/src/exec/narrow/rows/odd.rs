//! Rounding to odd: of the two numbers next to an exact result, the one whose last bit is set. Rounding it again rounds the exact result.

/// Defines a sum that is rounded to odd.
macro_rules! odd_sums {
    ($($name:ident $ty:ty),*) => {$(
        #[inline(always)]
        pub(super) fn $name(a: $ty, b: $ty) -> $ty {
            let sum = a + b;
            let of_b = sum - a;
            let lost = (a - (sum - of_b)) + (b - of_b);
            let bits = sum.to_bits();
            let farther = (lost > 0.0) == (sum > 0.0);
            let moved = if farther { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            let moves = lost != 0.0 && !lost.is_nan() && bits & 1 == 0;
            <$ty>::from_bits(if moves { moved } else { bits })
        }
    )*};
}

odd_sums!(odd_sum f32, odd_sum_wide f64);

/// Rounds a number to odd in f32, so that rounding it to 16 bits rounds the original number.
#[inline(always)]
pub(crate) fn odd_single(value: f64) -> f32 {
    let single = value as f32;
    let is_exact = f64::from(single) == value;
    let toward_zero = single
        .to_bits()
        .wrapping_sub(u32::from(f64::from(single).abs() > value.abs()));
    f32::from_bits(if is_exact || value.is_nan() {
        single.to_bits()
    } else {
        toward_zero | 1
    })
}
