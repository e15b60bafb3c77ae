//! The video instructions: arithmetic on bytes, halves and words that are selected from registers.

/// The parameters of a video instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Video {
    pub(crate) operation: Operation,
    /// The number of bits of an element: 32 in scalar forms, 16 or 8 in vector forms.
    pub(crate) width: u32,
    /// `true` for a signed result, first operand and second operand.
    pub(crate) signed: [bool; 3],
    /// The part that each element of the first and the second operand selects.
    pub(crate) picks: [[Pick; 4]; 2],
    pub(crate) saturates: bool,
    /// The use of the third operand.
    pub(crate) third: Third,
}

/// The operation on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Difference,
    Min,
    Max,
    Average,
    ShiftLeft {
        wraps: bool,
    },
    ShiftRight {
        wraps: bool,
    },
    /// The product plus the third operand, shifted right, plus one if `plus_one`.
    MultiplyAdd {
        shift: u32,
        plus_one: bool,
    },
    /// `true` if the comparison holds for one of these orderings: less, equal and greater, as a
    /// mask.
    Set(u8),
}

/// A part of the two registers of the operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pick {
    /// `true` for a part of the second register.
    pub(crate) second: bool,
    /// The lowest bit.
    pub(crate) shift: u32,
    /// The number of bits.
    pub(crate) width: u32,
}

/// The use of the third operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Third {
    /// Unused.
    Unused,
    /// The result, or the sum of all elements, is added to it.
    Add,
    Min,
    Max,
    /// It fills the bits of the result outside the mask. A scalar result is shifted to the lowest
    /// bit of the mask.
    Merge {
        mask: u32,
    },
}

/// Returns the bit of an ordering in [`Operation::Set`].
pub(crate) const fn ordering_bit(ordering: std::cmp::Ordering) -> u8 {
    match ordering {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 4,
    }
}

impl Video {
    /// Returns the result for one thread.
    pub(crate) fn apply(&self, a: u32, b: u32, c: u32) -> u32 {
        let lanes = 32 / self.width;
        let third = if self.signed[0] {
            i64::from(c.cast_signed())
        } else {
            i64::from(c)
        };
        let mut sum = third;
        let mut result = 0;
        for lane in 0..lanes {
            let [x, y] = [0, 1].map(|operand| {
                self.picks[operand][lane as usize].value(a, b, self.signed[1 + operand])
            });
            let value = self.limited(self.operation.apply(x, y, third));
            sum = sum.wrapping_add(value);
            result |= (value as u32 & (u32::MAX >> (32 - self.width))) << (lane * self.width);
        }
        match self.third {
            Third::Unused => result,
            Third::Add => sum as u32,
            // These forms are scalar, so the result is that of the single element.
            Third::Min => (sum - third).min(third) as u32,
            Third::Max => (sum - third).max(third) as u32,
            Third::Merge { mask } if self.width == 32 => {
                (result << mask.trailing_zeros()) & mask | c & !mask
            }
            Third::Merge { mask } => result & mask | c & !mask,
        }
    }

    /// Returns an element's value, saturated or truncated to the range of the result.
    fn limited(&self, value: i64) -> i64 {
        let width = match self.third {
            // A merged result saturates to the part that it fills.
            Third::Merge { mask } if self.width == 32 => mask.count_ones(),
            _ => self.width,
        };
        let (low, high) = if self.signed[0] {
            (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1)
        } else {
            (0, (1i64 << width) - 1)
        };
        if self.saturates {
            return value.clamp(low, high);
        }
        let unused = 64 - width;
        if self.signed[0] {
            value << unused >> unused
        } else {
            value & high
        }
    }
}

impl Pick {
    fn value(self, a: u32, b: u32, signed: bool) -> i64 {
        let register = if self.second { b } else { a };
        let field = u64::from(register >> self.shift) << (64 - self.width);
        if signed {
            field.cast_signed() >> (64 - self.width)
        } else {
            (field >> (64 - self.width)).cast_signed()
        }
    }
}

impl Operation {
    fn apply(self, x: i64, y: i64, c: i64) -> i64 {
        match self {
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Difference => (x - y).abs(),
            Self::Min => x.min(y),
            Self::Max => x.max(y),
            Self::Average => (x + y + i64::from(x + y >= 0)) >> 1,
            Self::ShiftLeft { wraps } => {
                let count = if wraps { y & 31 } else { y };
                if (0..32).contains(&count) {
                    x << count
                } else {
                    0
                }
            }
            Self::ShiftRight { wraps } => x >> if wraps { y & 31 } else { y.clamp(0, 32) },
            Self::MultiplyAdd { shift, plus_one } => {
                let sum = i128::from(x) * i128::from(y) + i128::from(c) + i128::from(plus_one);
                (sum >> shift) as i64
            }
            Self::Set(orderings) => i64::from(orderings & ordering_bit(x.cmp(&y)) != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::operands::video::*;

    fn words(operation: Operation, signed: [bool; 3], saturates: bool) -> Video {
        let picks = [false, true].map(|second| {
            [Pick {
                second,
                shift: 0,
                width: 32,
            }; 4]
        });
        Video {
            operation,
            width: 32,
            signed,
            picks,
            saturates,
            third: Third::Unused,
        }
    }

    #[test]
    fn words_saturate_to_the_result_type() {
        assert_eq!(
            words(Operation::Add, [true; 3], true).apply(0x7fff_ffff, 1, 0),
            0x7fff_ffff
        );
        assert_eq!(
            words(Operation::Subtract, [false; 3], true).apply(1, 2, 0),
            0
        );
        assert_eq!(
            words(Operation::Add, [false; 3], false).apply(u32::MAX, 2, 0),
            1
        );
    }

    #[test]
    fn merged_results_saturate_to_their_part() {
        let video = Video {
            third: Third::Merge { mask: 0xff00 },
            ..words(Operation::Add, [false; 3], true)
        };
        assert_eq!(video.apply(200, 100, 0x1122_3344), 0x1122_ff44);
    }

    #[test]
    fn averages_round_away_from_minus_infinity_at_zero() {
        assert_eq!(Operation::Average.apply(1, 2, 0), 2);
        assert_eq!(Operation::Average.apply(-1, -2, 0), -2);
    }
}
