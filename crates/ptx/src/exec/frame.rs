//! The registers of one activation of a function, for the lanes of one warp.
//!
//! Registers live in two files, of 32-bit and of 64-bit rows. The compiler vectorizes rows of
//! uniform width without shuffles, and two typed vectors need no casts. The declaration of a
//! register selects its file. A predicate is one bit per lane, so a guard or a branch costs one
//! `and`. Constants are rows too, so an immediate operand costs as much as a register.

use crate::exec::check::undefined::Undefined;
use crate::exec::values::lane::{FULL, Raw, Row};

/// Registers, predicates and linkage of one activation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    words: Vec<Row<u32>>,
    doubles: Vec<Row<u64>>,
    predicates: Vec<u32>,
    /// Index of the function in the program.
    pub(crate) function: u32,
    /// Offset of the function's variables in each thread's local memory.
    pub(crate) local: u64,
    /// Lanes that entered the function and have not returned.
    pub(crate) lanes: u32,
    /// The caller; `None` in the kernel.
    pub(crate) caller: Option<Caller>,
    /// The registers with undefined values, if there are any and the launch checks for them.
    pub(crate) undefined: Option<Box<Undefined>>,
}

/// The return address of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The calling activation.
    pub(crate) frame: u32,
    /// Index of the call instruction.
    pub(crate) pc: u32,
}

/// The initial contents of a function's register files.
///
/// Constants are rows that no instruction writes. Registers start at zero, so a read of an
/// uninitialized register gives the same result in every run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The 32-bit file.
    pub(crate) words: Vec<u32>,
    /// The 64-bit file.
    pub(crate) doubles: Vec<u64>,
    /// The number of rows at the start of each file that may be read before they are written.
    pub(crate) reset_rows: [usize; 2],
    /// Predicates; number 0 is always true.
    pub(crate) predicates: usize,
}

/// The registers of a fresh activation: a [`Layout`], with a value for each lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    words: Vec<Row<u32>>,
    doubles: Vec<Row<u64>>,
    predicates: Vec<u32>,
    reset_rows: [usize; 2],
}

impl Registers {
    /// Creates the registers of a layout.
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut predicates = vec![0; layout.predicates.max(1)];
        predicates[0] = FULL;
        Self {
            words: layout
                .words
                .iter()
                .map(|&value| Row::splat(value))
                .collect(),
            doubles: layout
                .doubles
                .iter()
                .map(|&value| Row::splat(value))
                .collect(),
            predicates,
            reset_rows: layout.reset_rows,
        }
    }
}

impl Frame {
    /// Resets the frame to a fresh activation of a function; its storage is reused.
    pub(crate) fn reset(&mut self, function: u32, fresh: &Registers) {
        self.predicates.clone_from(&fresh.predicates);
        self.undefined = None;
        if self.function == function && !self.words.is_empty() {
            // Constants never change, and only the first registers may be read before they are
            // written.
            self.words[..fresh.reset_rows[0]].fill(Row::splat(0));
            self.doubles[..fresh.reset_rows[1]].fill(Row::splat(0));
            return;
        }
        self.function = function;
        self.words.clone_from(&fresh.words);
        self.doubles.clone_from(&fresh.doubles);
    }

    /// Copies the registers of some lanes from another activation of the same function.
    pub(crate) fn copy_lanes(&mut self, from: &Self, lanes: u32) {
        for (row, other) in self.words.iter_mut().zip(&from.words) {
            row.merge(&other.0, lanes);
        }
        for (row, other) in self.doubles.iter_mut().zip(&from.doubles) {
            row.merge(&other.0, lanes);
        }
        for (predicate, other) in self.predicates.iter_mut().zip(&from.predicates) {
            *predicate = (*predicate & !lanes) | (other & lanes);
        }
    }

    /// Returns the row of a typed register.
    #[inline(always)]
    pub(crate) fn row<T: InFile>(&self, index: u32) -> &[T; 32] {
        &T::file(self)[index as usize].0
    }

    /// Returns the row of a typed register, for writing.
    #[inline(always)]
    pub(crate) fn row_mut<T: InFile>(&mut self, index: u32) -> &mut Row<T> {
        &mut T::file_mut(self)[index as usize]
    }

    /// Returns the lanes in which a predicate is true.
    #[inline(always)]
    pub(crate) fn predicate(&self, index: u32) -> u32 {
        self.predicates[index as usize]
    }

    /// Sets a predicate in the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, index: u32, value: u32, mask: u32) {
        let old = &mut self.predicates[index as usize];
        *old = (*old & !mask) | (value & mask);
    }
}

/// A register width, and the file that holds it.
pub(crate) trait InFile: Raw {
    /// Returns the rows of this width.
    fn file(frame: &Frame) -> &[Row<Self>];
    /// Returns the rows of this width, for writing.
    fn file_mut(frame: &mut Frame) -> &mut [Row<Self>];
}

impl InFile for u32 {
    #[inline(always)]
    fn file(frame: &Frame) -> &[Row<Self>] {
        &frame.words
    }
    #[inline(always)]
    fn file_mut(frame: &mut Frame) -> &mut [Row<Self>] {
        &mut frame.words
    }
}

impl InFile for u64 {
    #[inline(always)]
    fn file(frame: &Frame) -> &[Row<Self>] {
        &frame.doubles
    }
    #[inline(always)]
    fn file_mut(frame: &mut Frame) -> &mut [Row<Self>] {
        &mut frame.doubles
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::frame::*;

    #[test]
    fn reset_restores_constants_and_zeroes_registers() {
        let layout = Layout {
            words: vec![0, 5],
            doubles: vec![0, 9],
            reset_rows: [1, 1],
            predicates: 2,
        };
        let other = Registers::new(&Layout {
            words: vec![7, 7],
            ..layout.clone()
        });
        let layout = Registers::new(&layout);
        let mut frame = Frame::default();
        for function in [0, 0, 1] {
            frame.reset(function, &layout);
            assert_eq!(
                (
                    frame.row::<u32>(0)[3],
                    frame.row::<u64>(0)[3],
                    frame.predicate(1)
                ),
                (0, 0, 0)
            );
            assert_eq!(
                (
                    frame.row::<u32>(1)[31],
                    frame.row::<u64>(1)[31],
                    frame.predicate(0)
                ),
                (5, 9, FULL)
            );
            frame.row_mut::<u32>(0).0[3] = 8;
            frame.row_mut::<u64>(0).0[3] = 8;
            frame.set_predicate(1, FULL, 0b1000);
            assert_eq!((frame.row::<u32>(0)[3], frame.predicate(1)), (8, 0b1000));
        }
        frame.reset(2, &other);
        assert_eq!((frame.row::<u32>(0)[0], frame.function), (7, 2));
    }
}
