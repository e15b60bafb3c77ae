//! The run of `mma` and `wmma.mma`.

use super::multiply::{Multiply, Problem};
use super::number::Number;
use super::registers::{Results, read};
use super::{Numbers, Placed, Spread};
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
    // The instruction is one of all lanes: those that are missing come first.
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
    // Each pair of quads has a product of its own, in lanes that are four apart.
    let pairs = if matches!(to.fragment.spread, Spread::QuadPair { .. }) { 4 } else { 1 };
    let mut results = Results::new(to);
    for pair in 0..pairs {
        let mut problem = Problem::<T> { places: places.clone(), ..Problem::default() };
        read::<T, WIDE>(unit, left, left_rows, 4 * pair, &mut problem.a);
        read::<T, WIDE>(unit, right, right_rows, 4 * pair, &mut problem.b);
        read::<T, WIDE>(unit, addend, addend_rows, 4 * pair, &mut problem.addend);
        let mut bits = Numbers::new();
        problem.multiply(product.manner, &mut bits);
        results.set(unit, to_rows, 4 * pair, &bits);
    }
    results.write(unit, to_rows);
    Control::Next
}
