//! Types of elements and their precision, matrices on the host, and random ones.

use curium_blas::lt::{MatmulElement, TypedLayout};
use curium_blas::{MatrixLayout, Order};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

/// A type of elements.
pub(super) trait Value: MatmulElement + std::fmt::Debug + Send + Sync {
    /// The relative error of rounding to the type.
    const EPSILON: f64;

    fn narrow(value: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! values {
    ($($ty:ty: $epsilon:expr, |$narrow:ident| $to:expr, |$wide:ident| $from:expr;)*) => {
        $(
            impl Value for $ty {
                const EPSILON: f64 = $epsilon;

                fn narrow($narrow: f64) -> Self {
                    $to
                }

                fn wide(self) -> f64 {
                    let $wide = self;
                    $from
                }
            }
        )*
    };
}

values! {
    f64: f64::EPSILON, |value| value, |value| value;
    f32: f32::EPSILON as f64, |value| value as f32, |value| value.into();
    f16: 1.0 / 1024.0, |value| Self::from_f64(value), |value| value.to_f64();
    bf16: 1.0 / 128.0, |value| Self::from_f64(value), |value| value.to_f64();
    F8E4M3: 1.0 / 8.0, |value| Self::from_f64(value), |value| value.to_f64();
    F8E5M2: 1.0 / 4.0, |value| Self::from_f64(value), |value| value.to_f64();
    i8: 0.0, |value| value as i8, |value| value.into();
    i32: 0.0, |value| value as i32, |value| value.into();
}

/// A source of random numbers that a seed repeats.
pub(super) struct Random(fastrand::Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.0.bool()
    }

    /// Returns a number that the type represents: between -2 and 2, and integer for integers.
    pub(super) fn number<T: Value>(&mut self) -> T {
        let value = self.below(4001) as f64 / 1000.0 - 2.0;
        T::narrow(if T::EPSILON == 0.0 {
            value.round()
        } else {
            value
        })
    }

    pub(super) fn numbers<T: Value>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| self.number()).collect()
    }

    /// Returns a layout in a random order with some space between its columns, in multiples of
    /// `step`.
    pub(super) fn layout(&mut self, rows: usize, columns: usize, step: usize) -> MatrixLayout {
        let layout = if self.flip() {
            MatrixLayout::row_major(rows, columns)
        } else {
            MatrixLayout::row_major(columns, rows).transposed()
        };
        layout.with_leading_dimension(layout.leading_dimension() + step * self.below(3))
    }
}

/// A matrix on the host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) rows: usize,
    pub(super) columns: usize,
    elements: Vec<f64>,
}

impl Host {
    pub(super) fn from_fn(
        rows: usize,
        columns: usize,
        element: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let positions = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Self {
            rows,
            columns,
            elements: positions
                .map(|(row, column)| element(row, column))
                .collect(),
        }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.elements[row * self.columns + column]
    }

    pub(super) fn map(&self, convert: impl Fn(usize, usize, f64) -> f64) -> Self {
        Self::from_fn(self.rows, self.columns, |row, column| {
            convert(row, column, self.at(row, column))
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

    pub(super) fn plus(&self, factor: f64, other: &Self) -> Self {
        self.map(|row, column, value| value + factor * other.at(row, column))
    }

    /// Returns the largest absolute value.
    pub(super) fn largest(&self) -> f64 {
        let positions =
            (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        positions
            .map(|(row, column)| self.at(row, column).abs())
            .fold(0.0, f64::max)
    }

    /// Asserts that each element is `expected` but for rounding to a type, and for an error of
    /// `absolute`.
    #[track_caller]
    pub(super) fn assert_is<T: Value>(&self, expected: &Self, absolute: f64, what: &str) {
        assert_eq!(
            (self.rows, self.columns),
            (expected.rows, expected.columns),
            "{what}"
        );
        for row in 0..self.rows {
            for column in 0..self.columns {
                let actual = self.at(row, column);
                let wanted = expected.at(row, column);
                let allowed = absolute + T::EPSILON * wanted.abs();
                let is_right = (actual - wanted).abs() <= allowed;
                assert!(
                    is_right,
                    "{what}: {actual} at ({row}, {column}) instead of {wanted}, which allows {allowed}"
                );
            }
        }
    }
}

/// A matrix in device memory, and on the host.
pub(super) struct Device<T> {
    pub(super) buffer: DeviceBuffer<T>,
    layout: MatrixLayout,
    pub(super) host: Host,
}

impl<T: Value> Device<T> {
    pub(super) fn random(random: &mut Random, stream: &Stream, layout: MatrixLayout) -> Self {
        let elements: Vec<T> = random.numbers(layout.span().expect("size overflow"));
        let host = host_copy(&elements, layout);
        let buffer = DeviceBuffer::from_slice(stream, &elements).expect("allocation failed");
        Self {
            buffer,
            layout,
            host,
        }
    }

    pub(super) fn typed(&self) -> TypedLayout {
        TypedLayout::new::<T>(self.layout)
    }

    /// Returns the matrix as it is on the device now.
    pub(super) fn now(&self) -> Host {
        host_copy(
            &self.buffer.to_vec().expect("the operation succeeded"),
            self.layout,
        )
    }
}

pub(super) fn host_copy<T: Value>(elements: &[T], layout: MatrixLayout) -> Host {
    let leading = layout.leading_dimension();
    Host::from_fn(layout.rows(), layout.columns(), |row, column| {
        let index = if layout.order() == Order::ColumnMajor {
            column * leading + row
        } else {
            row * leading + column
        };
        elements[index].wide()
    })
}

pub(super) fn vector<T: Value>(buffer: &DeviceBuffer<T>) -> Vec<f64> {
    buffer
        .to_vec()
        .expect("the operation succeeded")
        .into_iter()
        .map(Value::wide)
        .collect()
}
