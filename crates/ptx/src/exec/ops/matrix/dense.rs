//! Products of whole matrices of 16-bit numbers or TF32 by a warp.

use super::product::multiply;
use super::quads::{REGISTERS, read};
use super::registers::{pack, scatter};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::program::Product;
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::fixed_point::{BLOCK_ROWS, Terms, add_rows};
use crate::exec::matrix::rounding::{BLOCK_COLUMNS, Rounding};
use crate::exec::matrix::workspace::{FACTOR_BLOCKS, Factor, Matrices, RESULT_BLOCKS};
use crate::exec::matrix::{Distribution, Element, Fragment};
use crate::exec::ops::handler::versions;

impl Matrices {
    fn zeroes() -> Self {
        Self {
            a: Factor::zeroes(),
            b: Factor::zeroes(),
            columns: Factor::zeroes(),
            addend: [[0.0; BLOCK_COLUMNS]; RESULT_BLOCKS],
            result: [[0; BLOCK_COLUMNS]; RESULT_BLOCKS],
            registers: [[0; BLOCK_COLUMNS]; RESULT_BLOCKS],
        }
    }
}

versions! {
    /// Returns the handler of products of whole matrices of narrow numbers.
    multiply_dense() = run_dense [; WIDE]
}

/// Returns the handler of a product if it is one of whole matrices of narrow numbers.
pub(crate) fn handler(product: &Product) -> Option<Handler> {
    let [to, left, right, addend] = product.fragments.each_ref().map(|layout| layout.fragment);
    let is_narrow = matches!(left.element, Element::F16 | Element::Bf16 | Element::Tf32);
    let is_whole = product.sparsity.is_none() && to.distribution == Distribution::Rows;
    let has_room = blocks(left).max(blocks(right)) <= FACTOR_BLOCKS
        && blocks(to) <= RESULT_BLOCKS
        && [left, right, addend]
            .iter()
            .all(|fragment| fragment.registers as usize <= REGISTERS);
    let has_shape = (to.rows as usize).is_multiple_of(BLOCK_ROWS)
        && (to.columns as usize).is_multiple_of(BLOCK_COLUMNS)
        && Rounding::new(product.kind).fits_words(left.columns as usize);
    (is_narrow && is_whole && has_room && has_shape).then(multiply_dense)
}

/// Returns the number of blocks of a matrix.
fn blocks(fragment: Fragment) -> usize {
    (fragment.rows * fragment.columns) as usize / BLOCK_COLUMNS
}

#[inline(always)]
fn run_dense<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The instruction executes for all lanes together, so it waits for missing lanes.
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.products[op.table_index()];
    let mut matrices = unit
        .matrices
        .take()
        .unwrap_or_else(|| Box::new(Matrices::zeroes()));
    let is_done =
        matrices.multiply::<WIDE>(unit, product, &function.row_lists[product.rows as usize]);
    *unit.matrices = Some(matrices);
    if is_done {
        return Control::Next;
    }
    // SAFETY: `multiply` picks the handler by the features of the processor.
    unsafe { multiply::<f32>()(unit, op) }
}

impl Matrices {
    /// Computes a product. Returns `false`, with nothing done, if [`add_rows`] cannot add its
    /// terms.
    #[inline(always)]
    fn multiply<const WIDE: bool>(
        &mut self,
        unit: &mut Unit<'_>,
        product: &Product,
        rows: &[u32],
    ) -> bool {
        let [to, left, right, addend] = &product.fragments;
        let [to_rows, left_rows, right_rows, addend_rows] = product.split(rows);
        let rounding = Rounding::new(product.kind);
        let height = to.fragment.rows as usize;
        let inner = right.fragment.rows as usize;
        let across = to.fragment.columns as usize / BLOCK_COLUMNS;
        let a_blocks = height * inner / BLOCK_COLUMNS;
        let b_blocks = inner * across;
        let result_blocks = height * across;
        let a_values = self.a.values[..a_blocks].as_flattened_mut();
        read::<WIDE>(unit, left, left_rows, a_values);
        let b_values = self.b.values[..b_blocks].as_flattened_mut();
        read::<WIDE>(unit, right, right_rows, b_values);
        let addends = self.addend[..result_blocks].as_flattened_mut();
        read::<WIDE>(unit, addend, addend_rows, addends);
        if !self.a.set_exponents(a_blocks, rounding.least[0])
            || !self.b.set_exponents(b_blocks, rounding.least[1])
        {
            return false;
        }
        let a = Terms {
            factors: self.a.values.as_flattened(),
            exponents: self.a.exponents.as_flattened(),
        };
        for block in 0..across {
            let columns = if across == 1 {
                &self.b
            } else {
                for number in 0..inner {
                    self.columns.values[number] = self.b.values[number * across + block];
                    self.columns.exponents[number] = self.b.exponents[number * across + block];
                }
                &self.columns
            };
            let columns = Terms {
                factors: &columns.values[..inner],
                exponents: &columns.exponents[..inner],
            };
            for row in (0..height).step_by(BLOCK_ROWS) {
                let index = row * across + block;
                let is_done = add_rows::<BLOCK_ROWS, WIDE>(
                    a.part(row * inner, BLOCK_ROWS * inner),
                    columns,
                    &self.addend[index..result_blocks],
                    across,
                    rounding,
                    &mut self.result[index..result_blocks],
                );
                if !is_done {
                    return false;
                }
            }
        }
        let result = &self.result[..result_blocks];
        let registers = &mut self.registers[..result_blocks];
        scatter(to, result.as_flattened(), registers.as_flattened_mut());
        pack(unit, to, to_rows, registers.as_flattened());
        true
    }
}
