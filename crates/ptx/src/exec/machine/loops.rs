//! The loops of a function, for reports of launches that do not end.

use crate::exec::check::undefined::RegisterRow;
use crate::exec::frame::Frame;

/// A loop: the ops from the target of a backward branch to the branch.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The indices of its first and last op.
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// `true` if an instruction may leave it.
    pub(crate) has_exit: bool,
    /// The instructions that compute the conditions on which it is left.
    pub(crate) conditions: Vec<Condition>,
}

/// An instruction that computes whether a loop is left.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The index of its first op.
    pub(crate) op: u32,
    /// The PTX line.
    pub(crate) line: u32,
    /// `true` if it is outside the loop.
    pub(crate) is_invariant: bool,
    /// The registers that it reads, without predicates.
    pub(crate) registers: Vec<ReadRegister>,
}

/// A register that an instruction reads.
#[derive(Clone, Debug)]
pub(crate) struct ReadRegister {
    pub(crate) name: Box<str>,
    pub(crate) row: RegisterRow,
    pub(crate) format: NumberFormat,
}

/// The interpretation of a register's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    Unsigned,
    Signed { bits: u32 },
    Single,
    Double,
}

impl Loop {
    /// Returns the innermost of a function's loops that contains an op.
    pub(crate) fn innermost(loops: &[Self], pc: u32) -> Option<&Self> {
        loops
            .iter()
            .filter(|candidate| (candidate.first..=candidate.last).contains(&pc))
            .min_by_key(|candidate| candidate.last - candidate.first)
    }
}

impl ReadRegister {
    /// Returns the value in a lane.
    pub(crate) fn value(&self, frame: &Frame, lane: usize) -> Box<str> {
        let bits = match self.row {
            RegisterRow::Word(row) => u64::from(frame.row::<u32>(row)[lane]),
            RegisterRow::Double(row) => frame.row::<u64>(row)[lane],
            RegisterRow::Predicate(number) => u64::from(frame.predicate(number) >> lane & 1),
        };
        self.format.text(bits).into()
    }
}

impl NumberFormat {
    fn text(self, bits: u64) -> String {
        match self {
            Self::Unsigned => bits.to_string(),
            Self::Signed { bits: width } => {
                let shift = u64::BITS.saturating_sub(width);
                (bits << shift)
                    .cast_signed()
                    .wrapping_shr(shift)
                    .to_string()
            }
            Self::Single => format!("{:?}", f32::from_bits(bits as u32)),
            Self::Double => format!("{:?}", f64::from_bits(bits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_format_of_their_type() {
        for (format, bits, expected) in [
            (NumberFormat::Unsigned, 0xffff_ffff, "4294967295"),
            (NumberFormat::Signed { bits: 32 }, 0xffff_ffff, "-1"),
            (NumberFormat::Signed { bits: 16 }, 0x7fff, "32767"),
            (NumberFormat::Signed { bits: 64 }, u64::MAX - 1, "-2"),
            (NumberFormat::Single, 0x3fc0_0000, "1.5"),
            (NumberFormat::Double, 0x7ff0_0000_0000_0000, "inf"),
        ] {
            assert_eq!(format.text(bits), expected);
        }
    }
}
