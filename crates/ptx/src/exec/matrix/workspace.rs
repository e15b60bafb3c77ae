//! The memory in which a worker multiplies matrices.

use super::fixed_point::{Block, FACTOR_EXPONENTS, exponents};
use super::rounding::BLOCK_COLUMNS;

/// The most blocks of a factor, and of a result.
pub(crate) const FACTOR_BLOCKS: usize = 64;

pub(crate) const RESULT_BLOCKS: usize = 32;

/// The operands and the result of a product. A worker keeps them, because it would take longer to
/// clear them than to use them.
#[derive(Debug)]
pub(crate) struct Matrices {
    pub(crate) a: Factor,
    pub(crate) b: Factor,
    /// Some columns of B.
    pub(crate) columns: Factor,
    pub(crate) addend: [Block<f32>; RESULT_BLOCKS],
    pub(crate) result: [Block<u32>; RESULT_BLOCKS],
    /// The elements of the result in the order of the registers.
    pub(crate) registers: [Block<u32>; RESULT_BLOCKS],
}

/// The elements of a factor, and their exponents.
#[derive(Debug)]
pub(crate) struct Factor {
    pub(crate) values: [Block<f32>; FACTOR_BLOCKS],
    pub(crate) exponents: [Block<i32>; FACTOR_BLOCKS],
}

impl Factor {
    pub(crate) fn zeroes() -> Self {
        Self {
            values: [[0.0; BLOCK_COLUMNS]; FACTOR_BLOCKS],
            exponents: [[0; BLOCK_COLUMNS]; FACTOR_BLOCKS],
        }
    }

    /// Computes the exponents of the first blocks. Returns `false` if one of them is outside
    /// [`FACTOR_EXPONENTS`].
    #[inline(always)]
    pub(crate) fn set_exponents(&mut self, blocks: usize, least: i32) -> bool {
        let values = self.values[..blocks].as_flattened();
        exponents(
            values,
            least,
            FACTOR_EXPONENTS,
            self.exponents[..blocks].as_flattened_mut(),
        )
    }
}
