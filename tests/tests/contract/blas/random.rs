//! Random matrices and vectors in device memory: shapes, orders, leading dimensions, transpositions
//! and conjugations.

use curium_blas::{
    BandLayout, Banded, Complex64, Matrix, MatrixLayout, MatrixMut, Order, Packed, PackedMut,
    Result, Triangle, Vector, VectorMut,
};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use fastrand::Rng;

use super::reference::{Host, Number};

/// A source of random numbers that a seed repeats.
pub(super) struct Random(Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.0.bool()
    }

    /// Returns a number that the type represents, with parts between -1 and 1.
    pub(super) fn number<T: Number>(&mut self) -> T {
        let mut part = || self.below(2001) as f64 / 1000.0 - 1.0;
        T::narrow(Complex64::new(part(), part()))
    }
}

/// A random matrix in device memory, as a view shows it, and as it is on the host.
pub(super) struct RandomMatrix<T> {
    buffer: DeviceBuffer<T>,
    layout: MatrixLayout,
    is_transposed: bool,
    is_conjugated: bool,
    pub(super) host: Host,
}

impl<T: Number> RandomMatrix<T> {
    /// Creates a matrix with these sizes in the view.
    pub(super) fn new(
        random: &mut Random,
        stream: &Stream,
        rows: usize,
        columns: usize,
    ) -> Result<Self> {
        Self::with(random, stream, (rows, columns), true)
    }

    /// Creates a matrix for a result, which is not conjugated.
    pub(super) fn result(
        random: &mut Random,
        stream: &Stream,
        rows: usize,
        columns: usize,
    ) -> Result<Self> {
        Self::with(random, stream, (rows, columns), false)
    }

    fn with(
        random: &mut Random,
        stream: &Stream,
        (rows, columns): (usize, usize),
        may_conjugate: bool,
    ) -> Result<Self> {
        let is_transposed = random.flip();
        let is_conjugated = may_conjugate && random.below(4) == 0;
        let (with_layout, other) = if is_transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let layout = if random.flip() {
            MatrixLayout::row_major(with_layout, other)
        } else {
            MatrixLayout::column_major(with_layout, other)
        };
        let layout = layout.with_leading_dimension(layout.leading_dimension() + random.below(3));
        Self::with_layout(random, stream, layout, (is_transposed, is_conjugated))
    }

    /// Creates another matrix with the same layout.
    pub(super) fn another(&self, random: &mut Random, stream: &Stream) -> Result<Self> {
        Self::with_layout(
            random,
            stream,
            self.layout,
            (self.is_transposed, self.is_conjugated),
        )
    }

    fn with_layout(
        random: &mut Random,
        stream: &Stream,
        layout: MatrixLayout,
        (is_transposed, is_conjugated): (bool, bool),
    ) -> Result<Self> {
        let span = layout.span().expect("size overflow");
        let elements: Vec<T> = (0..span + random.below(3))
            .map(|_| random.number())
            .collect();
        let host = host_copy(&elements, layout, is_transposed, is_conjugated);
        let buffer = DeviceBuffer::from_slice(stream, &elements)?;
        Ok(Self {
            buffer,
            layout,
            is_transposed,
            is_conjugated,
            host,
        })
    }

    pub(super) fn view(&self) -> Result<Matrix<'_, T>> {
        let matrix = Matrix::new(&self.buffer, self.layout)?;
        let matrix = if self.is_transposed {
            matrix.transposed()
        } else {
            matrix
        };
        Ok(if self.is_conjugated {
            matrix.conjugated()
        } else {
            matrix
        })
    }

    pub(super) fn view_mut(&mut self) -> Result<MatrixMut<'_, T>> {
        let matrix = MatrixMut::new(&mut self.buffer, self.layout)?;
        Ok(if self.is_transposed {
            matrix.transposed()
        } else {
            matrix
        })
    }

    /// Returns the matrix as it is on the device now.
    pub(super) fn now(&self) -> Result<Host> {
        let elements = self.buffer.to_vec()?;
        Ok(host_copy(
            &elements,
            self.layout,
            self.is_transposed,
            self.is_conjugated,
        ))
    }
}

