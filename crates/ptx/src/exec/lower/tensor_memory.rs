//! `tcgen05`: tensor memory, and the products in it.

use super::asynchronous::{address_space, state};
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::op::{Handler, NO_REGISTER, Op};
use crate::exec::operands::tensor_memory::{
    TensorKind, TensorProduct, TensorTransfer, TransferShape,
};
use crate::exec::ops::tensor_memory::allocation::{run_allocate, run_deallocate, run_relinquish};
use crate::exec::ops::tensor_memory::copy::{CopyShape, run_copy};
use crate::exec::ops::tensor_memory::multiply::{handler, run_commit};
use crate::exec::ops::tensor_memory::transfer::{run_load, run_store, run_wait};
use crate::syntax::{Address, Instruction, Keyword, Operand, ScalarType};

/// Suffixes of forms that are not supported.
const UNSUPPORTED: [Keyword; 9] = [
    Keyword::CtaGroup2,
    Keyword::Sp,
    Keyword::Ws,
    Keyword::BlockScale,
    Keyword::Ashift,
    Keyword::Shift,
    Keyword::Red,
    Keyword::B8x16,
    Keyword::Tile4x256b,
];

impl Lowerer<'_> {
    /// `tcgen05`.
    pub(super) fn tensor_memory(&mut self, instruction: &Instruction) -> Lowered {
        if let Some(keyword) = UNSUPPORTED
            .into_iter()
            .find(|keyword| instruction.has_keyword(*keyword))
        {
            return Err(Refusal(format!(
                "`tcgen05` with .{} is not supported",
                keyword.name()
            )));
        }
        if instruction.has_keyword(Keyword::Mma) {
            return self.multiply_in_tensor_memory(instruction);
        }
        if instruction.has_keyword(Keyword::Commit) {
            return self.commit_tensor_memory(instruction);
        }
        if instruction.has_keyword(Keyword::FenceBeforeThreadSync)
            || instruction.has_keyword(Keyword::FenceAfterThreadSync)
        {
            // Accesses are performed immediately, so fences have no effect.
            return Ok(());
        }
        if instruction.has_keyword(Keyword::Cp) {
            return self.copy_to_tensor_memory(instruction);
        }
        self.join_warp();
        match &instruction.operands[..] {
            [] if instruction.has_keyword(Keyword::RelinquishAllocPermit) => {
                self.diverging(run_relinquish);
                Ok(())
            }
            [] if instruction.has_keyword(Keyword::WaitLd)
                || instruction.has_keyword(Keyword::WaitSt) =>
            {
                let imm = u64::from(instruction.has_keyword(Keyword::WaitSt));
                self.diverging(run_wait).imm = imm;
                Ok(())
            }
            [Operand::Address(to), count] if instruction.has_keyword(Keyword::Alloc) => {
                let a = self.address_row(*to)?;
                let b = self.source(count, ScalarType::B32)?;
                let space = address_space(state(instruction, 0));
                let op = self.diverging(run_allocate);
                (op.a, op.b, op.space) = (a, b, space);
                Ok(())
            }
            [address, count] if instruction.has_keyword(Keyword::Dealloc) => {
                let a = self.source(address, ScalarType::B32)?;
                let b = self.source(count, ScalarType::B32)?;
                let op = self.diverging(run_deallocate);
                (op.a, op.b) = (a, b);
                Ok(())
            }
            [
                Operand::Vector(registers),
                Operand::Address(from),
                distance @ ..,
            ] if instruction.has_keyword(Keyword::Ld) => {
                let mut rows = Vec::with_capacity(registers.len());
                for register in registers {
                    rows.push(self.destination(register, ScalarType::B32)?);
                }
                self.transfer(instruction, *from, distance, rows, run_load)
            }
            [
                Operand::Address(to),
                distance @ ..,
                Operand::Vector(registers),
            ] if instruction.has_keyword(Keyword::St) => {
                let mut rows = Vec::with_capacity(registers.len());
                for register in registers {
                    rows.push(self.source(register, ScalarType::B32)?);
                }
                self.transfer(instruction, *to, distance, rows, run_store)
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// Appends a load or a store.
    fn transfer(
        &mut self,
        instruction: &Instruction,
        address: Address,
        distance: &[Operand],
        rows: Vec<u32>,
        run: Handler,
    ) -> Lowered {
        let distance = match distance {
            [] => 0,
            [Operand::Integer(integer)] => integer.bits.cast_signed(),
            _ => return Err(Refusal::form(instruction)),
        };
        let shape = transfer_shape(instruction, distance)
            .filter(|shape| (rows.len() as u32).is_multiple_of(shape.registers()))
            .ok_or_else(|| Refusal::form(instruction))?;
        let a = self.tensor_address(address)?;
        let rows = self.row_list(rows);
        self.out.tensor_transfers.push(TensorTransfer {
            shape,
            is_packed: instruction.has_keyword(Keyword::Pack16b)
                || instruction.has_keyword(Keyword::Unpack16b),
            rows,
        });
        let imm = self.out.tensor_transfers.len() as u64 - 1;
        let op = self.diverging(run);
        (op.a, op.imm) = (a, imm);
        Ok(())
    }

    /// Returns the 32-bit row of an address in tensor memory.
    fn tensor_address(&mut self, address: Address) -> Lowered<u32> {
        let row = self.address_row(address)?;
        self.source_slot(Slot::Double(row), false)
    }

    fn multiply_in_tensor_memory(&mut self, instruction: &Instruction) -> Lowered {
        let kind = [
            (Keyword::KindF16, TensorKind::F16),
            (Keyword::KindTf32, TensorKind::Tf32),
            (Keyword::KindF8f6f4, TensorKind::F8f6f4),
            (Keyword::KindI8, TensorKind::I8),
        ]
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword));
        let (Some((_, kind)), [Operand::Address(to), left, right, descriptor, rest @ ..]) =
            (kind, &instruction.operands[..])
        else {
            return Err(Refusal::form(instruction));
        };
        let (mask, rest) = match rest {
            [Operand::Vector(mask), rest @ ..] => (Some(mask), rest),
            rest => (None, rest),
        };
        let (accumulates, scale) = match rest {
            [accumulates] => (accumulates, 0),
            // Only floating-point numbers are scaled.
            [accumulates, Operand::Integer(scale)] if kind != TensorKind::I8 => {
                (accumulates, scale.bits as u32)
            }
            _ => return Err(Refusal::form(instruction)),
        };
        let disabled_lanes = match mask {
            None => None,
            Some(mask) => {
                let mut rows = [0; 4];
                if mask.len() != rows.len() {
                    return Err(Refusal::form(instruction));
                }
                for (row, lanes) in rows.iter_mut().zip(mask) {
                    *row = self.source(lanes, ScalarType::B32)?;
                }
                Some(rows)
            }
        };
        let is_left_in_tensor_memory = matches!(left, Operand::Address(_));
        let a = self.address_row(*to)?;
        let b = match left {
            Operand::Address(address) => self.address_row(*address)?,
            left => self.source(left, ScalarType::B64)?,
        };
        let d = self.source(right, ScalarType::B64)?;
        let descriptor = self.source(descriptor, ScalarType::B32)?;
        let (c, e) = self.predicate_source(accumulates)?;
        self.out.tensor_products.push(TensorProduct {
            kind,
            is_left_in_tensor_memory,
            descriptor,
            disabled_lanes,
            scale,
        });
        let imm = self.out.tensor_products.len() as u64 - 1;
        self.push(Op {
            a,
            b,
            d,
            c,
            e,
            imm,
            ..Op::new(handler(kind))
        });
        Ok(())
    }

    fn commit_tensor_memory(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Address(barrier), mask @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let a = self.address_row(*barrier)?;
        let b = match mask {
            [] => NO_REGISTER,
            [mask] => self.source(mask, ScalarType::B16)?,
            _ => return Err(Refusal::form(instruction)),
        };
        let space = address_space(state(instruction, 0));
        self.order();
        self.fence();
        self.push(Op {
            a,
            b,
            space,
            ..Op::new(run_commit)
        });
        Ok(())
    }

    fn copy_to_tensor_memory(&mut self, instruction: &Instruction) -> Lowered {
        let ([Operand::Address(to), descriptor], Some(shape)) =
            (&instruction.operands[..], copy_shape(instruction))
        else {
            return Err(Refusal::form(instruction));
        };
        let a = self.address_row(*to)?;
        let b = self.source(descriptor, ScalarType::B64)?;
        self.push(Op {
            a,
            b,
            imm: shape as u64,
            ..Op::new(run_copy)
        });
        Ok(())
    }
}

fn transfer_shape(instruction: &Instruction, distance: i64) -> Option<TransferShape> {
    let shapes = [
        (Keyword::Tile32x32b, TransferShape::Lanes32Bits32),
        (Keyword::Tile16x64b, TransferShape::Lanes16Bits64),
        (Keyword::Tile16x128b, TransferShape::Lanes16Bits128),
        (Keyword::Tile16x256b, TransferShape::Lanes16Bits256),
        (
            Keyword::Tile16x32bx2,
            TransferShape::Lanes16Bits32Twice { distance },
        ),
    ];
    shapes
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword))
        .map(|(_, shape)| shape)
}

fn copy_shape(instruction: &Instruction) -> Option<CopyShape> {
    let shapes = [
        (Keyword::Tile128x256b, CopyShape::Lanes128Bits256),
        (Keyword::Tile128x128b, CopyShape::Lanes128Bits128),
        (Keyword::Warpx20213, CopyShape::Lanes64ToAlternatingQuarters),
        (Keyword::Warpx20123, CopyShape::Lanes64ToNeighboringQuarters),
        (Keyword::Warpx4, CopyShape::Lanes32ToEveryQuarter),
    ];
    shapes
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword))
        .map(|(_, shape)| shape)
}
