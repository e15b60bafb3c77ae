//! Fills of memory with a value (`cuMemset…`).

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Result, call};

use crate::enqueue;
use crate::operand::Operand;

/// A word that the driver fills memory with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    Byte(u8),
    Half(u16),
    Full(u32),
}

/// Rows of words with a distance of `pitch` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) pitch: usize,
    /// The width of a row in bytes.
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Fills `target` with copies of `value`.
pub(crate) fn elements(operation: Operation<'_>, target: &Operand<'_>, value: &[u8]) -> Result<()> {
    let rows = Rows {
        pitch: target.bytes,
        width: target.bytes,
        height: 1,
    };
    fill(operation, target, rows, value)
}

/// Fills the `rows` of `target` with copies of `value`.
pub(crate) fn fill(
    mut operation: Operation<'_>,
    target: &Operand<'_>,
    rows: Rows,
    value: &[u8],
) -> Result<()> {
    if rows.width == 0 || rows.height == 0 {
        return Ok(());
    }
    target.tracked.before_write(&mut operation)?;
    let filled = enqueue(&operation, target.address, rows, value);
    // On failure, some work may have been enqueued.
    target.tracked.after_partial_write(&mut operation);
    filled.map_err(|error| target.explain(error))
}

fn enqueue(
    operation: &Operation<'_>,
    address: CUdeviceptr,
    rows: Rows,
    value: &[u8],
) -> Result<()> {
    let pitch = if rows.height > 1 {
        rows.pitch as u64
    } else {
        0
    };
    let words = words(value, address | pitch);
    let size = words[0].size();
    if words.iter().all(|word| *word == words[0]) {
        return if rows.height == 1 {
            line(operation, address, words[0], rows.width / size)
        } else {
            block(
                operation,
                address,
                words[0],
                Rows {
                    width: rows.width / size,
                    ..rows
                },
            )
        };
    }
    for row in 0..rows.height {
        let start = address + (row * rows.pitch) as u64;
        // Each word of the value fills one column of a matrix that has one element per row.
        let table = Rows {
            pitch: value.len(),
            width: 1,
            height: rows.width / value.len(),
        };
        for (column, word) in words.iter().enumerate() {
            block(operation, start + (column * size) as u64, *word, table)?;
        }
    }
    Ok(())
}

/// Returns the value as words of the largest size that divides every address. `addresses` is the
/// union of their bits.
fn words(value: &[u8], addresses: u64) -> Vec<Word> {
    if value.len().is_multiple_of(4) && addresses.is_multiple_of(4) {
        value
            .chunks(4)
            .map(|word| Word::Full(u32::from_ne_bytes(std::array::from_fn(|byte| word[byte]))))
            .collect()
    } else if value.len().is_multiple_of(2) && addresses.is_multiple_of(2) {
        value
            .chunks(2)
            .map(|word| Word::Half(u16::from_ne_bytes(std::array::from_fn(|byte| word[byte]))))
            .collect()
    } else {
        value.iter().map(|byte| Word::Byte(*byte)).collect()
    }
}

impl Word {
    const fn size(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Half(_) => 2,
            Self::Full(_) => 4,
        }
    }
}

/// Enqueues a fill of `count` consecutive words.
fn line(operation: &Operation<'_>, at: CUdeviceptr, word: Word, count: usize) -> Result<()> {
    let driver = operation.driver();
    let raw = operation.raw_stream();
    enqueue::spanning(operation, || match word {
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses.
        Word::Byte(value) => unsafe { call!(driver, cuMemsetD8Async(at, value, count, raw)) },
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses, and the address is a multiple of 2.
        Word::Half(value) => unsafe { call!(driver, cuMemsetD16Async(at, value, count, raw)) },
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses, and the address is a multiple of 4.
        Word::Full(value) => unsafe { call!(driver, cuMemsetD32Async(at, value, count, raw)) },
    })
}

/// Enqueues a fill of rows; their width is in words.
fn block(operation: &Operation<'_>, at: CUdeviceptr, word: Word, rows: Rows) -> Result<()> {
    let driver = operation.driver();
    let raw = operation.raw_stream();
    let Rows {
        pitch,
        width,
        height,
    } = rows;
    enqueue::spanning(operation, || match word {
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses.
        Word::Byte(value) => unsafe {
            call!(
                driver,
                cuMemsetD2D8Async(at, pitch, value, width, height, raw)
            )
        },
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses, and the address and the pitch are multiples of 2.
        Word::Half(value) => unsafe {
            call!(
                driver,
                cuMemsetD2D16Async(at, pitch, value, width, height, raw)
            )
        },
        // SAFETY: the words are in memory that is live on this stream, which has waited for
        // conflicting accesses, and the address and the pitch are multiples of 4.
        Word::Full(value) => unsafe {
            call!(
                driver,
                cuMemsetD2D32Async(at, pitch, value, width, height, raw)
            )
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_large_as_the_alignment_allows() {
        assert_eq!(words(&1_u32.to_ne_bytes(), 8), [Word::Full(1)]);
        assert_eq!(words(&[1, 1, 1, 1], 2), [Word::Half(0x0101); 2]);
        assert_eq!(words(&[1, 2, 3, 4], 1), [1, 2, 3, 4].map(Word::Byte));
        assert_eq!(words(&[7, 8, 9], 0), [7, 8, 9].map(Word::Byte));
        assert_eq!(
            words(&0x0002_0000_0001_u64.to_ne_bytes(), 0),
            [Word::Full(1), Word::Full(2)]
        );
    }
}
