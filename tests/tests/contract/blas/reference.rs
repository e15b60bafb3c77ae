//! Matrices on the host, and what operations on them must compute, in complex numbers of 64 bits.

use curium_blas::{Complex32, Complex64, Element};

/// A type of elements with its precision.
pub(super) trait Number: Element + std::fmt::Debug {
    /// The rounding error of one operation.
    const EPSILON: f64;

    fn wide(self) -> Complex64;
    /// Returns the nearest number; real types lose the imaginary part.
    fn narrow(value: Complex64) -> Self;
    fn real(value: f64) -> Self::Real;
}

macro_rules! number {
    ($($ty:ty: $epsilon:expr, |$value:ident| $wide:expr, |$wide_value:ident| $narrow:expr;)*) => {
        $(
            impl Number for $ty {
                const EPSILON: f64 = $epsilon;

                fn wide(self) -> Complex64 {
                    let $value = self;
                    $wide
                }

                fn narrow($wide_value: Complex64) -> Self {
                    $narrow
                }

                fn real(value: f64) -> Self::Real {
                    value as Self::Real
                }
            }
        )*
    };
}

number! {
    f32: f32::EPSILON as f64, |value| Complex64::new(f64::from(value), 0.0), |value| value.re as f32;
    f64: f64::EPSILON, |value| Complex64::new(value, 0.0), |value| value.re;
    Complex32: f32::EPSILON as f64, |value| Complex64::new(value.re.into(), value.im.into()),
        |value| Complex32::new(value.re as f32, value.im as f32);
    Complex64: f64::EPSILON, |value| value, |value| value;
}

/// A matrix on the host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) rows: usize,
    pub(super) columns: usize,
    elements: Vec<Complex64>,
}

impl Host {
    pub(super) fn from_fn(
        rows: usize,
        columns: usize,
        mut element: impl FnMut(usize, usize) -> Complex64,
    ) -> Self {
        let mut elements = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                elements.push(element(row, column));
            }
        }
        Self {
            rows,
            columns,
            elements,
        }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> Complex64 {
        self.elements[row * self.columns + column]
    }

    pub(super) fn set(&mut self, row: usize, column: usize, value: Complex64) {
        self.elements[row * self.columns + column] = value;
    }

    pub(super) fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |row, column| self.at(column, row))
    }

    pub(super) fn adjoint(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |row, column| {
            self.at(column, row).conj()
        })
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows, "the shapes agree");
        Self::from_fn(self.rows, other.columns, |row, column| {
            (0..self.columns)
                .map(|inner| self.at(row, inner) * other.at(inner, column))
                .sum()
        })
    }

    pub(super) fn scaled(&self, factor: Complex64) -> Self {
        Self::from_fn(self.rows, self.columns, |row, column| {
            self.at(row, column) * factor
        })
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self::from_fn(self.rows, self.columns, |row, column| {
            self.at(row, column) + other.at(row, column)
        })
    }

    /// Returns this matrix where `choose` holds, and `other` elsewhere.
    pub(super) fn or(&self, other: &Self, choose: impl Fn(usize, usize) -> bool) -> Self {
        Self::from_fn(self.rows, self.columns, |row, column| {
            if choose(row, column) {
                self.at(row, column)
            } else {
                other.at(row, column)
            }
        })
    }

    /// Asserts that each element is `expected` but for the rounding of `steps` operations on
    /// numbers of about 1.
    #[track_caller]
    pub(super) fn assert_is<T: Number>(&self, expected: &Self, steps: usize, what: &str) {
        assert_eq!(
            (self.rows, self.columns),
            (expected.rows, expected.columns),
            "{what}"
        );
        let bound = 8.0 * (steps as f64 + 4.0) * T::EPSILON;
        for row in 0..self.rows {
            for column in 0..self.columns {
                let actual = self.at(row, column);
                let wanted = expected.at(row, column);
                let error = (actual - wanted).norm();
                let allowed = bound * (1.0 + wanted.norm());
                assert!(
                    error <= allowed,
                    "{what}: {actual} at ({row}, {column}) instead of {wanted}, which allows {allowed}"
                );
            }
        }
    }
}
