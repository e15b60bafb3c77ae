//! `wgmma`: products of matrices by warpgroups.
//!
//! Each of a warpgroup's four warps holds sixteen of its 64 rows. A and B are in shared memory or
//! in the warp's own registers, so each warp computes its rows independently and immediately.
//! Hardware does so later: a program may read the results and change the shared memory only after
//! `wgmma.wait_group`. There the warps of a warpgroup wait for each other, so a later warp finds
//! the same shared memory as the others.

use super::handler::versions;
use super::matrix::registers::{Results, read};
use crate::exec::check::report::Trap;
use crate::exec::machine::barrier::{NAMED_BARRIERS, Wait};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::Numbers;
use crate::exec::matrix::descriptor::{Descriptor, PIECE};
use crate::exec::matrix::multiply::{Matrix, Multiply, Problem};
use crate::exec::matrix::number::Number;
use crate::exec::operands::warpgroup::{Left, SharedFactor, WarpgroupProduct};
use crate::exec::ops::access::read_at;
use crate::exec::space::Space;

/// The number of threads in a warpgroup.
const THREADS: u32 = 128;
/// The number of warps in a warpgroup.
const WARPS: u32 = 4;
/// The number of rows of A that a warp holds.
pub(crate) const ROWS: u32 = 16;

/// The range of rows or columns of a factor.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) inner: u32,
}

versions! {
    /// Returns the handler of `wgmma.mma_async`.
    multiply() = run_product [T; WIDE] where T: Number, Problem<T>: Multiply
}

#[inline(always)]
fn run_product<T: Number, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    Problem<T>: Multiply,
{
    // The instruction executes for all lanes together, so it waits for missing lanes.
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.warpgroup_products[op.table_index()];
    let rows = function.row_lists[product.rows as usize].as_slice();
    match add_product::<T, WIDE>(unit, op, product, rows) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

/// `wgmma.wait_group`: makes the warps of a warpgroup wait for each other.
pub(crate) fn run_wait(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let barrier = NAMED_BARRIERS + (unit.warp.index / WARPS) as usize;
    unit.wait = Wait {
        barrier,
        count: THREADS,
        votes: 0,
        arrive_only: false,
    };
    Control::Wait
}

#[inline(always)]
fn add_product<T: Number, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    product: &WarpgroupProduct,
    rows: &[u32],
) -> Result<(), Trap>
where
    Problem<T>: Multiply,
{
    let to = &product.to;
    let inner = product.inner;
    let (to_rows, left_rows) = rows.split_at(to.fragment.registers as usize);
    let leader = unit.leader();
    let [a, b] = [op.a, op.b].map(|row| Descriptor::from_bits(unit.frame.row::<u64>(row)[leader]));
    let mut problem = Problem::default();
    match &product.left {
        Left::Registers(layout, is_negative) => {
            read::<T, WIDE>(unit, layout, left_rows, 0, &mut problem.a);
            if *is_negative {
                problem.a.negate();
            }
        }
        &Left::Shared(side) => {
            let stored_inner = if product.sparsity.is_some() {
                inner / 2
            } else {
                inner
            };
            let part = Part {
                first: unit.warp.index % WARPS * ROWS,
                count: ROWS,
                inner: stored_inner,
            };
            problem.a = transposed_matrix(&load::<T>(unit, a, side, part)?);
        }
    }
    let part = Part {
        first: 0,
        count: to.fragment.columns,
        inner,
    };
    problem.b = load::<T>(unit, b, product.right, part)?;
    if (unit.frame.predicate(op.c) ^ op.e) >> leader & 1 == 1 {
        read::<T, WIDE>(unit, to, to_rows, 0, &mut problem.addend);
    } else {
        problem.addend = Matrix::zeroes(ROWS as usize, to.fragment.columns as usize);
    }
    problem.sparse_columns = product.sparsity.map(|sparsity| {
        let metadata = unit.frame.row::<u32>(sparsity.metadata);
        sparsity.columns(metadata, product.left.element(), inner)
    });
    let mut bits = Numbers::new();
    problem.multiply::<WIDE>(product.kind, &mut bits);
    let mut results = Results::new(to);
    results.set(unit, to_rows, 0, &bits);
    results.write(unit, to_rows);
    Ok(())
}

/// Returns the transposed matrix.
pub(crate) fn transposed_matrix<T: Number>(matrix: &Matrix<T>) -> Matrix<T> {
    let columns = matrix.columns;
    let rows = matrix.values.len() / columns;
    let values = (0..columns)
        .flat_map(|column| (0..rows).map(move |row| matrix.values[row * columns + column]));
    Matrix {
        values: values.collect(),
        columns: rows,
    }
}

/// Reads a part of a factor, by rows along the inner extent.
pub(crate) fn load<T: Number>(
    unit: &mut Unit<'_>,
    descriptor: Descriptor,
    side: SharedFactor,
    part: Part,
) -> Result<Matrix<T>, Trap> {
    let bits = side.element.bits();
    let elements = PIECE as u32 * 8 / bits;
    let columns = part.count as usize;
    let mut matrix = Matrix::zeroes(part.inner as usize, columns);
    // Pieces run along the inner extent, or across it.
    let (pieces, lines) = if side.is_transposed {
        (part.count / elements, part.inner)
    } else {
        (part.inner / elements, part.count)
    };
    for line in 0..lines {
        for piece in 0..pieces {
            let address = if side.is_transposed {
                descriptor.across(u64::from(part.first / elements + piece), u64::from(line))
            } else {
                descriptor.along(u64::from(part.first + line), u64::from(piece))
            };
            let words = load_piece(unit, address)?;
            for index in 0..elements {
                let shift = index * bits;
                let word = words[shift as usize / 64] >> (shift % 64) & u64::MAX >> (64 - bits);
                let (row, column) = if side.is_transposed {
                    (line, piece * elements + index)
                } else {
                    (piece * elements + index, line)
                };
                matrix.values[row as usize * columns + column as usize] =
                    T::read(side.element, word);
            }
        }
    }
    if side.is_negative {
        matrix.negate();
    }
    Ok(matrix)
}

fn load_piece(unit: &mut Unit<'_>, address: u64) -> Result<[u64; 2], Trap> {
    let leader = unit.leader();
    Ok([
        read_at(unit, Space::Shared, leader, address)?,
        read_at(unit, Space::Shared, leader, address + PIECE / 2)?,
    ])
}
