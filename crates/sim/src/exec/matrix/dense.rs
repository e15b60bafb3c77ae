//! Products of whole matrices of 16-bit numbers or TF32 by a warp, in arrays of fixed size.

use super::fixed_point::{Block, OF_ADDENDS, OF_FACTORS, Terms, add_row, exponents};
use super::product::multiply;
use super::registers::{gather, pack, scatter, unpack};
use super::rounding::{Rounding, TOGETHER};
use super::{Element, Placed};
use crate::exec::handler::versions;
use crate::exec::op::{Control, Handler, Op};
use crate::exec::program::Product;
use crate::exec::unit::Unit;

/// A product of `ROWS` rows of `INNER` elements and as many rows of `BLOCKS` blocks of columns. No fragment has more than `HELD` elements
/// in its registers.
struct Tile<const ROWS: usize, const INNER: usize, const BLOCKS: usize, const HELD: usize>;

/// A shape of products.
pub(crate) trait Shape: 'static {
    /// Computes a product. Returns `false`, with nothing done, if [`add_row`] cannot add its terms.
    fn multiply<const WIDE: bool>(unit: &mut Unit<'_>, product: &Product, rows: &[u32]) -> bool;
}

versions! {
    /// Returns the handler of products of a shape.
    multiply_dense() = run_dense [S; WIDE] where S: Shape
}

/// Returns the handler of a product if its numbers and its shape have one.
pub(crate) fn handler(product: &Product) -> Option<Handler> {
    let [to, left, ..] = &product.fragments;
    let is_narrow = matches!(left.fragment.element, Element::F16 | Element::Bf16 | Element::Tf32);
    if !is_narrow || product.sparsity.is_some() {
        return None;
    }
    let held = product.fragments.iter().map(Placed::held).max()?;
    let shape = [to.fragment.rows, to.fragment.columns, left.fragment.columns];
    Some(match (shape, held) {
        ([16, 8, 4], ..=128) => multiply_dense::<Tile<16, 4, 1, 128>>(),
        ([16, 8, 8], ..=128) => multiply_dense::<Tile<16, 8, 1, 128>>(),
        ([16, 8, 16], ..=256) => multiply_dense::<Tile<16, 16, 1, 256>>(),
        ([16, 16, 8], ..=256) => multiply_dense::<Tile<16, 8, 2, 256>>(),
        ([16, 16, 16], ..=512) => multiply_dense::<Tile<16, 16, 2, 512>>(),
        ([8, 32, 16], ..=512) => multiply_dense::<Tile<8, 16, 4, 512>>(),
        ([32, 8, 16], ..=512) => multiply_dense::<Tile<32, 16, 1, 512>>(),
        _ => return None,
    })
}

#[inline(always)]
fn run_dense<S: Shape, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The instruction executes for all lanes together, so it waits for missing lanes.
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.products[op.imm as usize];
    if S::multiply::<WIDE>(unit, product, &function.row_lists[product.rows as usize]) {
        return Control::Next;
    }
    // SAFETY: `multiply` picks the handler by the features of the processor.
    unsafe { multiply::<f32>()(unit, op) }
}

impl<const ROWS: usize, const INNER: usize, const BLOCKS: usize, const HELD: usize> Shape
    for Tile<ROWS, INNER, BLOCKS, HELD>
{
    #[inline(always)]
    fn multiply<const WIDE: bool>(unit: &mut Unit<'_>, product: &Product, rows: &[u32]) -> bool {
        let [to, left, right, addend] = &product.fragments;
        let [to_rows, left_rows, right_rows, addend_rows] = product.split(rows);
        let how = Rounding::of(product.manner);
        let mut a = [[0.0; INNER]; ROWS];
        let mut b = [[[0.0; TOGETHER]; BLOCKS]; INNER];
        let mut addends = [[[0.0; TOGETHER]; BLOCKS]; ROWS];
        read::<HELD, WIDE>(unit, left, left_rows, a.as_flattened_mut());
        read::<HELD, WIDE>(unit, right, right_rows, b.as_flattened_mut().as_flattened_mut());
        read::<HELD, WIDE>(unit, addend, addend_rows, addends.as_flattened_mut().as_flattened_mut());
        let mut of_a = [[0; INNER]; ROWS];
        let mut of_b = [[[0; TOGETHER]; BLOCKS]; INNER];
        let mut tops = [[[0; TOGETHER]; BLOCKS]; ROWS];
        if !exponents(a.as_flattened(), how.least[0], OF_FACTORS, of_a.as_flattened_mut())
            || !exponents(flat(&b), how.least[1], OF_FACTORS, of_b.as_flattened_mut().as_flattened_mut())
            || !exponents(flat(&addends), how.least[2], OF_ADDENDS, tops.as_flattened_mut().as_flattened_mut())
        {
            return false;
        }
        let mut bits = [[[0; TOGETHER]; BLOCKS]; ROWS];
        for block in 0..BLOCKS {
            let (mut factors, mut exponents) = ([[0.0; TOGETHER]; INNER], [[0; TOGETHER]; INNER]);
            for number in 0..INNER {
                (factors[number], exponents[number]) = (b[number][block], of_b[number][block]);
            }
            let columns = Terms { factors: &factors, exponents: &exponents };
            for row in 0..ROWS {
                let terms = Terms { factors: &a[row][..], exponents: &of_a[row][..] };
                let Some(sums) = add_row::<WIDE>(terms, columns, &addends[row][block], tops[row][block], how) else {
                    return false;
                };
                bits[row][block] = sums;
            }
        }
        let mut registers = [0; HELD];
        scatter(to, flat(&bits), &mut registers);
        pack(unit, to, to_rows, &registers);
        true
    }
}

/// Returns the elements of a matrix, row by row.
#[inline(always)]
fn flat<T, const BLOCKS: usize>(matrix: &[[Block<T>; BLOCKS]]) -> &[T] {
    matrix.as_flattened().as_flattened()
}

/// Reads a matrix.
#[inline(always)]
fn read<const HELD: usize, const WIDE: bool>(unit: &Unit<'_>, placed: &Placed, rows: &[u32], values: &mut [f32]) {
    let mut numbers = [0.0; HELD];
    unpack::<f32, WIDE>(unit, placed, rows, &mut numbers);
    gather(placed, &numbers, values);
}
