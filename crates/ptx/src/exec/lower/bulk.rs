//! Bulk copies, reductions and prefetches of contiguous bytes.

use super::asynchronous::{address_space, state};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{NO_REGISTER, Op};
use crate::exec::operands::bulk::BulkReduction;
use crate::exec::ops::bulk::{
    FROM_SHARED, LIST_SHIFT, TO_SHARED, run_bulk, run_masked, run_partial, run_prefetch,
    run_reduction,
};
use crate::exec::ops::tensor::{self};
use crate::exec::space::Space;
use crate::syntax::{
    Address, CacheLevel, Instruction, Keyword, Modifier, Operand, Operation, ScalarType,
    Space as State,
};

impl Lowerer<'_> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`.
    pub(super) fn copy_bulk(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Tensor) {
            return self.copy_tensor(instruction);
        }
        // Copies complete immediately, so groups are always complete.
        if instruction.has_keyword(Keyword::CommitGroup)
            || instruction.has_keyword(Keyword::WaitGroup)
        {
            return Ok(());
        }
        if instruction.has_keyword(Keyword::Prefetch) {
            return self.prefetch_bulk(instruction);
        }
        let [
            Operand::Address(to),
            Operand::Address(from),
            size,
            rest @ ..,
        ] = &instruction.operands[..]
        else {
            return Err(Refusal::form(instruction));
        };
        if instruction.has_keyword(Keyword::IgnoreOob) {
            return self.copy_partially(instruction, [*to, *from], size, rest);
        }
        let reduction = if instruction.has_keyword(Keyword::Reduce) {
            Some(reduction(instruction)?)
        } else {
            None
        };
        let a = self.address_row(*to)?;
        let b = self.address_row(*from)?;
        let c = self.source(size, ScalarType::U32)?;
        let spaces = [
            address_space(state(instruction, 0)),
            address_space(state(instruction, 1)),
        ];
        let barrier = match rest.first() {
            Some(Operand::Address(barrier)) => self.address_row(*barrier)?,
            _ => NO_REGISTER,
        };
        let mask = self.mask(instruction, rest)?;

        let run = match reduction {
            Some(_) => run_reduction,
            None if instruction.has_keyword(Keyword::CpMask) => run_masked,
            None => run_bulk,
        };
        let number = self.out.reductions.len() as u64;
        self.out.reductions.extend(reduction);
        let op = self.push(Op {
            a,
            b,
            c,
            d: mask,
            e: barrier,
            ..Op::new(run)
        });
        op.imm = number << LIST_SHIFT;
        if spaces[0] == Space::Shared {
            op.imm |= TO_SHARED;
        }
        if spaces[1] == Space::Shared {
            op.imm |= FROM_SHARED;
        }
        Ok(())
    }

    /// `cp.async.bulk.ignore_oob`.
    fn copy_partially(
        &mut self,
        instruction: &Instruction,
        [to, from]: [Address; 2],
        size: &Operand,
        rest: &[Operand],
    ) -> Lowered {
        let spaces = [state(instruction, 0), state(instruction, 1)];
        let hint = usize::from(instruction.has(Modifier::CacheHint));
        let [left, right, Operand::Address(barrier), policy @ ..] = rest else {
            return Err(Refusal::form(instruction));
        };
        let is_supported = spaces == [Some(State::SharedCta), Some(State::Global)]
            && instruction.has_keyword(Keyword::MbarrierCompleteTxBytes)
            && instruction.modifiers.len() == 6 + hint
            && policy.len() == hint;
        if !is_supported {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(to)?;
        let b = self.address_row(from)?;
        let c = self.source(size, ScalarType::U32)?;
        let e = self.address_row(*barrier)?;
        let ignored = vec![
            self.source(left, ScalarType::U32)?,
            self.source(right, ScalarType::U32)?,
        ];
        let list = self.row_list(ignored);
        self.push(Op {
            a,
            b,
            c,
            e,
            imm: u64::from(list) << LIST_SHIFT | TO_SHARED,
            ..Op::new(run_partial)
        });
        Ok(())
    }

    /// Returns the row of the mask of destination blocks, or of copied bytes.
    fn mask(&mut self, instruction: &Instruction, rest: &[Operand]) -> Lowered<u32> {
        match rest {
            [_, mask, ..] if instruction.has_keyword(Keyword::MulticastCluster) => {
                self.source(mask, ScalarType::B16)
            }
            [.., mask] if instruction.has_keyword(Keyword::CpMask) => {
                self.byte_mask(instruction, mask)
            }
            _ if instruction.has_keyword(Keyword::CpMask) => Err(Refusal::form(instruction)),
            _ => Ok(NO_REGISTER),
        }
    }

    /// Returns the row of the mask of copied bytes in each group of 16, which copies to device
    /// memory may have.
    fn byte_mask(&mut self, instruction: &Instruction, mask: &Operand) -> Lowered<u32> {
        let keywords = [
            Keyword::Async,
            Keyword::Bulk,
            Keyword::BulkGroup,
            Keyword::CpMask,
        ]
        .map(Modifier::Keyword);
        let spaces = [State::Global, State::SharedCta].map(Modifier::Space);
        let hint = usize::from(instruction.has(Modifier::CacheHint));
        let are_supported = instruction.modifiers.iter().all(|modifier| {
            keywords.contains(modifier)
                || spaces.contains(modifier)
                || *modifier == Modifier::CacheHint
        });
        if !are_supported || instruction.operands.len() != 4 + hint {
            return Err(Refusal::form(instruction));
        }
        self.source(mask, ScalarType::B16)
    }

    fn prefetch_bulk(&mut self, instruction: &Instruction) -> Lowered {
        let hint = usize::from(instruction.has(Modifier::CacheHint));
        let is_supported = instruction.has(Modifier::Level(CacheLevel::L2))
            && state(instruction, 0) == Some(State::Global);
        match &instruction.operands[..] {
            [Operand::Address(from), size, rest @ ..] if is_supported && rest.len() == hint => {
                let a = self.address_row(*from)?;
                let c = self.source(size, ScalarType::U32)?;
                self.push(Op {
                    a,
                    c,
                    ..Op::new(run_prefetch)
                });
                Ok(())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }
}

/// Returns the operation of `cp.reduce.async.bulk`, or a refusal of a form that does not exist.
fn reduction(instruction: &Instruction) -> Lowered<BulkReduction> {
    let operation = operation(instruction);
    let scalar = instruction.types().next();
    let (Some(operation), Some(scalar)) = (operation, scalar) else {
        return Err(Refusal::form(instruction));
    };
    let spaces = [state(instruction, 0), state(instruction, 1)];
    let is_device = spaces[0] == Some(State::Global);
    let is_half = matches!(scalar, ScalarType::F16 | ScalarType::Bf16);
    // Sums of 16-bit floats are spelled with `.noftz`.
    let is_spelled =
        instruction.has_keyword(Keyword::Noftz) == (is_half && operation == Operation::Add);
    let is_whole = matches!(scalar, ScalarType::B32 | ScalarType::U32 | ScalarType::S32)
        || scalar == ScalarType::U64 && operation == Operation::Add;
    let (destination, completion, operands) = if is_device {
        (
            State::Global,
            Keyword::BulkGroup,
            3 + usize::from(instruction.has(Modifier::CacheHint)),
        )
    } else {
        (State::SharedCluster, Keyword::MbarrierCompleteTxBytes, 4)
    };
    let is_placed = spaces == [Some(destination), Some(State::SharedCta)]
        && instruction.has_keyword(completion);
    let suffixes = 8
        + usize::from(instruction.has_keyword(Keyword::Noftz))
        + usize::from(instruction.has(Modifier::CacheHint));
    let is_whole = (is_device || is_whole) && instruction.modifiers.len() == suffixes;
    if !is_spelled || !is_placed || !is_whole || instruction.operands.len() != operands {
        return Err(Refusal::form(instruction));
    }
    let change = tensor::change(operation, scalar).ok_or_else(|| Refusal::form(instruction))?;
    Ok(BulkReduction {
        change,
        bytes: scalar.bytes(),
    })
}

/// Returns the operation of a reduction.
pub(super) fn operation(instruction: &Instruction) -> Option<Operation> {
    instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Operation(operation) => Some(*operation),
            _ => None,
        })
}
