//! Operations on batches of matrices anywhere in memory.

use std::ffi::c_void;

use curium_driver::sys::CUdeviceptr;
use curium_memory::DeviceBuffer;

use super::check_product_shapes;
use super::product::{Product, transpose_for_result};
use super::triangular::side_agrees;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::pointer_mode;
use crate::level2::transpose_operation;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, OperandSlice, ScalarArgument};
use crate::stored::Stored;
use crate::sys::cublasMath_t;
use crate::triangle::{Diagonal, Side, Triangle};
use crate::vector::Vector;
use crate::{Blas, device_pointer};
use curium_sys::library_call as call;

/// The alignment of vector loads in bytes.
const VECTOR_ALIGNMENT: CUdeviceptr = 16;

impl Blas {
    /// Computes the products of batches of matrices anywhere in memory: `c` = `alpha` · `a` · `b` +
    /// `beta` · `c` for each index.
    ///
    /// The matrices of a batch have the same shape, order, leading dimension and conjugation. A
    /// batch may contain a factor several times.
    ///
    /// CUDA: `cublas<t>gemmBatched`, and a copy of the pointers to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm`], or if the batches have
    /// different lengths, or if the matrices of a batch differ. With
    /// [`MathMode::Tf32`](crate::MathMode::Tf32), matrices of `f32` and `Complex32` must be aligned
    /// to 16 bytes.
    #[doc(alias = "cublasSgemmBatched")]
    pub fn gemm_batched<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        a: &[Matrix<'_, T>],
        b: &[Matrix<'_, T>],
        beta: S,
        c: &mut [MatrixMut<'_, T>],
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_batched";
        let Some(layouts) = common_layouts(OPERATION, a, b, c)? else {
            return Ok(());
        };
        check_product_shapes(OPERATION, layouts.a, layouts.b, layouts.c)?;
        if layouts.c.is_empty() {
            return Ok(());
        }
        let (mut a, mut b): (Vec<_>, Vec<_>) = a
            .iter()
            .zip(b)
            .map(|(a, b)| transpose_for_result(*a, *b, layouts.c))
            .unzip();
        let product = Product::new(OPERATION, a[0].stored, b[0].stored, layouts.c)?;
        let Product {
            op_a,
            op_b,
            m,
            n,
            k,
            lda,
            ldb,
            ldc,
        } = product;
        let addresses = addresses(&a, &b, c);
        self.check_vector_loads::<T>(OPERATION, &addresses)?;
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let count = c.len();
        let alpha_ptr = alpha.pointer();
        let beta_ptr = beta.pointer();
        let mode = pointer_mode(&alpha);
        let pointers = self.pointers(OPERATION, &addresses)?;
        let [a_ptrs, b_ptrs, c_ptrs] = split_pointer_arrays(&pointers, count);
        let mut pointers = Vector::new(&pointers);
        let mut a = OperandSlice(&mut a);
        let mut b = OperandSlice(&mut b);
        let mut c = OperandSlice(c);
        let operands = (&mut alpha, &mut beta, &mut pointers, &mut a, &mut b, &mut c);
        self.enqueue(OPERATION, mode, operands, |api, raw| {
            // SAFETY: each array has `count` pointers to matrices of these shapes in live memory,
            // of which the results do not overlap, and the factors are where the mode requires.
            unsafe {
                T::gemm_batched(
                    api,
                    raw,
                    op_a,
                    op_b,
                    m,
                    n,
                    k,
                    alpha_ptr,
                    a_ptrs.cast(),
                    lda,
                    b_ptrs.cast(),
                    ldb,
                    beta_ptr,
                    c_ptrs,
                    ldc,
                    count,
                )
            }
        })
    }

    /// Solves `a` · `z` = `alpha` · `b` for batches of matrices anywhere in memory, or `z` · `a` =
    /// `alpha` · `b` if the side is the right one, and stores each `z` in its `b`.
    ///
    /// The matrices of a batch have the same shape, order, leading dimension and conjugation. A
    /// batch may contain a triangular matrix several times.
    ///
    /// CUDA: `cublas<t>trsmBatched`, and a copy of the pointers to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::trsm`], or if the batches have
    /// different lengths, or if the matrices of a batch differ.
    #[doc(alias = "cublasStrsmBatched")]
    pub fn trsm_batched<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        side: Side,
        triangle: Triangle,
        diagonal: Diagonal,
        a: &[Matrix<'_, T>],
        b: &mut [MatrixMut<'_, T>],
    ) -> Result<()> {
        const OPERATION: &str = "Blas::trsm_batched";
        same_count(OPERATION, &[("a", a.len()), ("b", b.len())])?;
        let a_layout = common(OPERATION, "a", a.iter().map(|matrix| matrix.stored))?;
        let b_layout = common(OPERATION, "b", b.iter().map(|matrix| matrix.stored))?;
        let Some((a_layout, b_layout)) = a_layout.zip(b_layout) else {
            return Ok(());
        };
        side_agrees(OPERATION, side, a_layout, b_layout)?;
        if b_layout.is_empty() {
            return Ok(());
        }
        // cuBLAS stores results by columns: for the transpose of `b`, `a` is transposed and stands
        // on the other side.
        let mut a = a.to_vec();
        if b_layout.is_transposed {
            for matrix in &mut a {
                *matrix = matrix.transposed();
            }
        }
        let stored = a[0].stored;
        let count = b.len();
        let triangle = if b_layout.is_transposed {
            triangle.flipped()
        } else {
            triangle
        };
        let side = side.side_mode(b_layout);
        let fill = triangle.fill_mode(stored);
        let diagonal = diagonal.to_raw();
        let transform = transpose_operation(OPERATION, stored)?;
        let m = b_layout.length;
        let n = b_layout.count;
        let lda = stored.leading_dimension;
        let ldb = b_layout.leading_dimension;
        let mut alpha = Aligned(alpha);
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let pointers = self.pointers(OPERATION, &addresses(&a, &[], b))?;
        let [a_ptrs, b_ptrs] = split_pointer_arrays(&pointers, count);
        let mut pointers = Vector::new(&pointers);
        let mut a = OperandSlice(&mut a);
        let mut b = OperandSlice(b);
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut pointers, &mut a, &mut b),
            |api, raw| {
                // SAFETY: each array has `count` pointers to matrices of these shapes in live
                // memory, of which the results do not overlap, and the factor is where the mode
                // requires.
                unsafe {
                    T::trsm_batched(
                        api,
                        raw,
                        side,
                        fill,
                        transform,
                        diagonal,
                        m,
                        n,
                        alpha_ptr,
                        a_ptrs.cast(),
                        lda,
                        b_ptrs,
                        ldb,
                        count,
                    )
                }
            },
        )
    }

    /// Checks the alignment of matrices of 32-bit numbers if the math mode uses vector loads.
    /// cuBLAS does not check it for batches.
    fn check_vector_loads<T: Element>(
        &mut self,
        operation: &'static str,
        addresses: &[CUdeviceptr],
    ) -> Result<()> {
        if size_of::<T::Real>() != 4
            || addresses
                .iter()
                .all(|address| address.is_multiple_of(VECTOR_ALIGNMENT))
        {
            return Ok(());
        }
        let mut mode = cublasMath_t::CUBLAS_DEFAULT_MATH;
        // SAFETY: the handle is live, its context is current, and `mode` is valid for writes.
        self.configure(|api, raw| unsafe { call!(api, cublasGetMathMode(raw, &raw mut mode)) })?;
        if mode == cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH {
            check_vector_alignment(operation, addresses)
        } else {
            Ok(())
        }
    }
}

/// Checks that vector loads can read each matrix.
pub(super) fn check_vector_alignment(
    operation: &'static str,
    addresses: &[CUdeviceptr],
) -> Result<()> {
    let Some(address) = addresses
        .iter()
        .find(|address| !address.is_multiple_of(VECTOR_ALIGNMENT))
    else {
        return Ok(());
    };
    let problem = format!(
        "misaligned matrix ({address:#x} is not a multiple of {VECTOR_ALIGNMENT}, as cuBLAS requires in batches)"
    );
    Err(ShapeError::refused(operation, problem))
}

/// Checks that batches have the same length.
fn same_count(operation: &'static str, counts: &[(&str, usize)]) -> Result<()> {
    if counts.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Ok(());
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} has {count}"))
        .collect();
    Err(ShapeError::refused(
        operation,
        format!("the numbers of matrices differ ({})", counts.join(", ")),
    ))
}

