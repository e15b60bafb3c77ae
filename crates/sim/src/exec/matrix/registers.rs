//! Reads and writes of matrices in the registers of a warp.

use super::multiply::Matrix;
use super::number::Number;
use super::{Element, Fragment, Home, Placed};
use crate::exec::lane::LANES;
use crate::exec::unit::Unit;

/// Reads a matrix whose registers are in the rows `rows`. The positions are those of the first lanes, and the matrix begins at `lane`.
#[inline(always)]
pub(crate) fn read<T: Number, const WIDE: bool>(
    unit: &Unit<'_>,
    Placed { fragment, homes }: &Placed,
    rows: &[u32],
    lane: u32,
) -> Matrix<T> {
    let element = fragment.element;
    let columns = fragment.columns as usize;
    if element == Element::F64 {
        let bits = |home: &Home| {
            let (index, lane, _) = place(*home, rows, lane);
            T::read(element, unit.frame.row::<u64>(index)[lane])
        };
        return Matrix { values: homes.iter().map(bits).collect(), columns };
    }
    let mut values = Vec::with_capacity(homes.len());
    let mask = u32::MAX >> (32 - element.bits());
    for homes in homes.chunks(LANES) {
        let mut bits = [0; LANES];
        for (bits, home) in bits.iter_mut().zip(homes) {
            let (index, lane, shift) = place(*home, rows, lane);
            *bits = unit.frame.row::<u32>(index)[lane] >> shift & mask;
        }
        values.extend_from_slice(&T::read_row::<WIDE>(element, &bits)[..homes.len()]);
    }
    Matrix { values, columns }
}

/// Writes the bits of all elements of a matrix, row by row. Registers with several elements must have been cleared.
#[inline(always)]
pub(crate) fn write(unit: &mut Unit<'_>, Placed { fragment, homes }: &Placed, rows: &[u32], lane: u32, bits: &[u64]) {
    for (home, &bits) in homes.iter().zip(bits) {
        put_at(unit, fragment.element, place(*home, rows, lane), bits);
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
pub(crate) fn put(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32], row: u32, column: u32, bits: u64) {
    put_at(unit, fragment.element, place(fragment.home(row, column), rows, 0), bits);
}

#[inline(always)]
fn put_at(unit: &mut Unit<'_>, element: Element, (index, lane, shift): (u32, usize, u32), bits: u64) {
    match element.bits() {
        64 => unit.frame.row_mut::<u64>(index).0[lane] = bits,
        32 => unit.frame.row_mut::<u32>(index).0[lane] = bits as u32,
        _ => unit.frame.row_mut::<u32>(index).0[lane] |= (bits as u32) << shift,
    }
}

/// Returns the row of a register, a lane in it, and the position of the element there.
#[inline(always)]
fn place(home: Home, rows: &[u32], lane: u32) -> (u32, usize, u32) {
    (rows[home.register as usize], (home.lane + lane) as usize & 31, home.shift)
}
