//! Triangles, and the matrices that they stand for.

use curium_blas::{Complex64, Diagonal, Triangle};

use super::super::random::Random;
use super::super::reference::Host;

pub(super) fn triangle(random: &mut Random) -> Triangle {
    if random.flip() {
        Triangle::Upper
    } else {
        Triangle::Lower
    }
}

pub(super) fn is_in(triangle: Triangle, row: usize, column: usize) -> bool {
    if triangle == Triangle::Upper {
        row <= column
    } else {
        row >= column
    }
}

/// Returns the symmetric matrix of a triangle.
pub(super) fn symmetric(host: &Host, triangle: Triangle) -> Host {
    host.or(&host.transposed(), |row, column| {
        is_in(triangle, row, column)
    })
}

/// Returns the Hermitian matrix of a triangle, whose diagonal is real.
pub(super) fn hermitian(host: &Host, triangle: Triangle) -> Host {
    let whole = host.or(&host.adjoint(), |row, column| is_in(triangle, row, column));
    Host::from_fn(whole.rows, whole.columns, |row, column| {
        let value = whole.at(row, column);
        if row == column {
            Complex64::new(value.re, 0.0)
        } else {
            value
        }
    })
}

/// Returns the triangular matrix of a triangle.
pub(super) fn triangular(host: &Host, triangle: Triangle, diagonal: Diagonal) -> Host {
    Host::from_fn(host.rows, host.columns, |row, column| {
        match (row == column, diagonal) {
            (true, Diagonal::Unit) => Complex64::new(1.0, 0.0),
            _ if is_in(triangle, row, column) => host.at(row, column),
            _ => Complex64::new(0.0, 0.0),
        }
    })
}

pub(super) fn diagonal(random: &mut Random) -> Diagonal {
    if random.flip() {
        Diagonal::Unit
    } else {
        Diagonal::Stored
    }
}