fn host_copy<T: Number>(
    elements: &[T],
    layout: MatrixLayout,
    is_transposed: bool,
    is_conjugated: bool,
) -> Host {
    let ld = layout.leading_dimension();
    let stored = Host::from_fn(layout.rows(), layout.columns(), |row, column| {
        let index = if layout.order() == Order::ColumnMajor {
            column * ld + row
        } else {
            row * ld + column
        };
        let value = elements[index].wide();
        if is_conjugated { value.conj() } else { value }
    });
    if is_transposed {
        stored.transposed()
    } else {
        stored
    }
}

/// A random vector in device memory, as a matrix with one column on the host.
pub(super) struct RandomVector<T> {
    buffer: DeviceBuffer<T>,
    len: usize,
    stride: usize,
    pub(super) host: Host,
}

impl<T: Number> RandomVector<T> {
    pub(super) fn new(random: &mut Random, stream: &Stream, len: usize) -> Result<Self> {
        let stride = 1 + random.below(3);
        let elements: Vec<T> = (0..len * stride).map(|_| random.number()).collect();
        let host = Host::from_fn(len, 1, |row, _| elements[row * stride].wide());
        let buffer = DeviceBuffer::from_slice(stream, &elements)?;
        Ok(Self {
            buffer,
            len,
            stride,
            host,
        })
    }

    pub(super) fn view(&self) -> Result<Vector<'_, T>> {
        Vector::strided(&self.buffer, self.len, self.stride)
    }

    pub(super) fn view_mut(&mut self) -> Result<VectorMut<'_, T>> {
        VectorMut::strided(&mut self.buffer, self.len, self.stride)
    }

    pub(super) fn now(&self) -> Result<Host> {
        let elements = self.buffer.to_vec()?;
        Ok(Host::from_fn(self.len, 1, |row, _| {
            elements[row * self.stride].wide()
        }))
    }
}

/// A random banded matrix in device memory, as a view shows it, and as it is on the host. Places
/// outside of the matrix are not numbers.
pub(super) struct RandomBanded<T> {
    buffer: DeviceBuffer<T>,
    layout: BandLayout,
    is_transposed: bool,
    is_conjugated: bool,
    pub(super) host: Host,
}

impl<T: Number> RandomBanded<T> {
    /// Creates a matrix with these sizes in the view.
    pub(super) fn new(
        random: &mut Random,
        stream: &Stream,
        rows: usize,
        columns: usize,
    ) -> Result<Self> {
        let lower = random.below(4);
        let upper = random.below(4);
        let extra = random.below(3);
        let is_transposed = random.flip();
        let is_conjugated = random.below(4) == 0;
        let is_by_rows = random.flip();
        let (rows, columns) = if is_transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let create = if is_by_rows {
            BandLayout::row_major
        } else {
            BandLayout::column_major
        };
        let ld = lower + upper + 1 + extra;
        let layout = create(rows, columns, lower, upper).with_leading_dimension(ld);
        let lines = if is_by_rows { rows } else { columns };
        let mut elements = vec![
            T::narrow(Complex64::new(f64::NAN, f64::NAN));
            ld * (lines - 1) + lower + upper + 1
        ];
        let mut stored = Host::from_fn(rows, columns, |_, _| Complex64::new(0.0, 0.0));
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            if column + lower >= row && row + upper >= column {
                let value: T = random.number();
                let index = if is_by_rows {
                    row * ld + lower + column - row
                } else {
                    column * ld + upper + row - column
                };
                elements[index] = value;
                stored.set(
                    row,
                    column,
                    if is_conjugated {
                        value.wide().conj()
                    } else {
                        value.wide()
                    },
                );
            }
        }
        let host = if is_transposed {
            stored.transposed()
        } else {
            stored
        };
        let buffer = DeviceBuffer::from_slice(stream, &elements)?;
        Ok(Self {
            buffer,
            layout,
            is_transposed,
            is_conjugated,
            host,
        })
    }

    pub(super) fn view(&self) -> Result<Banded<'_, T>> {
        let matrix = Banded::new(&self.buffer, self.layout)?;
        let matrix = if self.is_transposed {
            matrix.transposed()
        } else {
            matrix
        };
        Ok(if self.is_conjugated {
            matrix.conjugated()
        } else {
            matrix
        })
    }
}

