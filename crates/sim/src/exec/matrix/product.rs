//! Handlers of `mma` and `wmma.mma`.

use super::multiply::{Multiply, Problem};
use super::number::Number;
use super::registers::{clear, read, write};
use super::{Placed, Spread};
use crate::exec::handler::versions;
use crate::exec::op::{Control, Handler, Op};
use crate::exec::unit::Unit;

versions! {
    /// Returns the handler of a product of matrices.
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
    let product = &function.products[op.imm as usize];
    let mut rows = function.row_lists[product.rows as usize].as_slice();
    let [to, left, right, addend] = &product.fragments;
    let mut take = |placed: &Placed| {
        let (taken, rest) = rows.split_at(placed.fragment.registers as usize);
        rows = rest;
        taken
    };
    let [to_rows, left_rows, right_rows, addend_rows] = [to, left, right, addend].map(&mut take);
    let (element, inner) = (left.fragment.element, right.fragment.rows);
    let places =
        product.sparsity.map(|sparsity| sparsity.places(unit.frame.row::<u32>(sparsity.metadata), element, inner));
    // Each pair of quads computes its own product, in lanes that are four apart.
    let pairs = if matches!(to.fragment.spread, Spread::QuadPair { .. }) { 4 } else { 1 };
    let mut results = Vec::with_capacity(pairs as usize);
    for pair in 0..pairs {
        let problem = Problem::<T> {
            a: read::<T, WIDE>(unit, left, left_rows, 4 * pair),
            b: read::<T, WIDE>(unit, right, right_rows, 4 * pair),
            addend: read::<T, WIDE>(unit, addend, addend_rows, 4 * pair),
            places: places.clone(),
        };
        results.push(problem.multiply(product.manner));
    }
    clear(unit, &to.fragment, to_rows);
    for (pair, result) in (0..).zip(&results) {
        write(unit, to, to_rows, 4 * pair, result);
    }
    Control::Next
}
