//! One operation: its operands, and the computation that runs in stream order.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasHandle_t, cublasPointerMode_t, cublasStatus_t};
use curium_sim::{LibraryOperation, Operand};

use super::dense::Dense;
use super::handle::{self, Handle};
use super::{INVALID, Number, Result, size};

/// The kind of access of an operation to an operand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    Read,
    Write,
    ReadWrite,
}

/// An operation before it is enqueued.
pub(super) struct Call {
    name: &'static str,
    handle: Handle,
    operands: Vec<Operand>,
}

/// A vector operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorOperand(usize);

/// A matrix operand, with its sizes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixOperand {
    index: usize,
    rows: usize,
    columns: usize,
}

/// One triangle of a square matrix as an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct TriangleOperand {
    index: usize,
    size: usize,
    is_upper: bool,
    has_diagonal: bool,
}

/// A factor: a number that the host has passed, or an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<T> {
    Host(T),
    Device(usize),
}

/// The contents of the triangle that an operand does not store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Other {
    Zero,
    Symmetric,
    Hermitian,
}

/// The bytes of the operands while the operation runs.
pub(super) struct Memory<'a>(&'a mut [Vec<u8>]);

impl Access {
    /// Returns the access to a result that is multiplied by `beta` first: one that is multiplied by 0 is not read.
    pub(super) fn of_result<T: Number>(beta: Scalar<T>) -> Self {
        match beta {
            Scalar::Host(beta) if beta == T::zero() => Self::Write,
            _ => Self::ReadWrite,
        }
    }

    fn operand(self) -> Operand {
        match self {
            Self::Read => Operand::read(),
            Self::Write => Operand::write(),
            Self::ReadWrite => Operand::read_write(),
        }
    }
}

impl Call {
    pub(super) fn new(name: &'static str, handle: cublasHandle_t) -> Result<Self> {
        let handle = handle::look_up(handle)?;
        let mut call = Self { name, handle, operands: Vec::new() };
        let (address, bytes) = handle.workspace;
        // As on hardware, work that uses one workspace on two streams races.
        call.add(Operand::write().with_run(address, bytes.min(256)));
        Ok(call)
    }

    pub(super) fn results_are_on_host(&self) -> bool {
        self.handle.pointer_mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST
    }

    fn add(&mut self, operand: Operand) -> usize {
        self.operands.push(operand);
        self.operands.len() - 1
    }

    /// Adds a vector. The elements of one with a negative increment are in the reverse order in memory.
    pub(super) fn vector<T: Number>(
        &mut self,
        access: Access,
        first: *const T,
        len: i64,
        increment: i64,
    ) -> Result<VectorOperand> {
        let len = size(len)? as i64;
        if increment == 0 || (first.is_null() && len > 0) {
            return Err(INVALID);
        }
        let start = if increment < 0 { (1 - len) * increment } else { 0 };
        let element = size_of::<T>();
        let address =
            |index: i64| (first.addr() as u64).wrapping_add_signed((start + index * increment) * element as i64);
        let operand = (0..len).fold(access.operand(), |operand, index| operand.with_run(address(index), element));
        Ok(VectorOperand(self.add(operand)))
    }

    /// Adds a matrix with these sizes in memory.
    pub(super) fn matrix<T: Pod>(
        &mut self,
        access: Access,
        first: *const T,
        (rows, columns): (usize, usize),
        leading: i64,
    ) -> Result<MatrixOperand> {
        self.matrices(access, first, (rows, columns), leading, (0, 1))
    }

    /// Adds matrices with these sizes in memory, `stride` elements apart.
    pub(super) fn matrices<T: Pod>(
        &mut self,
        access: Access,
        first: *const T,
        (rows, columns): (usize, usize),
        leading: i64,
        (stride, count): (i64, usize),
    ) -> Result<MatrixOperand> {
        let leading = checked(first, leading, (rows, columns))?;
        let element = size_of::<T>();
        let mut operand = access.operand();
        for number in 0..count {
            let start = (first.addr() as u64).wrapping_add_signed(number as i64 * stride * element as i64);
            for column in 0..columns {
                operand = operand.with_run(start + (column * leading * element) as u64, rows * element);
            }
        }
        Ok(MatrixOperand { index: self.add(operand), rows, columns })
    }

