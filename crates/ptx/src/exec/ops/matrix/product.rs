//! Handlers of `mma` and `wmma.mma`.

use super::registers::{Results, read};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::multiply::{Multiply, Problem};
use crate::exec::matrix::number::Number;
use crate::exec::matrix::{Distribution, Numbers};
use crate::exec::ops::handler::versions;

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
    let product = &function.products[op.table_index()];
    let [to, left, right, addend] = &product.fragments;
    let [to_rows, left_rows, right_rows, addend_rows] =
        product.split(&function.row_lists[product.rows as usize]);
    let element = left.fragment.element;
    let inner = right.fragment.rows;
    let sparse_columns = product
        .sparsity
        .map(|sparsity| sparsity.columns(unit.frame.row::<u32>(sparsity.metadata), element, inner));
    // Each pair of quads computes its own product, in lanes that are four apart.
    let pairs = if matches!(to.fragment.distribution, Distribution::QuadPair { .. }) {
        4
    } else {
        1
    };
    let mut results = Results::new(to);
    for pair in 0..pairs {
        let mut problem = Problem::<T> {
            sparse_columns: sparse_columns.clone(),
            ..Problem::default()
        };
        read::<T, WIDE>(unit, left, left_rows, 4 * pair, &mut problem.a);
        read::<T, WIDE>(unit, right, right_rows, 4 * pair, &mut problem.b);
        read::<T, WIDE>(unit, addend, addend_rows, 4 * pair, &mut problem.addend);
        let mut bits = Numbers::new();
        problem.multiply::<WIDE>(product.kind, &mut bits);
        results.set(unit, to_rows, 4 * pair, &bits);
    }
    results.write(unit, to_rows);
    Control::Next
}
