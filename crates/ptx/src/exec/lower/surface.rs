//! `suld`, `sust` and `sured`: loads, stores and reductions of surfaces, by bytes or by formatted
//! elements.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::texture::geometry;
use crate::exec::image::{Change, OutOfBounds, SurfaceAccess};
use crate::exec::machine::op::{Handler, Op};
use crate::exec::ops::surface::{load, run_reduce, run_store, run_store_formatted};
use crate::syntax::{Instruction, Keyword, Operand, Operation, ScalarType, Tensor};

/// The maximum number of bytes of an access.
const WIDEST: u64 = 16;

impl Lowerer<'_> {
    /// `suld.b`.
    pub(super) fn load_surface(&mut self, instruction: &Instruction) -> Lowered {
        moved_bits(instruction)?;
        match &instruction.operands[..] {
            [destination, Operand::Tensor(tensor)] if !is_formatted(instruction) => {
                self.surface(instruction, tensor, destination, load())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sust`.
    pub(super) fn store_surface(&mut self, instruction: &Instruction) -> Lowered {
        let run = if is_formatted(instruction) {
            run_store_formatted
        } else {
            run_store
        };
        moved_bits(instruction)?;
        match &instruction.operands[..] {
            [Operand::Tensor(tensor), source] => self.surface(instruction, tensor, source, run),
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sured`.
    pub(super) fn reduce_surface(&mut self, instruction: &Instruction) -> Lowered {
        let change = if is_formatted(instruction) {
            Some([
                reduction(instruction, ScalarType::U32),
                reduction(instruction, ScalarType::S32),
            ])
        } else {
            instruction
                .types()
                .next()
                .map(|scalar| [reduction(instruction, scalar); 2])
        };
        let Some([Some(plain), Some(signed)]) = change else {
            return Err(Refusal::form(instruction));
        };
        if is_formatted(instruction) && instruction.types().next() != Some(ScalarType::B32)
            || geometry(instruction)?.has_layers()
        {
            return Err(Refusal::form(instruction));
        }
        let [Operand::Tensor(tensor), source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        self.surface(instruction, tensor, source, run_reduce)?;
        if let Some(access) = self.out.surfaces.last_mut() {
            access.change = Some([plain, signed]);
        }
        Ok(())
    }

    fn surface(
        &mut self,
        instruction: &Instruction,
        tensor: &Tensor,
        moved: &Operand,
        run: Handler,
    ) -> Lowered {
        let scalar = instruction
            .types()
            .next()
            .ok_or_else(|| Refusal::form(instruction))?;
        let out_of_bounds = out_of_bounds(instruction)?;
        let formatted = is_formatted(instruction);
        let spot = self.coordinates(instruction, tensor)?;
        if spot.geometry.is_cube() || tensor.sampler.is_some() {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(tensor.handle)?;
        let (slots, ..) = self.elements(moved, scalar)?;
        if !matches!(slots.len(), 1 | 2 | 4) || slots.len() as u64 * scalar.bytes() > WIDEST {
            return Err(Refusal::form(instruction));
        }
        let registers = slots
            .into_iter()
            .map(|slot| match (slot, scalar.bits() == 64) {
                (Slot::Word(row), false) | (Slot::Double(row), true) => Ok(row),
                _ => Err(Refusal::operand(
                    "registers of the width of the surface access",
                )),
            })
            .collect::<Lowered<_>>()?;
        let bytes = scalar.bytes();
        self.out.surfaces.push(SurfaceAccess {
            coordinates: spot,
            registers,
            bytes,
            formatted,
            out_of_bounds,
            change: None,
        });
        let number = self.out.surfaces.len() as u64 - 1;
        self.push(Op { a, ..Op::new(run) }).imm = number;
        Ok(())
    }
}

fn out_of_bounds(instruction: &Instruction) -> Lowered<OutOfBounds> {
    let modes = [
        (Keyword::Trap, OutOfBounds::Trap),
        (Keyword::Clamp, OutOfBounds::Clamp),
        (Keyword::Zero, OutOfBounds::Zero),
    ];
    modes
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword))
        .map(|(_, out_of_bounds)| out_of_bounds)
        .ok_or_else(|| Refusal::form(instruction))
}

/// Checks the width of a load or store. Formatted accesses have words only.
fn moved_bits(instruction: &Instruction) -> Lowered {
    use ScalarType::{B8, B16, B32, B64};
    match instruction.types().next() {
        Some(B32) => Ok(()),
        Some(B8 | B16 | B64) if !is_formatted(instruction) => Ok(()),
        _ => Err(Refusal::form(instruction)),
    }
}

/// Returns `true` if an access counts elements instead of bytes, and converts them.
fn is_formatted(instruction: &Instruction) -> bool {
    !instruction.has_keyword(Keyword::B)
}

/// Returns the operation of a reduction of numbers of a type.
fn reduction(instruction: &Instruction, scalar: ScalarType) -> Option<Change> {
    let is_of_bits = scalar == ScalarType::B32 || is_formatted(instruction);
    Some(match scalar {
        _ if is_of_bits && instruction.has_operation(Operation::And) => |old, new| old & new,
        _ if is_of_bits && instruction.has_operation(Operation::Or) => |old, new| old | new,
        // Sums are truncated to the width.
        ScalarType::U32 | ScalarType::S32 | ScalarType::U64
            if instruction.has_operation(Operation::Add) =>
        {
            u64::wrapping_add
        }
        ScalarType::U32 | ScalarType::U64 if instruction.has_operation(Operation::Min) => u64::min,
        ScalarType::U32 | ScalarType::U64 if instruction.has_operation(Operation::Max) => u64::max,
        ScalarType::S64 if instruction.has_operation(Operation::Min) => {
            |old, new| old.cast_signed().min(new.cast_signed()).cast_unsigned()
        }
        ScalarType::S64 if instruction.has_operation(Operation::Max) => {
            |old, new| old.cast_signed().max(new.cast_signed()).cast_unsigned()
        }
        ScalarType::S32 if instruction.has_operation(Operation::Min) => {
            |old, new| u64::from((old as i32).min(new as i32).cast_unsigned())
        }
        ScalarType::S32 if instruction.has_operation(Operation::Max) => {
            |old, new| u64::from((old as i32).max(new as i32).cast_unsigned())
        }
        _ => return None,
    })
}