    /// Adds one triangle of a square matrix, without its diagonal if that consists of ones.
    pub(super) fn triangle<T: Number>(
        &mut self,
        access: Access,
        fill: cublasFillMode_t,
        diagonal: cublasDiagType_t,
        first: *const T,
        n: usize,
        leading: i64,
    ) -> Result<TriangleOperand> {
        let is_upper = match fill {
            cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => true,
            cublasFillMode_t::CUBLAS_FILL_MODE_LOWER => false,
            _ => return Err(INVALID),
        };
        let leading = checked(first, leading, (n, n))?;
        let has_diagonal = diagonal == cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;
        let triangle = TriangleOperand { index: 0, size: n, is_upper, has_diagonal };
        let element = size_of::<T>();
        let operand = (0..n).fold(access.operand(), |operand, column| {
            let rows = triangle.rows(column);
            let address = first.addr() + (column * leading + rows.start) * element;
            operand.with_run(address as u64, rows.len() * element)
        });
        Ok(TriangleOperand { index: self.add(operand), ..triangle })
    }

    /// Reads a factor of the host, or adds one in device memory.
    ///
    /// # Safety
    ///
    /// In the pointer mode of the host, `place` is null or valid for reads.
    pub(super) unsafe fn scalar<T: Pod>(&mut self, place: *const T) -> Result<Scalar<T>> {
        if place.is_null() {
            return Err(INVALID);
        }
        if self.results_are_on_host() {
            // SAFETY: the caller guarantees that the place is valid for reads.
            return Ok(Scalar::Host(unsafe { place.read_unaligned() }));
        }
        Ok(Scalar::Device(self.add(Operand::read().with_run(place.addr() as u64, size_of::<T>()))))
    }

    /// Enqueues the operation.
    pub(super) fn enqueue(self, compute: impl Fn(&mut Memory<'_>) + Send + Sync + 'static) -> Result {
        let operation = LibraryOperation::new(self.name, self.operands, move |operands| compute(&mut Memory(operands)));
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue(self.handle.stream()) }.map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)
    }

    /// Enqueues an operation with a result, which is written to `place`: by the device, or after a wait by the host.
    ///
    /// # Safety
    ///
    /// In the pointer mode of the host, `place` is null or valid for writes.
    pub(super) unsafe fn enqueue_with_result<T: Number>(
        mut self,
        place: *mut T,
        compute: impl Fn(&mut Memory<'_>) -> T + Send + Sync + 'static,
    ) -> Result {
        if self.results_are_on_host() {
            // SAFETY: the caller guarantees the place.
            return unsafe { self.run(place, compute) };
        }
        let index = self.add(Operand::write().with_run(place.addr() as u64, size_of::<T>()));
        self.enqueue(move |memory| {
            let result = compute(memory);
            memory.set(index, &[result]);
        })
    }

    /// Enqueues an operation, waits for it, and writes its result.
    ///
    /// # Safety
    ///
    /// `place` is null or valid for writes.
    pub(super) unsafe fn run<T: Copy + Send + 'static>(
        self,
        place: *mut T,
        compute: impl Fn(&mut Memory<'_>) -> T + Send + Sync + 'static,
    ) -> Result {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let store = move |operands: &mut [Vec<u8>]| {
            let computed = compute(&mut Memory(operands));
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(computed);
        };
        let operation = LibraryOperation::new(self.name, self.operands, store);
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue_and_wait(self.handle.stream()) }
            .map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)?;
        let computed = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: the caller guarantees the place.
        unsafe { handle::write(place, computed.ok_or(cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)?) }
    }
}

impl MatrixOperand {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }
}

impl TriangleOperand {
    /// Returns the rows of a column that are in the operand.
    fn rows(&self, column: usize) -> std::ops::Range<usize> {
        let without = usize::from(!self.has_diagonal);
        if self.is_upper { 0..column + 1 - without } else { column + without..self.size }
    }

