//! The video instructions.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::operands::video::{Operation, Pick, Third, Video};
use crate::exec::ops::video::run_video;
use crate::syntax::{
    Compare, Instruction, Keyword, Modifier, Opcode, Operand, Operation as Written, ScalarClass,
    ScalarType, Selector,
};

impl Lowerer<'_> {
    /// `vadd` and the other video instructions.
    pub(super) fn video(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, a, b, rest @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let width = width(instruction.opcode);
        let mut signs = instruction
            .types()
            .map(|scalar| scalar.class() == ScalarClass::Signed);
        let is_set = matches!(
            instruction.opcode,
            Opcode::Vset | Opcode::Vset2 | Opcode::Vset4
        );
        let to = if is_set {
            false
        } else {
            signs.next().ok_or_else(|| Refusal::form(instruction))?
        };
        let signed = [
            to,
            signs.next().ok_or_else(|| Refusal::form(instruction))?,
            signs.next().ok_or_else(|| Refusal::form(instruction))?,
        ];
        let (a, first) = split(a);
        let (b, second) = split(b);
        let (destination, mask) = split(destination);
        let picks = [
            picks(width, first, false).ok_or_else(|| Refusal::form(instruction))?,
            picks(width, second, true).ok_or_else(|| Refusal::form(instruction))?,
        ];
        let third = third(instruction, mask, width, rest.len())
            .ok_or_else(|| Refusal::form(instruction))?;
        let operation = operation(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let saturates = instruction.has(Modifier::Saturate);
        let mut rows = [0; 3];
        for (row, operand) in rows.iter_mut().zip([Some(&a), Some(&b), rest.first()]) {
            *row = match operand {
                Some(operand) => self.source(operand, ScalarType::B32)?,
                None => self.word(0),
            };
        }
        let d = self.destination(&destination, ScalarType::B32)?;
        self.out.videos.push(Video {
            operation,
            width,
            signed,
            picks,
            saturates,
            third,
        });
        let number = self.out.videos.len() as u64 - 1;
        self.emit(run_video, d, rows).imm = number;
        Ok(())
    }
}

/// Returns the number of bits of an element.
fn width(opcode: Opcode) -> u32 {
    use Opcode as O;
    match opcode {
        O::Vadd2 | O::Vsub2 | O::Vabsdiff2 | O::Vmin2 | O::Vmax2 | O::Vavrg2 | O::Vset2 => 16,
        O::Vadd4 | O::Vsub4 | O::Vabsdiff4 | O::Vmin4 | O::Vmax4 | O::Vavrg4 | O::Vset4 => 8,
        _ => 32,
    }
}

/// Returns an operand without its selector, and the selector.
fn split(operand: &Operand) -> (Operand, Option<Selector>) {
    match operand {
        Operand::Select(register, selector) => (Operand::Register(*register), Some(*selector)),
        other => (other.clone(), None),
    }
}

/// Returns the part that each element selects.
fn picks(width: u32, selector: Option<Selector>, second: bool) -> Option<[Pick; 4]> {
    let lanes = (32 / width) as usize;
    let mut picks = [Pick {
        second,
        shift: 0,
        width,
    }; 4];
    let Some(selector) = selector else {
        for (lane, pick) in picks.iter_mut().enumerate().take(lanes) {
            pick.shift = lane as u32 * width;
        }
        return Some(picks);
    };
    let part = if selector.halves { 16 } else { 8 };
    let count = usize::from(selector.count);
    let is_supported = if width == 32 {
        count == 1
    } else {
        count == lanes && part == width
    };
    if !is_supported {
        return None;
    }
    for (lane, pick) in picks.iter_mut().enumerate().take(lanes) {
        // Selectors list the most significant part first. Higher indices select parts of the second
        // register.
        let index = u32::from(selector.indices[count - 1 - lane]);
        let per_register = 32 / part;
        let is_other = index >= per_register;
        *pick = Pick {
            second: if width == 32 { second } else { is_other },
            shift: index % per_register * part,
            width: part,
        };
    }
    Some(picks)
}

fn third(
    instruction: &Instruction,
    mask: Option<Selector>,
    width: u32,
    operands: usize,
) -> Option<Third> {
    let second = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Operation(Written::Add) => Some(Third::Add),
            Modifier::Operation(Written::Min) => Some(Third::Min),
            Modifier::Operation(Written::Max) => Some(Third::Max),
            _ => None,
        });
    Some(match (second, mask, operands) {
        (Some(second), None, 1) => second,
        (None, Some(selector), 1) => {
            let part = if selector.halves { 16 } else { 8 };
            let parts = &selector.indices[..usize::from(selector.count)];
            let mask = parts.iter().fold(0, |mask, index| {
                mask | (u32::MAX >> (32 - part))
                    .checked_shl(u32::from(*index) * part)
                    .unwrap_or(0)
            });
            if mask == 0 || width == 32 && parts.len() != 1 {
                return None;
            }
            Third::Merge { mask }
        }
        // A third operand has no other use in `vmad`, and in vector forms that write all elements.
        (None, None, 0 | 1) => Third::Unused,
        _ => return None,
    })
}

fn operation(instruction: &Instruction) -> Option<Operation> {
    use Opcode as O;
    let wraps = instruction.has_keyword(Keyword::Wrap);
    Some(match instruction.opcode {
        O::Vadd | O::Vadd2 | O::Vadd4 => Operation::Add,
        O::Vsub | O::Vsub2 | O::Vsub4 => Operation::Subtract,
        O::Vabsdiff | O::Vabsdiff2 | O::Vabsdiff4 => Operation::Difference,
        O::Vmin | O::Vmin2 | O::Vmin4 => Operation::Min,
        O::Vmax | O::Vmax2 | O::Vmax4 => Operation::Max,
        O::Vavrg2 | O::Vavrg4 => Operation::Average,
        O::Vshl => Operation::ShiftLeft { wraps },
        O::Vshr => Operation::ShiftRight { wraps },
        O::Vmad => {
            let shift = if instruction.has_keyword(Keyword::Shr7) {
                7
            } else if instruction.has_keyword(Keyword::Shr15) {
                15
            } else {
                0
            };
            Operation::MultiplyAdd {
                shift,
                plus_one: instruction.has_keyword(Keyword::Po),
            }
        }
        _ => Operation::Set(orderings(instruction)?),
    })
}

/// Returns the orderings for which a comparison holds: less, equal and greater, as a mask.
fn orderings(instruction: &Instruction) -> Option<u8> {
    let comparison = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Compare(compare) => Some(*compare),
            _ => None,
        });
    Some(match comparison? {
        Compare::Less => 1,
        Compare::Equal => 2,
        Compare::LessEqual => 3,
        Compare::Greater => 4,
        Compare::NotEqual => 5,
        Compare::GreaterEqual => 6,
        _ => return None,
    })
}
