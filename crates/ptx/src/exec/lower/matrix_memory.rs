//! `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load` and `wmma.store`: matrices between memory and
//! the lanes of a warp.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use super::matrix::{has_copies, moved_element, shape};
use crate::exec::machine::program::MovedMatrix;
use crate::exec::matrix::{Distribution, Element, Fragment, Role};
use crate::exec::ops::matrix_memory::{
    run_load, run_load_small, run_store, run_store_small, run_transpose,
};
use crate::exec::space::Space;
use crate::syntax::{Instruction, Keyword, Modifier, Operand, ScalarType, Space as State};

impl Lowerer<'_> {
    /// `ldmatrix`, `stmatrix`: up to four 8 by 8 matrices of 16-bit elements.
    pub(super) fn move_small_matrices(&mut self, instruction: &Instruction) -> Lowered {
        let (registers, address, loads) = match &instruction.operands[..] {
            [registers, Operand::Address(address)] => (registers, address, true),
            [Operand::Address(address), registers] => (registers, address, false),
            _ => return Err(Refusal::form(instruction)),
        };
        let is_usual = shape(instruction).is_some_and(|shape| (shape.m, shape.n) == (8, 8));
        let rows = self.fragment_rows(registers, Element::F16)?;
        let count = if instruction.has_keyword(Keyword::X4) {
            4
        } else if instruction.has_keyword(Keyword::X2) {
            2
        } else {
            1
        };
        if !is_usual || rows.len() != count || instruction.types().next() != Some(ScalarType::B16) {
            return Err(Refusal::form(instruction));
        }
        let b = self.row_list(rows);
        let a = self.address_row(*address)?;
        let space = self.matrix_space(instruction);
        let op = self.diverging(if loads {
            run_load_small
        } else {
            run_store_small
        });
        (op.a, op.b, op.space) = (a, b, space);
        op.imm = u64::from(instruction.has_keyword(Keyword::Trans));
        Ok(())
    }

    /// `movmatrix`: the transpose of an 8 by 8 matrix of 16-bit elements.
    pub(super) fn transpose_matrix(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let a = self.source(source, ScalarType::B32)?;
        let d = self.destination(destination, ScalarType::B32)?;
        let op = self.diverging(run_transpose);
        (op.a, op.d) = (a, d);
        Ok(())
    }

    /// `wmma.load`, `wmma.store`.
    pub(super) fn move_matrix(&mut self, instruction: &Instruction) -> Lowered {
        let loads = instruction.has_keyword(Keyword::Load);
        let (registers, address, stride) = match &instruction.operands[..] {
            [registers, Operand::Address(address), stride @ ..] if loads => {
                (registers, address, stride)
            }
            [Operand::Address(address), registers, stride @ ..] if !loads => {
                (registers, address, stride)
            }
            _ => return Err(Refusal::form(instruction)),
        };
        let element = moved_element(instruction)?;
        let shape = shape(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let m = u32::from(shape.m);
        let n = u32::from(shape.n);
        let k = u32::from(shape.k);
        let (role, height, width) = if instruction.has_keyword(Keyword::A) {
            (Role::A, m, k)
        } else if instruction.has_keyword(Keyword::B) {
            (Role::B, k, n)
        } else {
            (Role::C, m, n)
        };
        let rows = self.fragment_rows(registers, element)?;
        let registers = rows.len() as u32;
        let fragment = Fragment {
            role,
            element,
            rows: height,
            columns: width,
            distribution: Distribution::Rows,
            registers,
        };
        if !has_copies(registers, fragment.distinct_registers()) {
            return Err(Refusal::form(instruction));
        }
        let by_columns = instruction.has_keyword(Keyword::Col);
        let b = match stride.first() {
            Some(stride) => self.source(stride, ScalarType::U32)?,
            None => self.word(if by_columns { height } else { width }),
        };
        let a = self.address_row(*address)?;
        let space = self.matrix_space(instruction);
        let rows = self.row_list(rows);
        self.out.matrices.push(MovedMatrix {
            fragment,
            rows,
            by_columns,
        });
        let number = self.out.matrices.len() as u64 - 1;
        let op = self.diverging(if loads { run_load } else { run_store });
        (op.a, op.b, op.imm, op.space) = (a, b, number, space);
        Ok(())
    }

    fn matrix_space(&self, instruction: &Instruction) -> Space {
        let spaces = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Space(space) => Some(*space),
                _ => None,
            });
        match spaces {
            Some(State::Shared | State::SharedCta) => Space::Shared,
            Some(State::Global | State::Const) => Space::Global,
            _ => Space::Generic,
        }
    }
}
