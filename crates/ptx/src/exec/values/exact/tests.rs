//! Checks of rounding against the host, and against integers wide enough to be exact.

use super::*;
use crate::exec::values::fused::Fused as _;

/// Returns edge values, and a reproducible spread of others.
fn samples() -> Vec<f64> {
    let mut values: Vec<f64> = [
        0u64,
        1,
        2,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0x3ff0_0000_0000_0001,
        0x3fef_ffff_ffff_ffff,
        0x4340_0000_0000_0001,
        0x7fef_ffff_ffff_ffff,
        0x3690_0000_0000_0000,
        0x36a0_0000_0000_0001,
        0x47ef_ffff_e000_0000,
        0x47ef_ffff_f000_0000,
    ]
    .iter()
    .flat_map(|&bits| [f64::from_bits(bits), -f64::from_bits(bits)])
    .collect();
    let mut random = fastrand::Rng::with_seed(0);
    for _ in 0..60 {
        let bits = random.u64(..);
        let value = f64::from_bits(bits);
        if value.is_finite() {
            values.push(value);
        }
        // Close exponents, for cancellation and ties.
        values.push(f64::from_bits(bits >> 12 & !0x3ff | 0x3ff0_0000_0000_0000));
    }
    values
}

/// A signed fixed-point number of 4,352 bits whose unit is 2^-2148. It represents every sum and
/// product of two f64 exactly.
#[derive(Clone, PartialEq, Eq)]
struct Fixed {
    negative: bool,
    limbs: [u64; 68],
}

impl Fixed {
    fn new(negative: bool, significand: u128, exponent: i32) -> Self {
        let mut limbs = [0; 68];
        let shift = (exponent + 2148) as usize;
        let limb = shift / 64;
        let bit = shift % 64;
        let low = u128::from(significand as u64) << bit;
        let high = (significand >> 64) << bit;
        limbs[limb] |= low as u64;
        limbs[limb + 1] |= (low >> 64) as u64 | high as u64;
        limbs[limb + 2] |= (high >> 64) as u64;
        Self { negative, limbs }
    }

    fn from_f64(value: f64) -> Self {
        let (significand, exponent) = decode(value);
        Self::new(value.is_sign_negative(), significand, exponent)
    }

    fn product(a: f64, b: f64) -> Self {
        let (a_significand, a_exponent) = decode(a);
        let (b_significand, b_exponent) = decode(b);
        Self::new(
            a.is_sign_negative() != b.is_sign_negative(),
            a_significand * b_significand,
            a_exponent + b_exponent,
        )
    }

    fn magnitude_cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }

    fn plus(&self, other: &Self) -> Self {
        let mut limbs = [0; 68];
        if self.negative == other.negative {
            let mut carry = false;
            for (index, limb) in limbs.iter_mut().enumerate() {
                let (sum, first) = self.limbs[index].overflowing_add(other.limbs[index]);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                *limb = sum;
                carry = first || second;
            }
            return Self {
                negative: self.negative,
                limbs,
            };
        }
        let (big, small) = if self.magnitude_cmp(other).is_ge() {
            (self, other)
        } else {
            (other, self)
        };
        let mut borrow = false;
        for (index, limb) in limbs.iter_mut().enumerate() {
            let (difference, first) = big.limbs[index].overflowing_sub(small.limbs[index]);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        Self {
            negative: big.negative,
            limbs,
        }
    }

    fn is_zero(&self) -> bool {
        self.limbs.iter().all(|&limb| limb == 0)
    }

    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let flipped = Self {
            negative: !other.negative,
            ..other.clone()
        };
        let difference = self.plus(&flipped);
        match (difference.is_zero(), difference.negative) {
            (true, _) => std::cmp::Ordering::Equal,
            (_, true) => std::cmp::Ordering::Less,
            (_, false) => std::cmp::Ordering::Greater,
        }
    }
}

/// Returns the significand and the exponent of a finite number.
fn decode(value: f64) -> (u128, i32) {
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = u128::from(bits & ((1 << 52) - 1));
    let hidden = u128::from(field != 0) << 52;
    (fraction | hidden, field.max(1) - 1075)
}

/// Returns `true` if a number is at most the exact one.
fn is_at_most(value: f64, exact: &Fixed) -> bool {
    value == f64::NEG_INFINITY || (value.is_finite() && Fixed::from_f64(value).cmp(exact).is_le())
}

/// Returns `true` if a number is at least the exact one.
fn is_at_least(value: f64, exact: &Fixed) -> bool {
    value == f64::INFINITY || (value.is_finite() && Fixed::from_f64(value).cmp(exact).is_ge())
}

/// Returns `true` if `result` is `exact` rounded in a direction, by the definition: no number of
/// the format is between them.
fn is_rounded(exact: &Fixed, result: f64, rounding: Rounding) -> bool {
    let rounding = match (rounding, exact.negative) {
        (Rounding::Zero, false) => Rounding::Down,
        (Rounding::Zero, true) => Rounding::Up,
        (other, _) => other,
    };
    match rounding {
        Rounding::Down => is_at_most(result, exact) && !is_at_most(result.next_up(), exact),
        _ => is_at_least(result, exact) && !is_at_least(result.next_down(), exact),
    }
}

