//! `cvt.rs`: stochastic rounding by the random bits of a register.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::ops::handler::convert_random::{join, rounding, slices};
use crate::exec::ops::handler::moves::copy;
use crate::syntax::{Instruction, Operand, ScalarType};

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
