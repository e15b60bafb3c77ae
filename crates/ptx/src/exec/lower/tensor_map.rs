//! `tensormap`: modifications of tensor maps, and their copies to device memory.

use super::asynchronous::{address_space, state};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Op;
use crate::exec::ops::handler::moves::{add_doubles, zero_extend};
use crate::exec::ops::tensor_map::Field;
use crate::exec::ops::tensor_map_update::{SIZE, run_publish, run_replace};
use crate::syntax::{
    Instruction, Integer, Keyword, Modifier, Operand, ScalarType, Semantics, Space as State,
};

/// The driver's number of each element type, by the instruction's number.
const DATA_TYPES: [u64; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15];

impl Lowerer<'_> {
    /// `tensormap.replace`, which modifies a field of a map in device or shared memory.
    pub(super) fn replace_in_tensor_map(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Address(map), rest @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        if instruction.has_keyword(Keyword::CpFenceproxy) {
            return self.publish_tensor_map(instruction);
        }
        if !instruction.has_keyword(Keyword::Replace) || !instruction.has_keyword(Keyword::Tile) {
            return Err(Refusal::form(instruction));
        }
        let replaced = match rest {
            [value] => self.replaced(instruction, value)?,
            [Operand::Integer(dimension), value] => {
                self.replaced_along(instruction, dimension, value)?
            }
            _ => None,
        };
        let (field, b) = replaced.ok_or_else(|| Refusal::form(instruction))?;
        let a = self.address_row(*map)?;
        let space = address_space(state(instruction, 0));
        self.push(Op {
            a,
            b,
            space,
            ..Op::new(run_replace)
        })
        .imm = field.pack();
        Ok(())
    }

    /// `tensormap.cp_fenceproxy`: the threads of a warp together copy a map from shared to device
    /// memory.
    fn publish_tensor_map(&mut self, instruction: &Instruction) -> Lowered {
        let is_spelled = [Keyword::TensormapGeneric, Keyword::Sync, Keyword::Aligned]
            .into_iter()
            .all(|keyword| instruction.has_keyword(keyword))
            && instruction.has(Modifier::Semantics(Semantics::Release))
            && instruction
                .modifiers
                .iter()
                .any(|modifier| matches!(modifier, Modifier::Scope(_)))
            && instruction.modifiers.len() == 8;
        let spaces = [state(instruction, 0), state(instruction, 1)];
        let [
            Operand::Address(to),
            Operand::Address(from),
            Operand::Integer(Integer { bits: SIZE, .. }),
        ] = &instruction.operands[..]
        else {
            return Err(Refusal::form(instruction));
        };
        if !is_spelled || spaces != [Some(State::Global), Some(State::SharedCta)] {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(*to)?;
        let b = self.address_row(*from)?;
        self.push(Op {
            a,
            b,
            ..Op::new(run_publish)
        });
        self.fence();
        Ok(())
    }

    /// Returns a field that exists once, and the row of its new value.
    fn replaced(
        &mut self,
        instruction: &Instruction,
        value: &Operand,
    ) -> Lowered<Option<(Field, u32)>> {
        if instruction.has_keyword(Keyword::GlobalAddress) {
            return Ok(Some((Field::ADDRESS, self.source(value, ScalarType::B64)?)));
        }
        if instruction.has_keyword(Keyword::Rank) {
            // The operand is the rank less one.
            return Ok(Some((Field::RANK, self.sum(value, 1)?)));
        }
        let choices = [
            (Keyword::Elemtype, Field::DATA_TYPE, 16),
            (Keyword::InterleaveLayout, Field::INTERLEAVE, 3),
            (Keyword::SwizzleMode, Field::SWIZZLE, 5),
            (Keyword::SwizzleAtomicity, Field::ATOMICITY, 4),
            (Keyword::FillMode, Field::FILL, 2),
        ];
        let choice = choices
            .into_iter()
            .find(|(keyword, ..)| instruction.has_keyword(*keyword));
        let (Some((keyword, field, count)), Operand::Integer(Integer { bits, .. })) =
            (choice, value)
        else {
            return Ok(None);
        };
        if *bits >= count {
            return Err(Refusal::operand(
                "a valid value of this field of a tensor map",
            ));
        }
        let number = if keyword == Keyword::Elemtype {
            DATA_TYPES[*bits as usize]
        } else {
            *bits
        };
        Ok(Some((field, self.double(number))))
    }

    /// Returns a field that exists for each dimension, and the row of its new value.
    fn replaced_along(
        &mut self,
        instruction: &Instruction,
        dimension: &Integer,
        value: &Operand,
    ) -> Lowered<Option<(Field, u32)>> {
        let dimension = dimension.bits as u32;
        let last = if instruction.has_keyword(Keyword::GlobalStride) {
            3
        } else {
            4
        };
        if dimension > last {
            return Err(Refusal::operand("a dimension of a tensor map"));
        }
        Ok(if instruction.has_keyword(Keyword::GlobalStride) {
            Some((
                Field::stride(dimension),
                self.source(value, ScalarType::B64)?,
            ))
        } else if instruction.has_keyword(Keyword::GlobalDim) {
            Some((Field::extent(dimension), self.sum(value, 0)?))
        } else if instruction.has_keyword(Keyword::ElementStride) {
            Some((Field::step(dimension), self.sum(value, 0)?))
        } else if instruction.has_keyword(Keyword::BoxDim) {
            Some((Field::boxed(dimension), self.sum(value, u64::MAX)?))
        } else {
            None
        })
    }

    /// Returns a 64-bit row with the sum of a 32-bit value and `added`.
    fn sum(&mut self, value: &Operand, added: u64) -> Lowered<u32> {
        let narrow = self.source(value, ScalarType::B32)?;
        let wide = self.new_double();
        self.emit(zero_extend(), wide, [narrow, 0, 0]);
        if added == 0 {
            return Ok(wide);
        }
        let sum = self.new_double();
        let added = self.double(added);
        self.emit(add_doubles(), sum, [wide, added, 0]);
        Ok(sum)
    }
}
