//! 16-bit floating-point formats on the CPU.

/// A 16-bit format. The tests handle infinities and NaN.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// The number of significant bits, including the implicit one.
    digits: i32,
    /// The exponent of the smallest positive number.
    least: i32,
}

/// Half precision.
pub(super) const F16: Format = Format {
    digits: 11,
    least: -24,
};
/// The upper half of single precision (`bf16`).
pub(super) const BF16: Format = Format {
    digits: 8,
    least: -133,
};

impl Format {
    /// Returns the exponent of the last significant bit of a number.
    fn step(self, value: f64) -> i32 {
        let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        (exponent + 1 - self.digits).max(self.least)
    }

    /// Returns the nearest number, ties to even.
    pub(super) fn round(self, value: f64) -> f64 {
        let step = 2.0_f64.powi(self.step(value));
        (value / step).round_ties_even() * step
    }

    /// Returns the bits of the nearest number.
    pub(super) fn bits(self, value: f64) -> u16 {
        let rounded = self.round(value);
        let step = self.step(rounded);
        let digits = (rounded.abs() / 2.0_f64.powi(step)) as u16;
        let exponent = (step - self.least) as u16;
        // The implicit bit adds one to the exponent of all but subnormal numbers.
        (u16::from(rounded.is_sign_negative()) << 15) | ((exponent << (self.digits - 1)) + digits)
    }

    /// Returns the number with the given bits.
    pub(super) fn value(self, bits: u16) -> f64 {
        let magnitude = bits & 0x7fff;
        let exponent = magnitude >> (self.digits - 1);
        let digits = magnitude & ((1 << (self.digits - 1)) - 1);
        let hidden = u16::from(exponent > 0) << (self.digits - 1);
        let step = self.least + i32::from(exponent.max(1)) - 1;
        let value = f64::from(digits + hidden) * 2.0_f64.powi(step);
        if bits >> 15 == 0 { value } else { -value }
    }
}

/// Returns a · b + c of 16-bit numbers. If a double cannot represent it, returns a neighboring
/// double with an odd last bit, so that the rounding to 16 bits is the only one.
pub(super) fn fused(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let other = sum - product;
    let remainder = (product - (sum - other)) + (c - other);
    let bits = sum.to_bits();
    if remainder == 0.0 || bits & 1 == 1 {
        return sum;
    }
    f64::from_bits(if (remainder > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

#[test]
fn finite_numbers_round_trip() {
    for (format, end) in [(F16, 0x7c00), (BF16, 0x7f80)] {
        for bits in (0..end).flat_map(|bits| [bits, bits | 0x8000]) {
            assert_eq!(format.bits(format.value(bits)), bits, "{bits:#06x}");
        }
    }
    assert_eq!(
        [F16.value(0x3c01), F16.value(0xc000), BF16.value(0x3f81)],
        [1.0 + 2.0_f64.powi(-10), -2.0, 1.0078125]
    );
    let half = 2.0_f64.powi(-11);
    assert_eq!(
        [
            F16.bits(1.0 + half),
            F16.bits(1.0 + 1.01 * half),
            F16.bits(1.0 + 3.0 * half)
        ],
        [0x3c00, 0x3c01, 0x3c02]
    );
}

/// A fused result that a double has no room for is rounded once.
#[test]
fn fused_result_is_rounded_once() {
    let tie = 1.0 + 2.0_f64.powi(-11);
    assert_eq!(
        F16.bits(fused(1.0, tie, 2.0_f64.powi(-70))),
        0x3c01,
        "just above the middle"
    );
    assert_eq!(
        F16.bits(fused(1.0, tie, -2.0_f64.powi(-70))),
        0x3c00,
        "just below it"
    );
    assert_eq!(fused(3.0, 5.0, -7.0), 8.0);
}
