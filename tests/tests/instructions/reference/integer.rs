//! Integers of any width and signedness.

/// An integer type of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

/// The types of 16, 32 and 64 bits.
pub(crate) const INTEGERS: [Integer; 6] = [
    Integer {
        bits: 16,
        signed: false,
    },
    Integer {
        bits: 16,
        signed: true,
    },
    Integer {
        bits: 32,
        signed: false,
    },
    Integer {
        bits: 32,
        signed: true,
    },
    Integer {
        bits: 64,
        signed: false,
    },
    Integer {
        bits: 64,
        signed: true,
    },
];

pub(crate) const U32: Integer = INTEGERS[2];
pub(crate) const S32: Integer = INTEGERS[3];

impl Integer {
    /// Returns the name in PTX.
    pub(crate) fn name(self) -> String {
        format!("{}{}", if self.signed { 's' } else { 'u' }, self.bits)
    }

    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Returns the number represented by these bits.
    pub(crate) fn value(self, bits: u64) -> i128 {
        let unused = 64 - self.bits;
        if self.signed {
            i128::from((bits << unused).cast_signed() >> unused)
        } else {
            i128::from(bits & self.mask())
        }
    }

    /// Returns the low bits of a number.
    pub(crate) fn wrap(self, value: i128) -> u64 {
        value as u64 & self.mask()
    }

    pub(crate) fn least(self) -> i128 {
        if self.signed {
            -(1 << (self.bits - 1))
        } else {
            0
        }
    }

    pub(crate) fn most(self) -> i128 {
        if self.signed {
            (1 << (self.bits - 1)) - 1
        } else {
            (1 << self.bits) - 1
        }
    }

    /// Returns the nearest number of the type.
    pub(crate) fn clamp(self, value: i128) -> u64 {
        self.wrap(value.clamp(self.least(), self.most()))
    }

    /// Returns the type of twice the width.
    pub(crate) fn wide(self) -> Self {
        Self {
            bits: 2 * self.bits,
            ..self
        }
    }

    /// Returns the upper half of a product.
    pub(crate) fn high_product(self, a: u64, b: u64) -> i128 {
        if self.signed {
            return (self.value(a) * self.value(b)) >> self.bits;
        }
        ((u128::from(a & self.mask()) * u128::from(b & self.mask())) >> self.bits) as i128
    }

    /// Returns the quotient, or all ones for a zero divisor.
    pub(crate) fn quotient(self, a: u64, b: u64) -> u64 {
        let a = self.value(a);
        let b = self.value(b);
        if b == 0 {
            self.mask()
        } else {
            self.wrap(a / b)
        }
    }

    /// Returns the remainder, or all ones for a zero divisor.
    pub(crate) fn remainder(self, a: u64, b: u64) -> u64 {
        let a = self.value(a);
        let b = self.value(b);
        if b == 0 {
            self.mask()
        } else {
            self.wrap(a % b)
        }
    }

    /// Returns `length` bits starting at `position`, sign-extended for signed types.
    pub(crate) fn extract(self, a: u64, position: u64, length: u64) -> u64 {
        let last = u64::from(self.bits) - 1;
        let bit = |at: u64| a >> at & 1;
        let sign = if self.signed && length > 0 {
            bit(position.saturating_add(length - 1).min(last))
        } else {
            0
        };
        (0..self.bits)
            .map(|index| {
                let from = position.saturating_add(u64::from(index));
                let is_field = u64::from(index) < length && from <= last;
                (if is_field { bit(from) } else { sign }) << index
            })
            .sum()
    }

    /// Returns `b` with the low bits of `a` inserted at `position`.
    pub(crate) fn insert(self, a: u64, b: u64, position: u64, length: u64) -> u64 {
        (0..u64::from(self.bits))
            .map(|index| {
                let is_field = index >= position && index - position < length;
                (if is_field {
                    a >> (index - position)
                } else {
                    b >> index
                } & 1)
                    << index
            })
            .sum()
    }
}
