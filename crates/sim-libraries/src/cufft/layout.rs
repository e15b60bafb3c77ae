//! The layout of a transform in memory.

use curium_sim::Operand;

/// The elements of one side of a transform: rows of the last dimension, in arrays of the others.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// The lengths of the data.
    pub(super) lengths: Vec<usize>,
    /// The lengths of the array that contains the data.
    pub(super) embedding: Vec<usize>,
    pub(super) stride: usize,
    pub(super) distance: usize,
    pub(super) batches: usize,
    /// The size of an element in bytes.
    pub(super) bytes: usize,
}

impl Side {
    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.batches * self.lengths.iter().product::<usize>()
    }

    /// Returns `true` if the number of bytes of the elements, and the distance in bytes of the last one, are in the range of `isize`.
    pub(super) fn is_addressable(&self) -> bool {
        let product = |numbers: &[usize]| {
            numbers
                .iter()
                .try_fold(self.bytes, |product, number| product.checked_mul(*number))
        };
        let elements = product(&self.lengths).and_then(|bytes| bytes.checked_mul(self.batches));
        let array = product(&self.embedding).and_then(|bytes| bytes.checked_mul(self.stride));
        let batches = self
            .distance
            .checked_mul(self.bytes)
            .and_then(|bytes| bytes.checked_mul(self.batches));
        [elements, array, batches]
            .into_iter()
            .all(|bytes| bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()))
    }

    /// Adds the elements at `address` to an operand, in the order of the batches and of the dimensions.
    pub(super) fn in_memory(&self, mut operand: Operand, address: u64) -> Operand {
        let row = self.lengths.last().copied().unwrap_or_default();
        for start in self.rows() {
            let at = |index: usize| address + ((start + index * self.stride) * self.bytes) as u64;
            operand = if self.stride == 1 {
                operand.with_run(at(0), row * self.bytes)
            } else {
                (0..row).fold(operand, |operand, index| {
                    operand.with_run(at(index), self.bytes)
                })
            };
        }
        operand
    }

    /// Returns the first element of each row.
    fn rows(&self) -> impl Iterator<Item = usize> {
        let outer = self.lengths.len() - 1;
        let rows: usize = self.lengths[..outer].iter().product();
        (0..self.batches)
            .flat_map(move |batch| (0..rows).map(move |row| batch * self.distance + self.row(row)))
    }

    fn row(&self, row: usize) -> usize {
        let outer = self.lengths.len() - 1;
        let (mut rest, mut position, mut step) = (row, 0, 1);
        for dimension in (0..outer).rev() {
            step *= self.embedding[dimension + 1];
            position += rest % self.lengths[dimension] * step;
            rest /= self.lengths[dimension];
        }
        position * self.stride
    }
}
