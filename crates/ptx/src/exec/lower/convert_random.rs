//! `cvt.rs`: stochastic rounding by the random bits of a register.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::moves::copy;
use crate::exec::ops::handler::{binary, unary};
use crate::exec::values::small_float::{BFLOAT, E2M1, E2M3, E3M2, E4M3, E5M2, HALF};
use crate::syntax::{Instruction, Keyword, Modifier, Operand, ScalarType};

impl Lowerer<'_> {
    /// `cvt.rs` of two f32 to 16-bit floats, or of four to a format of at most 8 bits. The first is the upper one.
    pub(super) fn convert_at_random(
        &mut self,
        instruction: &Instruction,
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        let (destination, sources, random): (_, Vec<&Operand>, _) = match &instruction.operands[..]
        {
            [destination, high, low, random] => (destination, vec![high, low], random),
            [destination, Operand::Vector(all), random] if all.len() == 4 => {
                (destination, all.iter().collect(), random)
            }
            _ => return Err(Refusal::form(instruction)),
        };
        let (run, width) = rounding(instruction, to, sources.len())
            .filter(|_| from == ScalarType::F32)
            .ok_or_else(|| Refusal::form(instruction))?;
        let random = self.source(random, ScalarType::B32)?;
        let slices = slices(to);
        let mut whole = None;
        for (source, slice) in sources.into_iter().zip(slices) {
            let a = self.source(source, from)?;
            let part = self.new_word();
            let result = self.new_word();
            self.emit(slice, part, [random, 0, 0]);
            self.emit(run, result, [a, part, 0]);
            whole = Some(match whole {
                None => result,
                Some(above) => {
                    let joined = self.new_word();
                    self.emit(join(width), joined, [above, result, 0]);
                    joined
                }
            });
        }
        let d = self.destination(
            destination,
            if width == 4 {
                ScalarType::B16
            } else {
                ScalarType::B32
            },
        )?;
        self.emit(
            copy::<u32>(),
            d,
            [whole.ok_or_else(|| Refusal::form(instruction))?, 0, 0],
        );
        Ok(())
    }
}

/// Returns the handler that rounds one number with its random bits, and the number of bits of the result.
fn rounding(instruction: &Instruction, to: ScalarType, count: usize) -> Option<(Handler, u32)> {
    use ScalarType as S;
    instruction.rounding()?;
    let is_finite = instruction.has(Modifier::SaturateFinite);
    macro_rules! form {
        ($format:ident, $bits:literal) => {
            match (is_finite, instruction.has_keyword(Keyword::Relu)) {
                (false, false) => form!($format, $bits, f64::from, false),
                (false, true) => form!($format, $bits, rectified, false),
                (true, false) => form!($format, $bits, f64::from, true),
                (true, true) => form!($format, $bits, rectified, true),
            }
        };
        ($format:ident, $bits:literal, $value:path, $finite:literal) => {
            binary(|a: f32, random: u32| {
                $format.narrow_stochastic($value(a), random, $bits, $finite)
            })
        };
    }
    Some(match (to, count) {
        (S::F16x2, 2) => (form!(HALF, 13), 16),
        (S::Bf16x2, 2) => (form!(BFLOAT, 16), 16),
        (S::E4m3x4, 4) if is_finite => (form!(E4M3, 16), 8),
        (S::E5m2x4, 4) if is_finite => (form!(E5M2, 16), 8),
        (S::E2m3x4, 4) if is_finite => (form!(E2M3, 16), 8),
        (S::E3m2x4, 4) if is_finite => (form!(E3M2, 16), 8),
        (S::E2m1x4, 4) if is_finite => (form!(E2M1, 16), 4),
        _ => return None,
    })
}

/// Replaces negative numbers by zero. NaN remains NaN.
#[inline(always)]
fn rectified(value: f32) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else {
        value.max(0.0).abs().into()
    }
}

/// Returns the handlers that extract each number's random bits. Of four numbers, two share 16 random bits, or two bytes for 4-bit formats.
/// The first of the two uses them in reverse.
fn slices(to: ScalarType) -> Vec<Handler> {
    fn reversed(bits: u32) -> u32 {
        bits.reverse_bits() >> 16
    }
    fn odd(random: u32) -> u32 {
        random >> 16 & 0xff00 | random >> 8 & 0xff
    }
    fn even(random: u32) -> u32 {
        random >> 8 & 0xff00 | random & 0xff
    }
    match to {
        ScalarType::F16x2 => vec![
            unary(|random: u32| random >> 16 & 0x1fff),
            unary(|random: u32| random & 0x1fff),
        ],
        ScalarType::Bf16x2 => vec![
            unary(|random: u32| random >> 16),
            unary(|random: u32| random & 0xffff),
        ],
        ScalarType::E2m1x4 => vec![
            unary(|random: u32| reversed(odd(random))),
            unary(|random: u32| odd(random)),
            unary(|random: u32| reversed(even(random))),
            unary(|random: u32| even(random)),
        ],
        _ => vec![
            unary(|random: u32| reversed(random >> 16)),
            unary(|random: u32| random >> 16),
            unary(|random: u32| reversed(random & 0xffff)),
            unary(|random: u32| random & 0xffff),
        ],
    }
}

/// Returns the handler that appends the next number below the earlier ones.
pub(super) fn join(width: u32) -> Handler {
    match width {
        4 => binary(|above: u32, below: u32| above << 4 | below),
        8 => binary(|above: u32, below: u32| above << 8 | below),
        _ => binary(|above: u32, below: u32| above << 16 | below),
    }
}
