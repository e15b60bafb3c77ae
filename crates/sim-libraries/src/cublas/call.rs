//! One operation: its operands, and the computation that runs in stream order.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use curium_blas::sys::{
    cublasDiagType_t, cublasFillMode_t, cublasHandle_t, cublasPointerMode_t, cublasStatus_t,
};
use curium_sim::{LibraryOperation, Operand};

use super::handle::{self, Handle};
use super::memory::Memory;
use super::operand::{
    BandOperand, First, MatrixOperand, PointerOperand, Scalar, Storage, TriangleOperand,
    VectorOperand, leading_dimension,
};
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
        let handle = handle::look_up_for_operation(handle)?;
        let (address, bytes) = handle.workspace();
        let mut call = Self {
            name,
            handle,
            operands: Vec::new(),
        };
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

    /// Adds runs of bytes, which begin at distances from the first element.
    fn add_runs(
        &mut self,
        access: Access,
        first: First,
        runs: impl Iterator<Item = (usize, usize)>,
    ) -> usize {
        match first {
            First::Address(address) => {
                self.add(runs.fold(access.operand(), |operand, (distance, bytes)| {
                    operand.with_run(address.wrapping_add(distance as u64), bytes)
                }))
            }
            First::Pointer(PointerOperand(array), index) => {
                let runs: Vec<_> = runs.collect();
                let find = move |bytes: &[u8]| {
                    let pointers: Vec<u64> = bytemuck::pod_collect_to_vec(bytes);
                    runs.iter()
                        .map(|(distance, bytes)| {
                            (pointers[index].wrapping_add(*distance as u64), *bytes)
                        })
                        .collect()
                };
                self.add(access.operand().with_runs_from(array, find))
            }
        }
    }

    /// Adds an array of pointers in device memory.
    pub(super) fn pointers<P>(&mut self, array: *const P, count: usize) -> Result<PointerOperand> {
        if array.is_null() && count > 0 {
            return Err(INVALID);
        }
        Ok(PointerOperand(self.add(
            Operand::read().with_run(array.addr() as u64, count * size_of::<u64>()),
        )))
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
        let start = if increment < 0 {
            (1 - len) * increment
        } else {
            0
        };
        let element = size_of::<T>();
        let address = |index: i64| {
            (first.addr() as u64).wrapping_add_signed((start + index * increment) * element as i64)
        };
        let operand = (0..len).fold(access.operand(), |operand, index| {
            operand.with_run(address(index), element)
        });
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
            let start =
                (first.addr() as u64).wrapping_add_signed(number as i64 * stride * element as i64);
            for column in 0..columns {
                operand =
                    operand.with_run(start + (column * leading * element) as u64, rows * element);
            }
        }
        Ok(MatrixOperand {
            index: self.add(operand),
            rows,
            columns,
        })
    }

    /// Adds a matrix with these sizes in memory that an array of pointers refers to.
    pub(super) fn matrix_of<T: Pod>(
        &mut self,
        access: Access,
        (array, index): (PointerOperand, usize),
        (rows, columns): (usize, usize),
        leading: i64,
    ) -> Result<MatrixOperand> {
        let leading = leading_dimension(leading, rows)?;
        let runs =
            (0..columns).map(|column| (column * leading * size_of::<T>(), rows * size_of::<T>()));
        Ok(MatrixOperand {
            index: self.add_runs(access, First::Pointer(array, index), runs),
            rows,
            columns,
        })
    }

    /// Adds a banded matrix that is read.
    pub(super) fn band<T: Number>(
        &mut self,
        first: *const T,
        sizes: (usize, usize),
        diagonals: (usize, usize),
        leading: i64,
    ) -> Result<BandOperand> {
        let leading = checked(first, leading, (diagonals.0 + diagonals.1 + 1, sizes.1))?;
        let (mut band, element) = (
            BandOperand {
                index: 0,
                sizes,
                diagonals,
            },
            size_of::<T>(),
        );
        let runs = (0..sizes.1).map(|column| {
            let rows = band.rows(column);
            let place = column * leading + diagonals.1 + rows.start - column;
            (place * element, rows.len() * element)
        });
        band.index = self.add_runs(Access::Read, First::Address(first.addr() as u64), runs);
        Ok(band)
    }

    /// Adds one triangle of a square matrix, without its diagonal if that consists of ones.
    pub(super) fn triangle<T: Number>(
        &mut self,
        access: Access,
        fill: cublasFillMode_t,
        diagonal: cublasDiagType_t,
        first: *const T,
        n: usize,
        storage: Storage,
    ) -> Result<TriangleOperand> {
        if first.is_null() && n > 0 {
            return Err(INVALID);
        }
        self.triangle_at::<T>(
            access,
            fill,
            diagonal,
            First::Address(first.addr() as u64),
            n,
            storage,
        )
    }

    /// Adds one triangle of a square matrix whose first element is at `first`.
    pub(super) fn triangle_at<T: Number>(
        &mut self,
        access: Access,
        fill: cublasFillMode_t,
        diagonal: cublasDiagType_t,
        first: First,
        n: usize,
        storage: Storage,
    ) -> Result<TriangleOperand> {
        let is_upper = match fill {
            cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => true,
            cublasFillMode_t::CUBLAS_FILL_MODE_LOWER => false,
            _ => return Err(INVALID),
        };
        let diagonals = storage.diagonals(n)?;
        let has_diagonal = diagonal == cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;
        let mut triangle = TriangleOperand {
            index: 0,
            size: n,
            diagonals,
            is_upper,
            has_diagonal,
        };
        let runs = (0..n).map(|column| {
            let rows = triangle.rows(column);
            let place = if rows.is_empty() {
                0
            } else {
                storage.place(is_upper, n, rows.start, column)
            };
            (place * size_of::<T>(), rows.len() * size_of::<T>())
        });
        triangle.index = self.add_runs(access, first, runs);
        Ok(triangle)
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
        Ok(Scalar::Device(self.add(
            Operand::read().with_run(place.addr() as u64, size_of::<T>()),
        )))
    }

    /// Enqueues the operation.
    pub(super) fn enqueue(
        self,
        compute: impl Fn(&mut Memory<'_>) + Send + Sync + 'static,
    ) -> Result {
        let operation = LibraryOperation::new(self.name, self.operands, move |operands| {
            compute(&mut Memory(operands));
        });
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue(self.handle.stream()) }
            .map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)
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
        unsafe {
            handle::write(
                place,
                computed.ok_or(cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)?,
            )
        }
    }
}

/// Checks the address and the leading dimension of a matrix.
fn checked<T>(first: *const T, leading: i64, (rows, columns): (usize, usize)) -> Result<usize> {
    let is_empty = rows == 0 || columns == 0;
    if first.is_null() && !is_empty {
        Err(INVALID)
    } else {
        leading_dimension(leading, rows)
    }
}
