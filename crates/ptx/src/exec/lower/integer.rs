//! Integer arithmetic, logic and bit fields.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::ops::handler::integer::integer;
use crate::syntax::{Instruction, Modifier, Opcode, Operand, ScalarType};

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
        let d = match destination {
            Operand::Pair(Some(register), None) => {
                self.destination(&Operand::Register(*register), shape.destination)?
            }
            other => self.destination(other, shape.destination)?,
        };
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
    let word = ScalarType::U32;
    let wide = instruction.has(Modifier::Wide);
    Some(match instruction.opcode {
        O::Add | O::Sub | O::And | O::Or | O::Xor | O::Div | O::Rem | O::Min | O::Max => {
            Shape::uniform(t, 2)
        }
        O::Mul | O::Mul24 if wide => Shape {
            destination: widened(t)?,
            sources: vec![t, t],
        },
        O::Mul | O::Mul24 => Shape::uniform(t, 2),
        O::Mad | O::Mad24 if wide => {
            let d = widened(t)?;
            Shape {
                destination: d,
                sources: vec![t, t, d],
            }
        }
        O::Mad | O::Mad24 => Shape::uniform(t, 3),
        O::Sad => Shape::uniform(t, 3),
        O::Neg | O::Abs | O::Not | O::Cnot | O::Brev => Shape::uniform(t, 1),
        O::Shl | O::Shr => Shape {
            destination: t,
            sources: vec![t, word],
        },
        O::Popc | O::Clz | O::Bfind => Shape {
            destination: word,
            sources: vec![t],
        },
        O::Bfe => Shape {
            destination: t,
            sources: vec![t, word, word],
        },
        O::Bfi => Shape {
            destination: t,
            sources: vec![t, t, word, word],
        },
        O::Lop3 => Shape {
            destination: t,
            sources: vec![t, t, t, word],
        },
        O::Prmt | O::Shf | O::Fns => Shape::uniform(t, 3),
        O::Bmsk | O::Szext => Shape::uniform(t, 2),
        O::Dp4a | O::Dp2a => Shape::uniform(t, 3),
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
