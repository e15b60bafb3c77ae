//! Matrices in the registers of a warp, read and written.

use super::multiply::Matrix;
use super::number::Number;
use super::{Element, Fragment, Home, Numbers, OCTET, Placed};
use crate::exec::frame::InFile;
use crate::exec::lane::LANES;
use crate::exec::unit::Unit;

/// Reads the numbers in the rows `rows`, the registers of a fragment, in the order of [`Placed::slots`].
///
/// Results go to the callers' buffers: returned by value they would be copied.
#[inline(always)]
fn unpack<T: Number, const WIDE: bool>(unit: &Unit<'_>, placed: &Placed, rows: &[u32], numbers: &mut Numbers<T>) {
    let element = placed.fragment.element;
    let each = LANES * placed.fragment.per_register() as usize;
    numbers.resize(rows.len() * each, T::default());
    for (numbers, &row) in numbers.chunks_exact_mut(each).zip(rows) {
        if element == Element::F64 {
            for (number, &bits) in numbers.iter_mut().zip(unit.frame.row::<u64>(row)) {
                *number = T::read(element, bits);
            }
        } else {
            T::unpack::<WIDE>(element, unit.frame.row::<u32>(row), numbers);
        }
    }
}

/// Reads the matrix in the rows `rows`. Slots are those of the first lanes; the matrix begins at `lane`.
#[inline(always)]
pub(crate) fn read<T: Number, const WIDE: bool>(
    unit: &Unit<'_>,
    placed: &Placed,
    rows: &[u32],
    lane: u32,
    matrix: &mut Matrix<T>,
) {
    let mut numbers = Numbers::new();
    unpack::<T, WIDE>(unit, placed, rows, &mut numbers);
    let first = (lane * placed.fragment.per_register()) as usize;
    matrix.columns = placed.fragment.columns as usize;
    matrix.values.resize(placed.slots.len(), T::default());
    let (values, numbers) = (&mut matrix.values[..], &numbers[..]);
    if placed.is_in_octets {
        let octets = placed.slots.as_chunks::<OCTET>().0;
        for (values, slots) in values.as_chunks_mut::<OCTET>().0.iter_mut().zip(octets) {
            let from = first + usize::from(slots[0]);
            values.copy_from_slice(&numbers[from..from + OCTET]);
        }
    } else {
        for (value, &slot) in values.iter_mut().zip(&placed.slots) {
            *value = numbers[first + usize::from(slot)];
        }
    }
}

/// The elements in the registers of a result, in the order of [`Placed::slots`].
pub(crate) struct Results<'p, R> {
    placed: &'p Placed,
    bits: Numbers<R>,
}

impl<'p, R: InFile> Results<'p, R> {
    pub(crate) fn new(placed: &'p Placed) -> Self {
        Self { placed, bits: Numbers::new() }
    }

    /// Sets the bits of all elements of a matrix that begins at `lane`, given by rows.
    #[inline(always)]
    pub(crate) fn set(&mut self, unit: &Unit<'_>, rows: &[u32], lane: u32, matrix: &[R]) {
        let each = self.placed.fragment.per_register() as usize;
        if self.bits.is_empty() {
            self.bits.resize(rows.len() * LANES * each, R::default());
            if each == 1 && matrix.len() < self.bits.len() {
                // Registers of single elements keep the values that no matrix replaces.
                for (bits, &row) in self.bits.as_chunks_mut::<LANES>().0.iter_mut().zip(rows) {
                    *bits = *unit.frame.row::<R>(row);
                }
            }
        }
        let registers = &mut self.bits[lane as usize * each..];
        for (&bits, &slot) in matrix.iter().zip(&self.placed.slots) {
            registers[usize::from(slot)] = bits;
        }
    }

    /// Writes the registers.
    #[inline(always)]
    pub(crate) fn write(&self, unit: &mut Unit<'_>, rows: &[u32]) {
        let each = self.placed.fragment.per_register() as usize;
        for (bits, &row) in self.bits.chunks_exact(LANES * each).zip(rows) {
            pack(bits, &mut unit.frame.row_mut::<R>(row).0);
        }
    }
}

/// Packs elements into a register: one, or two of 16 bits, the first in the lower half.
#[inline(always)]
fn pack<R: InFile>(elements: &[R], register: &mut [R; LANES]) {
    if elements.len() == LANES {
        register.copy_from_slice(elements);
    } else {
        for (register, pair) in register.iter_mut().zip(elements.as_chunks::<2>().0) {
            *register = R::truncate(pair[0].extend() | pair[1].extend() << 16);
        }
    }
}

/// Clears the registers that several elements share.
pub(crate) fn clear(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32]) {
    if fragment.element.bits() < 32 {
        for &row in rows {
            unit.frame.row_mut::<u32>(row).0 = [0; 32];
        }
    }
}

/// Writes an element of a matrix whose registers were cleared.
pub(crate) fn put(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32], row: u32, column: u32, bits: u64) {
    let Home { lane, register, shift } = fragment.home(row, column);
    let (index, lane) = (rows[register as usize], lane as usize & 31);
    match fragment.element.bits() {
        64 => unit.frame.row_mut::<u64>(index).0[lane] = bits,
        32 => unit.frame.row_mut::<u32>(index).0[lane] = bits as u32,
        _ => unit.frame.row_mut::<u32>(index).0[lane] |= (bits as u32) << shift,
    }
}
