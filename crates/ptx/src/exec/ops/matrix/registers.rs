//! Reads and writes of matrices in the registers of a warp.

use crate::exec::frame::InFile;
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::multiply::Matrix;
use crate::exec::matrix::number::Number;
use crate::exec::matrix::{
    Element, Fragment, FragmentLayout, Numbers, OCTET, Order, Position, QUAD,
};
use crate::exec::values::lane::LANES;

/// Reads the numbers in the rows `rows`, the registers of a fragment, in the order of
/// [`FragmentLayout::slots`].
#[inline(always)]
pub(super) fn unpack<T: Number, const WIDE: bool>(
    unit: &Unit<'_>,
    layout: &FragmentLayout,
    rows: &[u32],
    numbers: &mut [T],
) {
    let element = layout.fragment.element;
    for (numbers, &row) in numbers.chunks_exact_mut(layout.in_register()).zip(rows) {
        if element == Element::F64 {
            for (number, &bits) in numbers.iter_mut().zip(unit.frame.row::<u64>(row)) {
                *number = T::read(element, bits);
            }
        } else {
            T::unpack::<WIDE>(element, unit.frame.row::<u32>(row), numbers);
        }
    }
}

/// Orders numbers as the elements of a matrix, row by row.
#[inline(always)]
pub(super) fn gather<T: Number, const WIDE: bool>(
    layout: &FragmentLayout,
    numbers: &[T],
    values: &mut [T],
) {
    let octets = values
        .as_chunks_mut::<OCTET>()
        .0
        .iter_mut()
        .zip(&layout.slots);
    match layout.order {
        Order::Octet => {
            for (values, slots) in octets {
                values.copy_from_slice(&numbers[usize::from(slots[0])..][..OCTET]);
            }
        }
        Order::Quads => {
            for (values, slots) in octets {
                values[..QUAD].copy_from_slice(&numbers[usize::from(slots[0])..][..QUAD]);
                values[QUAD..].copy_from_slice(&numbers[usize::from(slots[QUAD])..][..QUAD]);
            }
        }
        Order::Interleaved => {
            for (values, slots) in octets {
                let [even, odd] =
                    [slots[0], slots[1]].map(|slot| &numbers[usize::from(slot)..][..QUAD]);
                for pair in 0..QUAD {
                    values[2 * pair] = even[pair];
                    values[2 * pair + 1] = odd[pair];
                }
            }
        }
        Order::Transposed(distance) => {
            transpose::<T, WIDE>(layout, numbers, distance.into(), values);
        }
        Order::Any => {
            for (values, slots) in octets {
                for (value, &slot) in values.iter_mut().zip(slots) {
                    *value = numbers[usize::from(slot)];
                }
            }
        }
    }
}

/// Orders numbers as the elements of a matrix, of which neighbors in a row are at a distance, and
/// those in a column are neighbors.
#[inline(always)]
fn transpose<T: Number, const WIDE: bool>(
    layout: &FragmentLayout,
    numbers: &[T],
    distance: usize,
    values: &mut [T],
) {
    let octets = layout.fragment.octets();
    let four_rows = values
        .as_chunks_mut::<OCTET>()
        .0
        .chunks_exact_mut(QUAD * octets);
    for (values, slots) in four_rows.zip(layout.slots.chunks_exact(QUAD * octets)) {
        for (octet, slots) in slots[..octets].iter().enumerate() {
            let columns = &numbers[usize::from(slots[0])..];
            let mut tile = [[T::default(); QUAD]; OCTET];
            for (column, tile) in tile.iter_mut().enumerate() {
                tile.copy_from_slice(&columns[column * distance..][..QUAD]);
            }
            for (row, numbers) in T::transpose::<WIDE>(&tile).into_iter().enumerate() {
                values[row * octets + octet] = numbers;
            }
        }
    }
}

/// Reads the matrix in the rows `rows`. Slots are those of the first lanes; the matrix begins at
/// `lane`.
#[inline(always)]
pub(crate) fn read<T: Number, const WIDE: bool>(
    unit: &Unit<'_>,
    layout: &FragmentLayout,
    rows: &[u32],
    lane: u32,
    matrix: &mut Matrix<T>,
) {
    let mut numbers = Numbers::from_elem(T::default(), rows.len() * layout.in_register());
    unpack::<T, WIDE>(unit, layout, rows, &mut numbers);
    // The caller provides the matrix, because a returned one would be copied.
    matrix.columns = layout.fragment.columns as usize;
    matrix.values =
        Numbers::from_elem(T::default(), layout.fragment.rows as usize * matrix.columns);
    let first = (lane * layout.fragment.per_register()) as usize;
    gather::<T, WIDE>(layout, &numbers[first..], &mut matrix.values);
}

