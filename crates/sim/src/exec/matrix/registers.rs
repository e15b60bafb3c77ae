//! Matrices in the registers of a warp, read and written.

use super::multiply::Matrix;
use super::number::Number;
use super::{Element, Fragment, Home};
use crate::exec::unit::Unit;

/// Reads a matrix whose registers are in the rows `rows`. Homes are those of the first lanes; the matrix begins at `lane`.
pub(crate) fn read<T: Number>(unit: &Unit<'_>, fragment: &Fragment, rows: &[u32], lane: u32) -> Matrix<T> {
    let mut values = Vec::with_capacity((fragment.rows * fragment.columns) as usize);
    let mask = u32::MAX >> (32 - fragment.element.bits().min(32));
    for (row, column) in fragment.places() {
        let (index, lane, shift) = place(fragment.home(row, column), rows, lane);
        let bits = match fragment.element {
            Element::F64 => unit.frame.row::<u64>(index)[lane],
            _ => u64::from(unit.frame.row::<u32>(index)[lane] >> shift & mask),
        };
        values.push(T::read(fragment.element, bits));
    }
    Matrix { values, columns: fragment.columns as usize }
}

/// Writes the bits of all elements of a matrix, given by rows. The registers of small elements were cleared.
pub(crate) fn write(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32], lane: u32, bits: &[u64]) {
    for ((row, column), &bits) in fragment.places().zip(bits) {
        put_at(unit, fragment.element, place(fragment.home(row, column), rows, lane), bits);
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
    put_at(unit, fragment.element, place(fragment.home(row, column), rows, 0), bits);
}

fn put_at(unit: &mut Unit<'_>, element: Element, (index, lane, shift): (u32, usize, u32), bits: u64) {
    match element.bits() {
        64 => unit.frame.row_mut::<u64>(index).0[lane] = bits,
        32 => unit.frame.row_mut::<u32>(index).0[lane] = bits as u32,
        _ => unit.frame.row_mut::<u32>(index).0[lane] |= (bits as u32) << shift,
    }
}

/// The row of a register, a lane in it, and the place of the element there.
fn place(home: Home, rows: &[u32], lane: u32) -> (u32, usize, u32) {
    (rows[home.register as usize], (home.lane + lane) as usize & 31, home.shift)
}