/// Returns the layout that the matrices of a batch have in common; `None` if there is no matrix.
fn common(
    operation: &'static str,
    name: &str,
    mut all: impl Iterator<Item = Stored>,
) -> Result<Option<Stored>> {
    let Some(first) = all.next() else {
        return Ok(None);
    };
    let Some(index) = all.position(|other| other != first) else {
        return Ok(Some(first));
    };
    let problem = format!(
        "matrix {} of {name} has another layout than matrix 0 ({first})",
        index + 1
    );
    Err(ShapeError::refused(operation, problem))
}

/// The layouts of the matrices in the batches of a product.
pub(super) struct ProductLayouts {
    pub(super) a: Stored,
    pub(super) b: Stored,
    pub(super) c: Stored,
}

/// Returns the layouts of the matrices of a product's batches; `None` if there is no matrix.
pub(super) fn common_layouts<T, C>(
    operation: &'static str,
    a: &[Matrix<'_, T>],
    b: &[Matrix<'_, T>],
    c: &[MatrixMut<'_, C>],
) -> Result<Option<ProductLayouts>> {
    same_count(operation, &[("a", a.len()), ("b", b.len()), ("c", c.len())])?;
    let a = common(operation, "a", a.iter().map(|matrix| matrix.stored))?;
    let b = common(operation, "b", b.iter().map(|matrix| matrix.stored))?;
    let c = common(operation, "c", c.iter().map(|matrix| matrix.stored))?;
    Ok(a.zip(b)
        .zip(c)
        .map(|((a, b), c)| ProductLayouts { a, b, c }))
}

/// Returns the addresses of the matrices of batches.
pub(super) fn addresses<T, C>(
    a: &[Matrix<'_, T>],
    b: &[Matrix<'_, T>],
    c: &[MatrixMut<'_, C>],
) -> Vec<CUdeviceptr> {
    let factors = a.iter().chain(b).map(Matrix::address);
    factors.chain(c.iter().map(MatrixMut::address)).collect()
}

/// Returns the addresses of consecutive arrays of `count` pointers each.
pub(super) fn split_pointer_arrays<const N: usize>(
    pointers: &DeviceBuffer<u64>,
    count: usize,
) -> [*mut *mut c_void; N] {
    let first: *mut *mut c_void = device_pointer(pointers.as_pointer().as_raw()).cast();
    std::array::from_fn(|index| first.wrapping_add(index * count))
}