/// Orders the elements of a matrix as those of its registers.
#[inline(always)]
pub(super) fn scatter<R: InFile>(layout: &FragmentLayout, matrix: &[R], registers: &mut [R]) {
    let octets = matrix.as_chunks::<OCTET>().0.iter().zip(&layout.slots);
    match layout.order {
        Order::Octet => {
            for (bits, slots) in octets {
                registers[usize::from(slots[0])..][..OCTET].copy_from_slice(bits);
            }
        }
        Order::Interleaved => {
            for (bits, slots) in octets {
                let &[a, b, c, d, e, f, g, h] = bits;
                registers[usize::from(slots[0])..][..QUAD].copy_from_slice(&[a, c, e, g]);
                registers[usize::from(slots[1])..][..QUAD].copy_from_slice(&[b, d, f, h]);
            }
        }
        Order::Quads | Order::Transposed(_) | Order::Any => {
            for (bits, slots) in octets {
                for (&bits, &slot) in bits.iter().zip(slots) {
                    registers[usize::from(slot)] = bits;
                }
            }
        }
    }
}

/// Writes the elements of registers: one in each, or two of 16 bits, the first in the lower half.
#[inline(always)]
pub(super) fn pack<R: InFile>(
    unit: &mut Unit<'_>,
    layout: &FragmentLayout,
    rows: &[u32],
    elements: &[R],
) {
    for (elements, &row) in elements.chunks_exact(layout.in_register()).zip(rows) {
        let register = &mut unit.frame.row_mut::<R>(row).0;
        if elements.len() == LANES {
            register.copy_from_slice(elements);
        } else {
            for (register, pair) in register.iter_mut().zip(elements.as_chunks::<2>().0) {
                *register = R::truncate(pair[0].extend() | pair[1].extend() << 16);
            }
        }
    }
}

/// The elements in the registers of a result, in the order of [`FragmentLayout::slots`].
pub(crate) struct Results<'p, R> {
    layout: &'p FragmentLayout,
    bits: Numbers<R>,
}

impl<'p, R: InFile> Results<'p, R> {
    pub(crate) fn new(layout: &'p FragmentLayout) -> Self {
        Self {
            layout,
            bits: Numbers::new(),
        }
    }

    /// Sets the bits of all elements of a matrix that begins at `lane`, given by rows.
    #[inline(always)]
    pub(crate) fn set(&mut self, unit: &Unit<'_>, rows: &[u32], lane: u32, matrix: &[R]) {
        let per_register = self.layout.fragment.per_register() as usize;
        if self.bits.is_empty() {
            self.bits
                .resize(rows.len() * LANES * per_register, R::default());
            if per_register == 1 && matrix.len() < self.bits.len() {
                // Registers of single elements keep the values that no matrix replaces.
                for (bits, &row) in self.bits.as_chunks_mut::<LANES>().0.iter_mut().zip(rows) {
                    *bits = *unit.frame.row::<R>(row);
                }
            }
        }
        scatter(
            self.layout,
            matrix,
            &mut self.bits[lane as usize * per_register..],
        );
    }

    /// Writes the registers.
    #[inline(always)]
    pub(crate) fn write(&self, unit: &mut Unit<'_>, rows: &[u32]) {
        pack(unit, self.layout, rows, &self.bits);
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

/// Writes an element of a matrix. A register with several elements must have been cleared.
pub(crate) fn write_element(
    unit: &mut Unit<'_>,
    fragment: &Fragment,
    rows: &[u32],
    row: u32,
    column: u32,
    bits: u64,
) {
    let Position {
        lane,
        register,
        shift,
    } = fragment.position(row, column);
    let index = rows[register as usize];
    let lane = lane as usize & 31;
    match fragment.element.bits() {
        64 => unit.frame.row_mut::<u64>(index).0[lane] = bits,
        32 => unit.frame.row_mut::<u32>(index).0[lane] = bits as u32,
        _ => unit.frame.row_mut::<u32>(index).0[lane] |= (bits as u32) << shift,
    }
}
