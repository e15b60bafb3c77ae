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

    /// Returns `true` if the number of bytes of the elements, and the distance in bytes of the last
    /// one, are in the range of `isize`.
    pub(super) fn is_addressable(&self) -> bool {
        let elements = self
            .checked_bytes(&self.lengths)
            .and_then(|bytes| bytes.checked_mul(self.batches));
        let array = self
            .checked_bytes(&self.embedding)
            .and_then(|bytes| bytes.checked_mul(self.stride));
        let batches = self.checked_bytes(&[self.distance, self.batches]);
        [elements, array, batches]
            .into_iter()
            .all(|bytes| bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()))
    }

    /// Returns the size of an array with these lengths in bytes.
    fn checked_bytes(&self, lengths: &[usize]) -> Option<usize> {
        lengths
            .iter()
            .try_fold(self.bytes, |bytes, length| bytes.checked_mul(*length))
    }

    /// Adds the elements at `address` to an operand, in the order of the batches and of the
    /// dimensions.
    pub(super) fn in_memory(&self, mut operand: Operand, address: u64) -> Operand {
        let array: usize = self.lengths.iter().product();
        let is_contiguous = self.stride == 1
            && self.embedding == self.lengths
            && (self.batches == 1 || self.distance == array);
        if is_contiguous {
            return operand.with_run(address, self.len() * self.bytes);
        }
        let row = self.lengths.last().copied().unwrap_or_default();
        for start in self.rows() {
            let first = address + (start * self.bytes) as u64;
            if self.stride == 1 {
                operand = operand.with_run(first, row * self.bytes);
                continue;
            }
            for index in 0..row {
                let offset = (index * self.stride * self.bytes) as u64;
                operand = operand.with_run(first + offset, self.bytes);
            }
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
        let mut remaining = row;
        let mut position = 0;
        let mut step = 1;
        for dimension in (0..outer).rev() {
            step *= self.embedding[dimension + 1];
            position += remaining % self.lengths[dimension] * step;
            remaining /= self.lengths[dimension];
        }
        position * self.stride
    }
}