    pub(super) fn is_upper(&self) -> bool {
        self.is_upper
    }
}

impl Memory<'_> {
    fn get<T: Pod>(&self, index: usize) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.0[index])
    }

    fn set<T: Pod>(&mut self, index: usize, values: &[T]) {
        self.0[index].copy_from_slice(bytemuck::cast_slice(values));
    }

    pub(super) fn scalar<T: Pod>(&self, scalar: Scalar<T>) -> T {
        match scalar {
            Scalar::Host(value) => value,
            Scalar::Device(index) => self.get(index)[0],
        }
    }

    pub(super) fn vector<T: Number>(&self, VectorOperand(index): VectorOperand) -> Vec<T> {
        self.get(index)
    }

    /// Returns a vector as a matrix with one column.
    pub(super) fn column<T: Number>(&self, vector: VectorOperand) -> Dense<T> {
        let elements = self.vector(vector);
        Dense::new(elements.len(), 1, elements)
    }

    pub(super) fn set_vector<T: Number>(&mut self, VectorOperand(index): VectorOperand, values: &[T]) {
        self.set(index, values);
    }

    pub(super) fn matrix<T: Number>(&self, matrix: MatrixOperand) -> Dense<T> {
        Dense::new(matrix.rows, matrix.columns, self.get(matrix.index))
    }

    /// Returns the elements of a matrix by columns.
    pub(super) fn elements<T: Pod>(&self, matrix: MatrixOperand) -> Vec<T> {
        self.get(matrix.index)
    }

    pub(super) fn set_elements<T: Pod>(&mut self, matrix: MatrixOperand, elements: &[T]) {
        self.set(matrix.index, elements);
    }

    pub(super) fn set_matrix<T: Number>(&mut self, matrix: MatrixOperand, values: &Dense<T>) {
        self.set(matrix.index, &values.elements);
    }

    /// Returns each of the matrices of an operand.
    pub(super) fn matrices<T: Number>(&self, matrix: MatrixOperand) -> Vec<Dense<T>> {
        let elements = self.get(matrix.index);
        let parts = elements.chunks((matrix.rows * matrix.columns).max(1));
        parts.map(|part| Dense::new(matrix.rows, matrix.columns, part.to_vec())).collect()
    }

    pub(super) fn set_matrices<T: Number>(&mut self, matrix: MatrixOperand, values: &[Dense<T>]) {
        let all: Vec<T> = values.iter().flat_map(|part| part.elements.iter().copied()).collect();
        self.set(matrix.index, &all);
    }

    /// Returns the whole matrix of a triangle.
    pub(super) fn triangle<T: Number>(&self, triangle: TriangleOperand, other: Other) -> Dense<T> {
        let (n, elements) = (triangle.size, self.get::<T>(triangle.index));
        let mut whole = Dense::from_fn(n, n, |row, column| if row == column { T::one() } else { T::zero() });
        let places = (0..n).flat_map(|column| triangle.rows(column).map(move |row| (row, column)));
        for ((row, column), element) in places.zip(elements) {
            if row != column {
                *whole.at_mut(column, row) = match other {
                    Other::Zero => T::zero(),
                    Other::Symmetric => element,
                    Other::Hermitian => element.conj(),
                };
            }
            let is_real = row == column && other == Other::Hermitian;
            *whole.at_mut(row, column) = if is_real { T::from_real(element.re()) } else { element };
        }
        whole
    }

    pub(super) fn set_triangle<T: Number>(&mut self, triangle: TriangleOperand, values: &Dense<T>) {
        let places = (0..triangle.size).flat_map(|column| triangle.rows(column).map(move |row| (row, column)));
        let elements: Vec<T> = places.map(|(row, column)| values.at(row, column)).collect();
        self.set(triangle.index, &elements);
    }
}

/// Checks the address and the leading dimension of a matrix.
fn checked<T>(first: *const T, leading: i64, (rows, columns): (usize, usize)) -> Result<usize> {
    let (leading, is_empty) = (size(leading)?, rows == 0 || columns == 0);
    if first.is_null() && !is_empty || leading < rows.max(1) { Err(INVALID) } else { Ok(leading) }
}
