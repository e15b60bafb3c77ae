//! `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load` and `wmma.store`: matrices between memory and the lanes of a warp.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use super::matrix::{moved_element, shape};
use crate::exec::access::{check_alignment, read_at, write_at};
use crate::exec::matrix::registers::{clear, put};
use crate::exec::matrix::{Element, Fragment, Role, Spread};
use crate::exec::op::{Control, Op, Space};
use crate::exec::program::MovedMatrix;
use crate::exec::report::Trap;
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Operand, ScalarType, Space as State};

impl Lowerer<'_> {
    /// `ldmatrix`, `stmatrix`: up to four 8 by 8 matrices of 16-bit elements.
    pub(super) fn move_small_matrices(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let (registers, address, loads) = match &instruction.operands[..] {
            [registers, Operand::Address(address)] => (registers, address, true),
            [Operand::Address(address), registers] => (registers, address, false),
            _ => return Err(Refusal::form(instruction)),
        };
        let is_usual = shape(instruction).is_some_and(|shape| (shape.m, shape.n) == (8, 8));
        let rows = self.fragment_rows(registers, Element::F16)?;
        let count = if has(Keyword::X4) {
            4
        } else if has(Keyword::X2) {
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
        let op = self.diverging(if loads { run_load_small } else { run_store_small });
        (op.a, op.b, op.space) = (a, b, space);
        op.imm = u64::from(has(Keyword::Trans));
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
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let loads = has(Keyword::Load);
        let (registers, address, stride) = match &instruction.operands[..] {
            [registers, Operand::Address(address), stride @ ..] if loads => (registers, address, stride),
            [Operand::Address(address), registers, stride @ ..] if !loads => (registers, address, stride),
            _ => return Err(Refusal::form(instruction)),
        };
        let element = moved_element(instruction)?;
        let shape = shape(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let (m, n, k) = (u32::from(shape.m), u32::from(shape.n), u32::from(shape.k));
        let (role, height, width) = if has(Keyword::A) {
            (Role::A, m, k)
        } else if has(Keyword::B) {
            (Role::B, k, n)
        } else {
            (Role::C, m, n)
        };
        let rows = self.fragment_rows(registers, element)?;
        let registers = rows.len() as u32;
        let fragment = Fragment { role, element, rows: height, columns: width, spread: Spread::Opaque, registers };
        let last = fragment.home(height.saturating_sub(1), width.saturating_sub(1));
        if last.lane >= 32 || last.register >= fragment.registers {
            return Err(Refusal::form(instruction));
        }
        let by_columns = has(Keyword::Col);
        let b = match stride.first() {
            Some(stride) => self.source(stride, ScalarType::U32)?,
            None => self.word(if by_columns { height } else { width }),
        };
        let a = self.address_row(*address)?;
        let space = self.matrix_space(instruction);
        let rows = self.row_list(rows);
        self.out.matrices.push(MovedMatrix { fragment, rows, by_columns });
        let number = self.out.matrices.len() as u64 - 1;
        let op = self.diverging(if loads { run_load } else { run_store });
        (op.a, op.b, op.imm, op.space) = (a, b, number, space);
        Ok(())
    }

    fn matrix_space(&self, instruction: &Instruction) -> Space {
        let spaces = instruction.modifiers.iter().find_map(|modifier| match modifier {
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

/// Whether lanes are missing; then the instruction must wait for them.
fn is_incomplete(unit: &mut Unit<'_>) -> bool {
    unit.warp.live & !unit.active != 0
}

/// The row and the element of an 8 by 8 matrix that a lane's half is.
fn place_in_small(lane: usize, half: usize, transposed: bool) -> (usize, usize) {
    let (row, column) = (lane / 4, lane % 4 * 2 + half);
    if transposed { (column, row) } else { (row, column) }
}

fn run_load_small(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match load_small(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

fn load_small(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let program = unit.launch.program;
    let rows = &program.functions[unit.frame.function as usize].row_lists[op.b as usize];
    let addresses = *unit.frame.row::<u64>(op.a);
    for (matrix, &register) in rows.iter().enumerate() {
        let mut words = [0; 32];
        for (lane, word) in words.iter_mut().enumerate() {
            for half in 0..2 {
                let (row, column) = place_in_small(lane, half, op.imm == 1);
                let from = 8 * matrix + row;
                check_alignment(addresses[from], 16, from, false)?;
                let value: u16 = read_at(unit, op.space, from, addresses[from] + 2 * column as u64)?;
                *word |= u32::from(value) << (16 * half);
            }
        }
        unit.frame.row_mut::<u32>(register).merge(&words, unit.active);
    }
    Ok(())
}

fn run_store_small(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match store_small(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

fn store_small(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let program = unit.launch.program;
    let rows = &program.functions[unit.frame.function as usize].row_lists[op.b as usize];
    let addresses = *unit.frame.row::<u64>(op.a);
    for (matrix, &register) in rows.iter().enumerate() {
        let words = *unit.frame.row::<u32>(register);
        for (lane, word) in words.iter().enumerate() {
            for half in 0..2 {
                let (row, column) = place_in_small(lane, half, op.imm == 1);
                let to = 8 * matrix + row;
                check_alignment(addresses[to], 16, to, true)?;
                write_at(unit, op.space, to, addresses[to] + 2 * column as u64, (word >> (16 * half)) as u16)?;
            }
        }
    }
    Ok(())
}

fn run_transpose(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    let words = *unit.frame.row::<u32>(op.a);
    let mut result = [0; 32];
    for (lane, word) in result.iter_mut().enumerate() {
        for half in 0..2 {
            let (row, column) = place_in_small(lane, half, true);
            let value = words[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
            *word |= value << (16 * half);
        }
    }
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

/// The element's bit offset from the start of a matrix in memory.
fn offset_of(matrix: &MovedMatrix, row: u32, column: u32, stride: u32) -> u64 {
    let (outer, inner) = if matrix.by_columns { (column, row) } else { (row, column) };
    (u64::from(outer) * u64::from(stride) + u64::from(inner)) * u64::from(matrix.fragment.element.bits())
}

fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match load(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

fn load(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let matrix = &function.matrices[op.imm as usize];
    let rows = &function.row_lists[matrix.rows as usize];
    let fragment = &matrix.fragment;
    let (base, stride) = (unit.frame.row::<u64>(op.a)[0], unit.frame.row::<u32>(op.b)[0]);
    clear(unit, fragment, rows);
    for row in 0..fragment.rows {
        for column in 0..fragment.columns {
            let bit = offset_of(matrix, row, column, stride);
            let address = base.wrapping_add(bit / 8);
            let bits = match fragment.element.bits() {
                64 => read_at::<u64>(unit, op.space, 0, address)?,
                32 => u64::from(read_at::<u32>(unit, op.space, 0, address)?),
                16 => u64::from(read_at::<u16>(unit, op.space, 0, address)?),
                width => {
                    let byte = u64::from(read_at::<u8>(unit, op.space, 0, address)?);
                    byte >> (bit % 8) & (0xff >> (8 - width))
                }
            };
            put(unit, fragment, rows, row, column, bits);
        }
    }
    Ok(())
}

fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match store(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

fn store(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let matrix = &function.matrices[op.imm as usize];
    let rows = &function.row_lists[matrix.rows as usize];
    let fragment = &matrix.fragment;
    let (base, stride) = (unit.frame.row::<u64>(op.a)[0], unit.frame.row::<u32>(op.b)[0]);
    for row in 0..fragment.rows {
        for column in 0..fragment.columns {
            let home = fragment.home(row, column);
            let (index, lane) = (rows[home.register as usize], home.lane as usize);
            let address = base.wrapping_add(offset_of(matrix, row, column, stride) / 8);
            match fragment.element.bits() {
                64 => write_at(unit, op.space, 0, address, unit.frame.row::<u64>(index)[lane])?,
                32 => write_at(unit, op.space, 0, address, unit.frame.row::<u32>(index)[lane])?,
                _ => write_at(unit, op.space, 0, address, (unit.frame.row::<u32>(index)[lane] >> home.shift) as u16)?,
            }
        }
    }
    Ok(())
}
