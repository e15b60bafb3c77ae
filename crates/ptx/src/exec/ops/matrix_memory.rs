//! Loads and stores of matrices: `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.

use super::matrix::registers::{clear, write_element};
use crate::exec::check::report::Trap;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::program::MovedMatrix;
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::{check_alignment, read_at, write_at};
use crate::exec::values::lane::Row;

/// Returns `true` if lanes are missing. The instruction then waits for them.
pub(crate) fn is_incomplete(unit: &Unit<'_>) -> bool {
    unit.warp.live & !unit.active != 0
}

/// Returns the row and the column of a lane's element in an 8 by 8 matrix.
fn small_position(lane: usize, half: usize, transposed: bool) -> (usize, usize) {
    let row = lane / 4;
    let column = lane % 4 * 2 + half;
    if transposed {
        (column, row)
    } else {
        (row, column)
    }
}

pub(crate) fn run_load_small(unit: &mut Unit<'_>, op: &Op) -> Control {
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
                let (row, column) = small_position(lane, half, op.imm == 1);
                let from = 8 * matrix + row;
                check_alignment(addresses[from], 16, from, AccessMode::Read)?;
                let value: u16 =
                    read_at(unit, op.space, from, addresses[from] + 2 * column as u64)?;
                *word |= u32::from(value) << (16 * half);
            }
        }
        unit.frame
            .row_mut::<u32>(register)
            .merge(&words, unit.active);
    }
    Ok(())
}

pub(crate) fn run_store_small(unit: &mut Unit<'_>, op: &Op) -> Control {
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
                let (row, column) = small_position(lane, half, op.imm == 1);
                let to = 8 * matrix + row;
                check_alignment(addresses[to], 16, to, AccessMode::Write)?;
                write_at(
                    unit,
                    op.space,
                    to,
                    addresses[to] + 2 * column as u64,
                    (word >> (16 * half)) as u16,
                )?;
            }
        }
    }
    Ok(())
}

pub(crate) fn run_transpose(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    let words = *unit.frame.row::<u32>(op.a);
    let mut result = [0; 32];
    for (lane, word) in result.iter_mut().enumerate() {
        for half in 0..2 {
            let (row, column) = small_position(lane, half, true);
            let value = words[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
            *word |= value << (16 * half);
        }
    }
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

/// Returns the element's bit offset from the start of a matrix in memory.
fn bit_offset(matrix: &MovedMatrix, row: u32, column: u32, stride: u32) -> u64 {
    let (outer, inner) = if matrix.by_columns {
        (column, row)
    } else {
        (row, column)
    };
    (u64::from(outer) * u64::from(stride) + u64::from(inner))
        * u64::from(matrix.fragment.element.bits())
}

pub(crate) fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
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
    let matrix = &function.matrices[op.table_index()];
    let rows = &function.row_lists[matrix.rows as usize];
    let fragment = &matrix.fragment;
    let base = unit.frame.row::<u64>(op.a)[0];
    let stride = unit.frame.row::<u32>(op.b)[0];
    clear(unit, fragment, rows);
    for row in 0..fragment.rows {
        for column in 0..fragment.columns {
            let bit = bit_offset(matrix, row, column, stride);
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
            write_element(unit, fragment, rows, row, column, bits);
        }
    }
    let (distinct, copies) = rows.split_at(fragment.distinct_registers() as usize);
    for (&copy, &original) in copies.iter().zip(distinct.iter().cycle()) {
        *unit.frame.row_mut::<u32>(copy) = Row(*unit.frame.row(original));
    }
    Ok(())
}

pub(crate) fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
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
    let matrix = &function.matrices[op.table_index()];
    let rows = &function.row_lists[matrix.rows as usize];
    let fragment = &matrix.fragment;
    let base = unit.frame.row::<u64>(op.a)[0];
    let stride = unit.frame.row::<u32>(op.b)[0];
    for row in 0..fragment.rows {
        for column in 0..fragment.columns {
            let position = fragment.position(row, column);
            let register = rows[position.register as usize];
            let lane = position.lane as usize;
            let address = base.wrapping_add(bit_offset(matrix, row, column, stride) / 8);
            match fragment.element.bits() {
                64 => {
                    let value = unit.frame.row::<u64>(register)[lane];
                    write_at(unit, op.space, 0, address, value)?;
                }
                32 => {
                    let value = unit.frame.row::<u32>(register)[lane];
                    write_at(unit, op.space, 0, address, value)?;
                }
                _ => {
                    let value = unit.frame.row::<u32>(register)[lane] >> position.shift;
                    write_at(unit, op.space, 0, address, value as u16)?;
                }
            }
        }
    }
    Ok(())
}
