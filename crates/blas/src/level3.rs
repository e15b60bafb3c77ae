//! Level 3: operations on matrices.

mod batched;
mod diagonal;
mod grouped;
mod mixed;
mod product;
mod triangular;
mod update;

use crate::error::{Error, Result, ShapeError};
use crate::stored::Stored;

pub use self::grouped::{GemmGroup, Grouped};
pub use self::mixed::Mixed;
pub use self::product::Batches;

/// Checks that `c` has the shape of the product of `a` and `b`.
#[inline]
fn check_product_shapes(operation: &'static str, a: Stored, b: Stored, c: Stored) -> Result<()> {
    if (a.columns(), a.rows(), b.columns()) == (b.rows(), c.rows(), c.columns()) {
        return Ok(());
    }
    Err(product_disagrees(operation, a, b, c))
}

#[cold]
fn product_disagrees(operation: &'static str, a: Stored, b: Stored, c: Stored) -> Error {
    ShapeError::refused(
        operation,
        format!("the shapes do not agree (a is {a}, b is {b}, c is {c})"),
    )
}

/// Checks that a factor that cuBLAS takes only as it is stored has the order of the result.
fn same_order(operation: &'static str, b: Stored, c: Stored) -> Result<()> {
    if b.is_transposed == c.is_transposed && !b.is_conjugated {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        "unsupported by cuBLAS (a factor and c are stored in different orders); use the same order",
    ))
}
