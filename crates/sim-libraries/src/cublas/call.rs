//! One operation: its operands, and the computation that runs in stream order.

use std::sync::Arc;

use bytemuck::Pod;
use curium_sim::{LibraryOperation, Operand};
use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasHandle_t, cublasStatus_t};
use parking_lot::Mutex;

use super::handle::{self, Handle};
use super::memory::Memory;
use super::operand::{
    BandOperand, Diagonals, First, HostMode, Input, MatrixOperand, PointerArgument, PointerOperand,
    Scalar, ScalarInput, ScalarOutput, Shape, Storage, TriangleOperand, VectorOperand,
    leading_dimension,
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
    /// Returns the access to a result that is multiplied by `beta` first: one that is multiplied by
    /// 0 is not read.
    pub(super) fn for_result<T: Number>(beta: Scalar<T>) -> Self {
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

    /// Returns the proof that scalars are on the host, `None` if they are in device memory.
    pub(super) fn host_mode(&self) -> Option<HostMode> {
        HostMode::new(self.handle.pointer_mode)
    }

    fn add(&mut self, operand: Operand) -> usize {
        self.operands.push(operand);
        self.operands.len() - 1
    }

    /// Adds byte ranges, each with its offset from the first element and its length.
    fn add_ranges(
        &mut self,
        access: Access,
        first: First,
        ranges: impl Iterator<Item = (usize, usize)>,
    ) -> usize {
        match first {
            First::Address(address) => {
                self.add(ranges.fold(access.operand(), |operand, (offset, bytes)| {
                    operand.with_run(address.wrapping_add(offset as u64), bytes)
                }))
            }
            First::Pointer(PointerOperand(array), index) => {
                let ranges: Vec<_> = ranges.collect();
                self.add(access.operand().with_runs_from(array, move |bytes| {
                    let pointers: Vec<u64> = bytemuck::pod_collect_to_vec(bytes);
                    ranges
                        .iter()
                        .map(|(offset, bytes)| {
                            (pointers[index].wrapping_add(*offset as u64), *bytes)
                        })
                        .collect()
                }))
            }
        }
    }

    /// Adds an array of pointers in device memory.
    pub(super) fn pointers(
        &mut self,
        array: impl PointerArgument,
        count: usize,
    ) -> Result<PointerOperand> {
        if array.is_null() && count > 0 {
            return Err(INVALID);
        }
        Ok(PointerOperand(self.add(
            Operand::read().with_run(array.address(), count * size_of::<u64>()),
        )))
    }

    /// Adds a vector. The elements of one with a negative increment are in the reverse order in
    /// memory.
    pub(super) fn vector<T: Number>(
        &mut self,
        access: Access,
        first: impl PointerArgument<Element = T>,
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
        let mut operand = access.operand();
        for index in 0..len {
            let offset = (start + index * increment) * element as i64;
            operand = operand.with_run(first.address().wrapping_add_signed(offset), element);
        }
        Ok(VectorOperand(self.add(operand)))
    }

    /// Adds a matrix with this shape in memory.
    pub(super) fn matrix<T: Pod>(
        &mut self,
        access: Access,
        first: impl PointerArgument<Element = T>,
        shape: Shape,
        leading: i64,
    ) -> Result<MatrixOperand> {
        self.matrices(access, first, shape, leading, 0, 1)
    }

    /// Adds `count` matrices with this shape in memory, `stride` elements apart.
    pub(super) fn matrices<T: Pod>(
        &mut self,
        access: Access,
        first: impl PointerArgument<Element = T>,
        shape: Shape,
        leading: i64,
        stride: i64,
        count: usize,
    ) -> Result<MatrixOperand> {
        let leading = checked(first, leading, shape)?;
        let element = size_of::<T>();
        let mut operand = access.operand();
        for number in 0..count {
            let offset = number as i64 * stride * element as i64;
            let start = first.address().wrapping_add_signed(offset);
            for column in 0..shape.columns {
                operand = operand.with_run(
                    start + (column * leading * element) as u64,
                    shape.rows * element,
                );
            }
        }
        Ok(MatrixOperand {
            index: self.add(operand),
            shape,
        })
    }

    /// Adds the matrix with this shape in memory that a pointer of an array refers to.
    pub(super) fn indirect_matrix<T: Pod>(
        &mut self,
        access: Access,
        array: PointerOperand,
        index: usize,
        shape: Shape,
        leading: i64,
    ) -> Result<MatrixOperand> {
        let leading = leading_dimension(leading, shape.rows)?;
        let ranges = (0..shape.columns).map(|column| {
            (
                column * leading * size_of::<T>(),
                shape.rows * size_of::<T>(),
            )
        });
        Ok(MatrixOperand {
            index: self.add_ranges(access, First::Pointer(array, index), ranges),
            shape,
        })
    }

    /// Adds a banded matrix that is read.
    pub(super) fn band<T: Number>(
        &mut self,
        first: Input<T>,
        shape: Shape,
        diagonals: Diagonals,
        leading: i64,
    ) -> Result<BandOperand> {
        let Diagonals { lower, upper } = diagonals;
        let stored = Shape::new(lower + upper + 1, shape.columns);
        let leading = checked(first, leading, stored)?;
        let mut band = BandOperand {
            index: 0,
            shape,
            diagonals,
        };
        let element = size_of::<T>();
        let ranges = (0..shape.columns).map(|column| {
            let rows = band.rows(column);
            let offset = column * leading + upper + rows.start - column;
            (offset * element, rows.len() * element)
        });
        band.index = self.add_ranges(Access::Read, First::Address(first.address()), ranges);
        Ok(band)
    }

    /// Adds one triangle of a square matrix, without its diagonal if that consists of ones.
    pub(super) fn triangle<T: Number>(
        &mut self,
        access: Access,
        fill: cublasFillMode_t,
        diagonal: cublasDiagType_t,
        first: impl PointerArgument<Element = T>,
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
            First::Address(first.address()),
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
        let ranges = (0..n).map(|column| {
            let rows = triangle.rows(column);
            let offset = if rows.is_empty() {
                0
            } else {
                storage.offset(is_upper, n, rows.start, column)
            };
            (offset * size_of::<T>(), rows.len() * size_of::<T>())
        });
        triangle.index = self.add_ranges(access, first, ranges);
        Ok(triangle)
    }

    /// Reads a scalar of the host, or adds one in device memory.
    pub(super) fn scalar<T: Pod>(&mut self, scalar: ScalarInput<T>) -> Result<Scalar<T>> {
        if scalar.is_null() {
            return Err(INVALID);
        }
        match self.host_mode() {
            Some(mode) => scalar.read(mode).map(Scalar::Host),
            None => Ok(Scalar::Device(
                self.add(Operand::read().with_run(scalar.address(), size_of::<T>())),
            )),
        }
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

    /// Enqueues an operation with a result, which the device writes, or the host after a wait.
    pub(super) fn enqueue_with_result<T: Number>(
        mut self,
        output: ScalarOutput<T>,
        compute: impl Fn(&mut Memory<'_>) -> T + Send + Sync + 'static,
    ) -> Result {
        if let Some(mode) = self.host_mode() {
            return self.run(mode, output, compute);
        }
        let index = self.add(Operand::write().with_run(output.address(), size_of::<T>()));
        self.enqueue(move |memory| {
            let result = compute(memory);
            memory.set(index, &[result]);
        })
    }

    /// Enqueues an operation, waits for it, and writes its result on the host.
    pub(super) fn run<T: Copy + Send + 'static>(
        self,
        mode: HostMode,
        output: ScalarOutput<T>,
        compute: impl Fn(&mut Memory<'_>) -> T + Send + Sync + 'static,
    ) -> Result {
        let result = Arc::new(Mutex::new(None));
        let operation = LibraryOperation::new(self.name, self.operands, {
            let result = Arc::clone(&result);
            move |operands| *result.lock() = Some(compute(&mut Memory(operands)))
        });
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue_and_wait(self.handle.stream()) }
            .map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)?;
        let result = result
            .lock()
            .take()
            .ok_or(cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)?;
        output.write(mode, result)
    }
}

/// Checks the address and the leading dimension of a matrix.
fn checked(first: impl PointerArgument, leading: i64, shape: Shape) -> Result<usize> {
    if first.is_null() && !shape.is_empty() {
        Err(INVALID)
    } else {
        leading_dimension(leading, shape.rows)
    }
}
