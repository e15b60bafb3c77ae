//! Ordered and volatile accesses to vectors.
//!
//! A GPU accesses all elements of such a vector at once, up to 16 bytes, and programs such as CUB
//! rely on it: a thread that reads a vector which another thread stores finds either all elements
//! of the store or none.

use super::address::Target;
use super::element::Element;
use super::error::Lowered;
use super::function::{Lowerer, Slot};
use super::race::may_order;
use crate::exec::machine::op::Handler;
use crate::exec::ops::atomic::{run_wide_load, run_wide_store};
use crate::exec::ops::handler::moves::{unpack, unpack_signed};
use crate::exec::space::Space;
use crate::syntax::{Instruction, ScalarClass, ScalarType};

/// The elements of a vector, which are all in words or all in doubles.
struct Whole {
    rows: Vec<u32>,
    /// The bits of an element.
    part: u32,
    /// The bits of the vector: 16, 32, 64 or 128.
    bits: u32,
}

impl Lowerer<'_> {
    /// Appends a load of a vector at once. Returns `false` if its elements need not be loaded at
    /// once.
    pub(super) fn load_whole(
        &mut self,
        instruction: &Instruction,
        target: Target,
        elements: &[Slot],
        scalar: ScalarType,
    ) -> Lowered<bool> {
        if instruction.used_bytes.is_some() {
            return Ok(false);
        }
        let Some(Whole { rows, part, bits }) = Whole::new(instruction, target, elements, scalar)
        else {
            return Ok(false);
        };
        if bits == 128 {
            let [low, high] = self.double_rows(&rows);
            let list = self.row_list(vec![low, high]);
            self.access(run_wide_load, target, 0, 16).b = list;
            if part == 32 {
                self.split(low, unpack(true, 32), &rows[..2], 32);
                self.split(high, unpack(true, 32), &rows[2..], 32);
            }
            return Ok(true);
        }
        let (slot, row, whole) = self.joined(bits);
        let element = Element {
            slot,
            scalar: whole,
        };
        self.load_element(instruction, target, 0, u64::from(bits / 8), element)?;
        let is_narrow_signed = scalar.class() == ScalarClass::Signed && part < 32;
        let extract = if is_narrow_signed {
            unpack_signed
        } else {
            unpack
        };
        self.split(row, extract(bits == 64, part), &rows, part);
        Ok(true)
    }

    /// Appends a store of a vector at once. Returns `false` if its elements need not be stored at
    /// once.
    pub(super) fn store_whole(
        &mut self,
        instruction: &Instruction,
        target: Target,
        elements: &[Slot],
        scalar: ScalarType,
    ) -> Lowered<bool> {
        let Some(Whole { rows, part, bits }) = Whole::new(instruction, target, elements, scalar)
        else {
            return Ok(false);
        };
        if bits == 128 {
            let [low, high] = self.double_rows(&rows);
            if part == 32 {
                self.join(64, low, &rows[..2]);
                self.join(64, high, &rows[2..]);
            }
            let list = self.row_list(vec![low, high]);
            self.access(run_wide_store, target, 0, 16).b = list;
            return Ok(true);
        }
        let (slot, row, whole) = self.joined(bits);
        if !self.join(bits, row, &rows) {
            return Ok(false);
        }
        let element = Element {
            slot,
            scalar: whole,
        };
        self.store_element(instruction, target, 0, u64::from(bits / 8), element)?;
        Ok(true)
    }

    /// Returns the rows of two doubles: the elements themselves, or new ones for elements of 32
    /// bits.
    fn double_rows(&mut self, rows: &[u32]) -> [u32; 2] {
        match *rows {
            [low, high] => [low, high],
            _ => [self.new_double(), self.new_double()],
        }
    }

    /// Returns a new slot for a whole vector of up to 64 bits, its row and its type.
    fn joined(&mut self, bits: u32) -> (Slot, u32, ScalarType) {
        if bits == 64 {
            let row = self.new_double();
            return (Slot::Double(row), row, ScalarType::B64);
        }
        let row = self.new_word();
        (
            Slot::Word(row),
            row,
            if bits == 32 {
                ScalarType::B32
            } else {
                ScalarType::B16
            },
        )
    }

    /// Appends moves, with the handler `extract`, of the parts of a row to rows of their own. Each
    /// has `part` bits.
    fn split(&mut self, whole: u32, extract: Option<Handler>, rows: &[u32], part: u32) {
        let run = extract.expect("a vector has two or four elements of at most 32 bits");
        for (shift, row) in (0..).step_by(part as usize).zip(rows) {
            let shift = self.word(shift);
            self.emit(run, *row, [whole, shift, 0]);
        }
    }
}

impl Whole {
    /// Returns the elements of a vector that is accessed at once, if this one is.
    fn new(
        instruction: &Instruction,
        target: Target,
        elements: &[Slot],
        scalar: ScalarType,
    ) -> Option<Self> {
        let part = scalar.bits();
        let count = elements.len() as u32;
        let bits = part * count;
        let is_shared = matches!(target.space, Space::Global | Space::Shared | Space::Generic);
        if !may_order(instruction) || !is_shared || !matches!(count, 2 | 4) || bits > 128 {
            return None;
        }
        let mut rows = Vec::with_capacity(elements.len());
        for slot in elements {
            match *slot {
                Slot::Word(row) if part <= 32 => rows.push(row),
                Slot::Double(row) if part == 64 => rows.push(row),
                _ => return None,
            }
        }
        Some(Self { rows, part, bits })
    }
}