/// A random packed triangle in device memory, as a view shows it, and as it is on the host, with
/// zeros in the other triangle.
pub(super) struct RandomPacked<T> {
    buffer: DeviceBuffer<T>,
    size: usize,
    /// The triangle that is stored.
    stored: Triangle,
    is_by_rows: bool,
    is_transposed: bool,
    is_conjugated: bool,
    pub(super) host: Host,
}

impl<T: Number> RandomPacked<T> {
    pub(super) fn new(random: &mut Random, stream: &Stream, size: usize) -> Result<Self> {
        let is_conjugated = random.below(4) == 0;
        Self {
            is_conjugated,
            ..Self::result(random, stream, size)?
        }
        .refreshed()
    }

    /// Creates a matrix for a result, which is not conjugated.
    pub(super) fn result(random: &mut Random, stream: &Stream, size: usize) -> Result<Self> {
        let stored = if random.flip() {
            Triangle::Upper
        } else {
            Triangle::Lower
        };
        let is_by_rows = random.flip();
        let is_transposed = random.flip();
        let elements: Vec<T> = (0..size * (size + 1) / 2)
            .map(|_| random.number())
            .collect();
        let buffer = DeviceBuffer::from_slice(stream, &elements)?;
        let host = Host::from_fn(0, 0, |_, _| Complex64::new(0.0, 0.0));
        Self {
            buffer,
            size,
            stored,
            is_by_rows,
            is_transposed,
            is_conjugated: false,
            host,
        }
        .refreshed()
    }

    fn refreshed(mut self) -> Result<Self> {
        self.host = self.now()?;
        Ok(self)
    }

    /// Returns the triangle that the view shows.
    pub(super) fn triangle(&self) -> Triangle {
        if (self.stored == Triangle::Upper) == self.is_transposed {
            Triangle::Lower
        } else {
            Triangle::Upper
        }
    }

    pub(super) fn view(&self) -> Result<Packed<'_, T>> {
        let create = if self.is_by_rows {
            Packed::row_major
        } else {
            Packed::column_major
        };
        let matrix = create(&self.buffer, self.size, self.stored)?;
        let matrix = if self.is_transposed {
            matrix.transposed()
        } else {
            matrix
        };
        Ok(if self.is_conjugated {
            matrix.conjugated()
        } else {
            matrix
        })
    }

    pub(super) fn view_mut(&mut self) -> Result<PackedMut<'_, T>> {
        let create = if self.is_by_rows {
            PackedMut::row_major
        } else {
            PackedMut::column_major
        };
        let matrix = create(&mut self.buffer, self.size, self.stored)?;
        Ok(if self.is_transposed {
            matrix.transposed()
        } else {
            matrix
        })
    }

    /// Returns the matrix as it is on the device now.
    pub(super) fn now(&self) -> Result<Host> {
        let elements = self.buffer.to_vec()?;
        let mut elements = elements.into_iter().map(Number::wide);
        let mut stored = Host::from_fn(self.size, self.size, |_, _| Complex64::new(0.0, 0.0));
        for line in 0..self.size {
            for index in 0..self.size {
                let (row, column) = if self.is_by_rows {
                    (line, index)
                } else {
                    (index, line)
                };
                if (self.stored == Triangle::Upper && row <= column)
                    || (self.stored == Triangle::Lower && row >= column)
                {
                    let value = elements.next().expect("too few elements");
                    stored.set(
                        row,
                        column,
                        if self.is_conjugated {
                            value.conj()
                        } else {
                            value
                        },
                    );
                }
            }
        }
        Ok(if self.is_transposed {
            stored.transposed()
        } else {
            stored
        })
    }
}
