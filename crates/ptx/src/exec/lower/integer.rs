//! Integer arithmetic, logic and bit fields.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::ops::handler::integer::integer;
use crate::syntax::{Instruction, Modifier, Opcode, ScalarType};

impl Lowerer<'_> {
    /// Lowers an instruction on integers.
    pub(super) fn integer(&mut self, instruction: &Instruction) -> Lowered {
        let Some(scalar) = instruction.types().next() else {
            return Err(Refusal::instruction(instruction));
        };
        let Some(shape) = shape(instruction, scalar) else {
            return Err(Refusal::instruction(instruction));
        };
        let run = integer(instruction, scalar).ok_or_else(|| {
            if instruction.modifiers.len() > 1 {
                Refusal::form(instruction)
            } else {
                Refusal::scalar(instruction, scalar)
            }
        })?;
        let [destination, sources @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        if sources.len() != shape.sources.len() {
            return Err(Refusal::form(instruction));
        }
        let mut rows = [0; 4];
        for (row, (source, scalar)) in rows.iter_mut().zip(sources.iter().zip(shape.sources)) {
            *row = self.source(source, scalar)?;
        }
        let d = self.destination(destination, shape.destination)?;
        self.emit(run, d, [rows[0], rows[1], rows[2]]).e = rows[3];
        Ok(())
    }
}

/// The types of an instruction's operands.
struct Shape {
    destination: ScalarType,
    sources: Vec<ScalarType>,
}

impl Shape {
    /// Returns the shape of an operation whose operands have one type.
    fn uniform(scalar: ScalarType, sources: usize) -> Self {
        Self {
            destination: scalar,
            sources: vec![scalar; sources],
        }
    }
}

fn shape(instruction: &Instruction, scalar: ScalarType) -> Option<Shape> {
    use Opcode as O;
    let t = scalar;
    let wide = instruction.has(Modifier::Wide);
    Some(match instruction.opcode {
        O::Add | O::Sub | O::Div | O::Min | O::Max => Shape::uniform(t, 2),
        O::Mul if wide => Shape {
            destination: widened(t)?,
            sources: vec![t, t],
        },
        O::Mul => Shape::uniform(t, 2),
        O::Mad if wide => {
            let d = widened(t)?;
            Shape {
                destination: d,
                sources: vec![t, t, d],
            }
        }
        O::Mad => Shape::uniform(t, 3),
        O::Neg | O::Abs => Shape::uniform(t, 1),
        _ => return None,
    })
}

fn widened(scalar: ScalarType) -> Option<ScalarType> {
    Some(match scalar {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        _ => return None,
    })
}
