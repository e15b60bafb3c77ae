//! Products of whole matrices of 16-bit numbers or TF32 by a warp.

use super::fixed_point::{Block, OF_FACTORS, ROWS_TOGETHER, Terms, add_rows, exponents};
use super::product::multiply;
use super::quads::{REGISTERS, read};
use super::registers::{pack, scatter};
use super::rounding::{Rounding, TOGETHER};
use super::{Element, Fragment, Spread};
use crate::exec::handler::versions;
use crate::exec::op::{Control, Handler, Op};
use crate::exec::program::Product;
use crate::exec::unit::Unit;

/// The most blocks of a factor, and of a result.
const OF_FACTOR: usize = 64;
const OF_RESULT: usize = 32;

/// The operands and the result of a product. A worker keeps them, because it would take longer to clear them than to use them.
#[derive(Debug)]
pub(crate) struct Matrices {
    a: Factor,
    b: Factor,
    /// Some columns of B.
    columns: Factor,
    addend: [Block<f32>; OF_RESULT],
    result: [Block<u32>; OF_RESULT],
    /// The elements of the result in the order of the registers.
    registers: [Block<u32>; OF_RESULT],
}

/// The elements of a factor, and their exponents.
#[derive(Debug)]
struct Factor {
    values: [Block<f32>; OF_FACTOR],
    exponents: [Block<i32>; OF_FACTOR],
}

impl Factor {
    fn zeroes() -> Self {
        Self {
            values: [[0.0; TOGETHER]; OF_FACTOR],
            exponents: [[0; TOGETHER]; OF_FACTOR],
        }
    }

    /// Computes the exponents of the first blocks. Returns `false` if they are not moderate.
    #[inline(always)]
    fn set_exponents(&mut self, blocks: usize, least: i32) -> bool {
        let values = self.values[..blocks].as_flattened();
        exponents(
            values,
            least,
            OF_FACTORS,
            self.exponents[..blocks].as_flattened_mut(),
        )
    }
}

impl Matrices {
    fn zeroes() -> Self {
        Self {
            a: Factor::zeroes(),
            b: Factor::zeroes(),
            columns: Factor::zeroes(),
            addend: [[0.0; TOGETHER]; OF_RESULT],
            result: [[0; TOGETHER]; OF_RESULT],
            registers: [[0; TOGETHER]; OF_RESULT],
        }
    }
}

versions! {
    /// Returns the handler of products of whole matrices of narrow numbers.
    multiply_dense() = run_dense [; WIDE]
}

/// Returns the handler of a product if it is one of whole matrices of narrow numbers.
pub(crate) fn handler(product: &Product) -> Option<Handler> {
    let [to, left, right, addend] = product.fragments.each_ref().map(|placed| placed.fragment);
    let is_narrow = matches!(left.element, Element::F16 | Element::Bf16 | Element::Tf32);
    let is_whole = product.sparsity.is_none() && to.spread == Spread::Rows;
    let blocks = |of: Fragment| (of.rows * of.columns) as usize / TOGETHER;
    let has_room = blocks(left).max(blocks(right)) <= OF_FACTOR
        && blocks(to) <= OF_RESULT
        && [left, right, addend]
            .iter()
            .all(|fragment| fragment.registers as usize <= REGISTERS);
    let has_shape = (to.rows as usize).is_multiple_of(ROWS_TOGETHER)
        && (to.columns as usize).is_multiple_of(TOGETHER)
        && Rounding::of(product.manner).fits_words(left.columns as usize);
    (is_narrow && is_whole && has_room && has_shape).then(multiply_dense)
}

#[inline(always)]
fn run_dense<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The instruction executes for all lanes together, so it waits for missing lanes.
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.products[op.imm as usize];
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
    /// Computes a product. Returns `false`, with nothing done, if [`add_rows`] cannot add its terms.
    #[inline(always)]
    fn multiply<const WIDE: bool>(
        &mut self,
        unit: &mut Unit<'_>,
        product: &Product,
        rows: &[u32],
    ) -> bool {
        let [to, left, right, addend] = &product.fragments;
        let [to_rows, left_rows, right_rows, addend_rows] = product.split(rows);
        let how = Rounding::of(product.manner);
        let (height, inner) = (to.fragment.rows as usize, right.fragment.rows as usize);
        let across = to.fragment.columns as usize / TOGETHER;
        let [of_a, of_b, of_result] = [height * inner / TOGETHER, inner * across, height * across];
        read::<WIDE>(
            unit,
            left,
            left_rows,
            self.a.values[..of_a].as_flattened_mut(),
        );
        read::<WIDE>(
            unit,
            right,
            right_rows,
            self.b.values[..of_b].as_flattened_mut(),
        );
        read::<WIDE>(
            unit,
            addend,
            addend_rows,
            self.addend[..of_result].as_flattened_mut(),
        );
        if !self.a.set_exponents(of_a, how.least[0]) || !self.b.set_exponents(of_b, how.least[1]) {
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
            for row in (0..height).step_by(ROWS_TOGETHER) {
                let at = row * across + block;
                let a = a.part(row * inner, ROWS_TOGETHER * inner);
                let (addends, results) =
                    (&self.addend[at..of_result], &mut self.result[at..of_result]);
                if !add_rows::<ROWS_TOGETHER, WIDE>(a, columns, addends, across, how, results) {
                    return false;
                }
            }
        }
        let (result, registers) = (&self.result[..of_result], &mut self.registers[..of_result]);
        scatter(to, result.as_flattened(), registers.as_flattened_mut());
        pack(unit, to, to_rows, registers.as_flattened());
        true
    }
}