const DIRECTED: [Rounding; 3] = [Rounding::Zero, Rounding::Down, Rounding::Up];

/// Directed sums and products of `f32` are exact in `f64`.
#[test]
fn directed_sums_are_exact() {
    let values = samples();
    for (index, &a) in values.iter().enumerate() {
        for (step, &b) in values.iter().enumerate() {
            let c = values[(index * 7 + step * 3) % values.len()];
            let [x, y, z] = [a, b, c].map(Exact::from_f64);
            for rounding in DIRECTED {
                let results = [
                    (
                        x.sum(y, rounding),
                        Fixed::from_f64(a).plus(&Fixed::from_f64(b)),
                    ),
                    (x.product(y), Fixed::product(a, b)),
                    (
                        x.product(y).sum(z, rounding),
                        Fixed::product(a, b).plus(&Fixed::from_f64(c)),
                    ),
                ];
                for (unrounded, exact) in results {
                    let result = f64::from_bits(unrounded.round(F64, rounding));
                    if exact.is_zero() {
                        assert_eq!(result, 0.0, "{a:e} {b:e} {c:e}");
                    } else {
                        assert!(
                            is_rounded(&exact, result, rounding),
                            "{a:e} {b:e} {c:e} {rounding:?} {result:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn nearest_results_match_the_host() {
    let values = samples();
    for &a in &values {
        assert_eq!(
            (a.abs()).sqrt().to_bits(),
            nearest(Exact::from_f64(a.abs()).square_root())
        );
        assert_eq!(
            u64::from((a as f32).to_bits()),
            Exact::from_f64(a).round(F32, Rounding::Nearest)
        );
        for &b in &values {
            let x = Exact::from_f64(a);
            let y = Exact::from_f64(b);
            let sum = nearest(x.sum(y, Rounding::Nearest));
            assert_eq!((a + b).to_bits(), sum, "{a:e} + {b:e}");
            let product = nearest(x.product(y));
            assert_eq!((a * b).to_bits(), product, "{a:e} * {b:e}");
            if b != 0.0 {
                let quotient = nearest(x.quotient(y));
                assert_eq!((a / b).to_bits(), quotient, "{a:e} / {b:e}");
            }
            let fused = nearest(x.product(y).sum(x, Rounding::Nearest));
            assert_eq!(a.fused(b, a).to_bits(), fused, "{a:e} * {b:e} + {a:e}");
        }
    }
}

/// Returns the bits of the nearest f64.
fn nearest(exact: Exact) -> u64 {
    exact.round(F64, Rounding::Nearest)
}

/// Directed quotients and roots bracket the exact values.
#[test]
fn directed_roots_bracket_values() {
    // q <= a / b < next_up(q) is q * b <= a < next_up(q) * b for positive b.
    let values: Vec<f64> = samples()
        .into_iter()
        .filter(|&v| v > 1e-150 && v < 1e150)
        .collect();
    for &a in &values {
        let exact = Exact::from_f64(a);
        let root = f64::from_bits(exact.square_root().round(F64, Rounding::Down));
        assert!(Fixed::product(root, root).cmp(&Fixed::from_f64(a)).is_le());
        assert!(
            Fixed::product(root.next_up(), root.next_up())
                .cmp(&Fixed::from_f64(a))
                .is_gt()
        );
        for &b in &values {
            let quotient = exact.quotient(Exact::from_f64(b));
            let down = f64::from_bits(quotient.round(F64, Rounding::Down));
            let up = f64::from_bits(quotient.round(F64, Rounding::Up));
            assert!(
                Fixed::product(down, b).cmp(&Fixed::from_f64(a)).is_le(),
                "{a:e} / {b:e}"
            );
            assert!(
                Fixed::product(up, b).cmp(&Fixed::from_f64(a)).is_ge(),
                "{a:e} / {b:e}"
            );
            assert!(up == down || up == down.next_up());
        }
    }
}

#[test]
fn narrow_formats_round_trip() {
    for format in [F16, BF16] {
        for bits in 0..=u64::from(u16::MAX) {
            let value = widen(bits, format);
            if !value.is_nan() {
                assert_eq!(narrow(value, format, Rounding::Nearest), bits);
            }
        }
    }
}

#[test]
fn overflow_follows_the_rounding() {
    let huge = Exact::from_f64(1e300);
    let tiny = Exact::from_f64(-1e-300);
    assert_eq!(huge.round(F32, Rounding::Zero), 0x7f7f_ffff);
    assert_eq!(huge.round(F32, Rounding::Down), 0x7f7f_ffff);
    assert_eq!(huge.round(F32, Rounding::Up), 0x7f80_0000);
    assert_eq!(tiny.round(F32, Rounding::Down), 0x8000_0001);
    assert_eq!(tiny.round(F32, Rounding::Up), 0x8000_0000);
    let one = Exact::from_f64(1.0);
    let minus_one = Exact::from_f64(-1.0);
    for (rounding, zero) in [(Rounding::Down, 0x8000_0000), (Rounding::Up, 0)] {
        assert_eq!(one.sum(minus_one, rounding).round(F32, rounding), zero);
    }
}
