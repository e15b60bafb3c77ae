//! `wgmma`: products of matrices by warpgroups.
//!
//! Of a warpgroup's 64 rows each of its four warps has sixteen, and A and B lie in shared memory or in the warp's own registers, so each
//! computes its rows by itself, at once. Hardware does so later: a program may look at the results, and change the shared memory, only
//! behind `wgmma.wait_group`. That is where the warps of a warpgroup wait for one another, so that one that is behind
//! finds in shared memory what the others found.

use super::access::read_at;
use super::handler::versions;
use super::matrix::descriptor::{Descriptor, PIECE};
use super::matrix::multiply::{Manner, Matrix, Multiply, Problem};
use super::matrix::number::Number;
use super::matrix::registers::{Results, read};
use super::matrix::sparsity::Sparsity;
use super::matrix::{Element, Numbers, Placed};
use super::op::{Control, Handler, Op, Space};
use super::report::Trap;
use super::unit::{Unit, Wait};

/// Threads of a warpgroup.
const THREADS: u32 = 128;
/// Warps of a warpgroup.
const WARPS: u32 = 4;
/// Barriers of a block that programs name; those of warpgroups follow.
pub(crate) const NAMED_BARRIERS: usize = 16;
/// Warpgroups of the largest block.
pub(crate) const MOST_WARPGROUPS: usize = 8;
/// Rows of A that a warp has.
pub(crate) const ROWS: u32 = 16;

/// A product by a warpgroup. Its descriptors are in the rows `a` and `b` of the instruction, its scale in the predicate `c`, which `e` may
/// negate.
#[derive(Clone, Debug)]
pub(crate) struct WarpgroupProduct {
    /// A warp's part of the result.
    pub(crate) to: Placed,
    /// The list of the rows of its registers, and of those of A if A is in registers.
    pub(crate) rows: u32,
    pub(crate) left: Left,
    pub(crate) right: Side,
    /// The inner extent, zeroes of a sparse matrix counted.
    pub(crate) inner: u32,
    pub(crate) manner: Manner,
    pub(crate) sparsity: Option<Sparsity>,
}

/// The place where A is.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// In registers; whether its signs change.
    Registers(Placed, bool),
    /// In shared memory.
    Shared(Side),
}

/// A factor in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) element: Element,
    /// `true` if its signs change.
    pub(crate) is_negative: bool,
    /// `true` if elements that are neighbors in memory are so across the inner extent.
    pub(crate) is_transposed: bool,
}

/// The rows or columns of a factor that are asked for.
#[derive(Clone, Copy)]
struct Part {
    first: u32,
    count: u32,
    inner: u32,
}

versions! {
    /// `wgmma.mma_async` of such numbers.
    multiply() = run_product [T; WIDE] where T: Number, Problem<T>: Multiply
}

#[inline(always)]
fn run_product<T: Number, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    Problem<T>: Multiply,
{
    // The instruction is one of all lanes: those that are missing come first.
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.warpgroup_products[op.imm as usize];
    let rows = function.row_lists[product.rows as usize].as_slice();
    match add_product::<T, WIDE>(unit, op, product, rows) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

/// `wgmma.wait_group`: has the warps of a warpgroup wait for one another.
pub(crate) fn run_wait(unit: &mut Unit<'_>, _op: &Op) -> Control {
    let barrier = NAMED_BARRIERS + (unit.warp.index / WARPS) as usize;
    unit.wait = Wait { barrier, count: THREADS, votes: 0, arrive_only: false };
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
    let (to, inner) = (&product.to, product.inner);
    let (to_rows, left_rows) = rows.split_at(to.fragment.registers as usize);
    let leader = unit.leader();
    let [a, b] = [op.a, op.b].map(|row| Descriptor::from_bits(unit.frame.row::<u64>(row)[leader]));
    let mut problem = Problem::default();
    match &product.left {
        Left::Registers(placed, is_negative) => {
            read::<T, WIDE>(unit, placed, left_rows, 0, &mut problem.a);
            problem.a = signed(problem.a, *is_negative);
        }
        &Left::Shared(side) => {
            let held = if product.sparsity.is_some() { inner / 2 } else { inner };
            let first = unit.warp.index % WARPS * ROWS;
            let across = load::<T>(unit, a, side, Part { first, count: ROWS, inner: held })?;
            problem.a = turned(&across);
        }
    }
    problem.b = load::<T>(unit, b, product.right, Part { first: 0, count: to.fragment.columns, inner })?;
    if (unit.frame.predicate(op.c) ^ op.e) >> leader & 1 == 1 {
        read::<T, WIDE>(unit, to, to_rows, 0, &mut problem.addend);
    } else {
        problem.addend = Matrix::zeroes(ROWS as usize, to.fragment.columns as usize);
    }
    problem.places = product
        .sparsity
        .map(|sparsity| sparsity.places(unit.frame.row::<u32>(sparsity.metadata), product.left.element(), inner));
    let mut bits = Numbers::new();
    problem.multiply(product.manner, &mut bits);
    let mut results = Results::new(to);
    results.set(unit, to_rows, 0, &bits);
    results.write(unit, to_rows);
    Ok(())
}

impl Left {
    fn element(&self) -> Element {
        match self {
            Self::Registers(placed, _) => placed.fragment.element,
            Self::Shared(side) => side.element,
        }
    }
}

fn signed<T: Number>(mut matrix: Matrix<T>, is_negative: bool) -> Matrix<T> {
    if is_negative {
        matrix.negate();
    }
    matrix
}

/// Returns the matrix whose rows are the columns of another.
fn turned<T: Number>(matrix: &Matrix<T>) -> Matrix<T> {
    let (rows, columns) = (matrix.values.len() / matrix.columns, matrix.columns);
    let values = (0..columns).flat_map(|column| (0..rows).map(move |row| matrix.values[row * columns + column]));
    Matrix { values: values.collect(), columns: rows }
}

/// Reads a part of a factor: a row for each place of the inner extent.
fn load<T: Number>(unit: &mut Unit<'_>, descriptor: Descriptor, side: Side, part: Part) -> Result<Matrix<T>, Trap> {
    let bits = side.element.bits();
    let each = PIECE as u32 * 8 / bits;
    let columns = part.count as usize;
    let mut matrix = Matrix::zeroes(part.inner as usize, columns);
    // Pieces run along the inner extent, or across it.
    let (pieces, lines) =
        if side.is_transposed { (part.count / each, part.inner) } else { (part.inner / each, part.count) };
    for line in 0..lines {
        for piece in 0..pieces {
            let address = if side.is_transposed {
                descriptor.across(u64::from(part.first / each + piece), u64::from(line))
            } else {
                descriptor.along(u64::from(part.first + line), u64::from(piece))
            };
            let words = load_piece(unit, address)?;
            for at in 0..each {
                let shift = at * bits;
                let word = words[shift as usize / 64] >> (shift % 64) & u64::MAX >> (64 - bits);
                let (place, column) =
                    if side.is_transposed { (line, piece * each + at) } else { (piece * each + at, line) };
                matrix.values[place as usize * columns + column as usize] = T::read(side.element, word);
            }
        }
    }
    Ok(signed(matrix, side.is_negative))
}

fn load_piece(unit: &mut Unit<'_>, address: u64) -> Result<[u64; 2], Trap> {
    let leader = unit.leader();
    Ok([read_at(unit, Space::Shared, leader, address)?, read_at(unit, Space::Shared, leader, address + PIECE / 2)?])
}
