//! A product as its descriptors describe it.

use curium_sys::cublas::{
    cublasComputeType_t as Compute, cublasLtMatmulDesc_t,
    cublasLtMatmulDescAttributes_t as Operation, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t as Layout, cublasLtPointerMode_t as PointerMode,
    cublasOperation_t, cudaDataType_t,
};

use super::descriptor::{self, Attributes, Kind};
use super::element::Element;
use super::epilogue::Epilogue;
use super::{INVALID, Result, UNSUPPORTED};

/// A product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) a: Matrix,
    pub(super) b: Matrix,
    pub(super) c: Matrix,
    pub(super) d: Matrix,
    pub(super) is_a_transposed: bool,
    pub(super) is_b_transposed: bool,
    /// The sizes of the product: rows, columns, and the inner one.
    pub(super) sizes: (usize, usize, usize),
    pub(super) count: usize,
    pub(super) compute: Compute,
    /// The type of the factors.
    pub(super) scale: Element,
    pub(super) factors_are_on_device: bool,
    pub(super) epilogue: Epilogue,
    pub(super) bias: EpilogueMemory,
    pub(super) auxiliary: EpilogueMemory,
    /// The addresses of the scales of a, b, c and d, 0 for none.
    pub(super) scales: [u64; 4],
    pub(super) amax: u64,
}

/// A matrix by columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Matrix {
    pub(super) element: Element,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) leading: usize,
    pub(super) stride: i64,
    count: usize,
}

/// The memory of a bias or of auxiliary data.
#[derive(Clone, Copy, Debug)]
pub(super) struct EpilogueMemory {
    pub(super) address: u64,
    pub(super) element: Element,
    pub(super) leading: usize,
    pub(super) stride: i64,
}

impl Matrix {
    fn new(raw: cublasLtMatrixLayout_t) -> Result<Self> {
        let attributes = descriptor::look_up(Kind::Layout, raw)?;
        let count = attributes
            .get::<i32>(Layout::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT.0)
            .unwrap_or(1);
        if attributes
            .get::<u32>(Layout::CUBLASLT_MATRIX_LAYOUT_ORDER.0)
            .unwrap_or(0)
            != 0
        {
            return Err(UNSUPPORTED);
        }
        let matrix = Self {
            element: Element::from_raw(cudaDataType_t(
                attributes
                    .get(Layout::CUBLASLT_MATRIX_LAYOUT_TYPE.0)
                    .ok_or(INVALID)?,
            ))?,
            rows: layout_size(&attributes, Layout::CUBLASLT_MATRIX_LAYOUT_ROWS)?,
            columns: layout_size(&attributes, Layout::CUBLASLT_MATRIX_LAYOUT_COLS)?,
            leading: layout_size(&attributes, Layout::CUBLASLT_MATRIX_LAYOUT_LD)?,
            stride: attributes
                .get(Layout::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET.0)
                .unwrap_or(0),
            count: usize::try_from(count).map_err(|_| INVALID)?,
        };
        if matrix.leading < matrix.rows {
            Err(INVALID)
        } else {
            Ok(matrix)
        }
    }

    fn transformed(&self, is_transposed: bool) -> (usize, usize) {
        if is_transposed {
            (self.columns, self.rows)
        } else {
            (self.rows, self.columns)
        }
    }
}

impl Problem {
    /// Reads the descriptors, and checks that the product exists.
    pub(super) fn new(
        operation: cublasLtMatmulDesc_t,
        [a, b, c, d]: [cublasLtMatrixLayout_t; 4],
    ) -> Result<Self> {
        let attributes = descriptor::look_up(Kind::Operation, operation)?;
        let a = Matrix::new(a)?;
        let b = Matrix::new(b)?;
        let c = Matrix::new(c)?;
        let d = Matrix::new(d)?;
        let is_a_transposed = is_transposed(&attributes, Operation::CUBLASLT_MATMUL_DESC_TRANSA)?;
        let is_b_transposed = is_transposed(&attributes, Operation::CUBLASLT_MATMUL_DESC_TRANSB)?;
        let (m, k) = a.transformed(is_a_transposed);
        let (inner, n) = b.transformed(is_b_transposed);
        if inner != k || (d.rows, d.columns) != (m, n) || (c.rows, c.columns) != (m, n) {
            return Err(INVALID);
        }
        if [a.count, b.count, c.count] != [d.count; 3] {
            return Err(INVALID);
        }
        let mode = attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_POINTER_MODE.0)
            .unwrap_or(0);
        let compute = attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_COMPUTE_TYPE.0)
            .ok_or(INVALID)?;
        let scale = attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_SCALE_TYPE.0)
            .ok_or(INVALID)?;
        let epilogue = attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_EPILOGUE.0)
            .unwrap_or(1);
        let problem = Self {
            a,
            b,
            c,
            d,
            is_a_transposed,
            is_b_transposed,
            sizes: (m, n, k),
            count: d.count,
            compute: Compute(compute),
            scale: Element::from_raw(cudaDataType_t(scale))?,
            factors_are_on_device: match PointerMode(mode) {
                PointerMode::CUBLASLT_POINTER_MODE_HOST => false,
                PointerMode::CUBLASLT_POINTER_MODE_DEVICE => true,
                _ => return Err(UNSUPPORTED),
            },
            epilogue: Epilogue::from_raw(epilogue)?,
            bias: bias(&attributes, d.element)?,
            auxiliary: auxiliary(&attributes, d.element),
            scales: [
                Operation::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                Operation::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                Operation::CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
                Operation::CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
            ]
            .map(|attribute| attributes.get(attribute.0).unwrap_or(0)),
            amax: attributes
                .get(Operation::CUBLASLT_MATMUL_DESC_AMAX_D_POINTER.0)
                .unwrap_or(0),
        };
        problem.check()?;
        Ok(problem)
    }

    /// Checks that the library has the product.
    fn check(&self) -> Result {
        let (m, n, k) = self.sizes;
        if m == 0 || n == 0 || k == 0 {
            return Err(UNSUPPORTED);
        }
        if !self.has_types() {
            return Err(UNSUPPORTED);
        }
        let a = self.a.element;
        let d = self.d.element;
        let granularity = match a {
            Element::F8E4M3 | Element::F8E5M2 => 16,
            Element::I8 => 4,
            _ => 1,
        };
        let has_order = granularity == 1 || self.is_a_transposed && !self.is_b_transposed;
        if !has_order || !m.is_multiple_of(granularity) || !k.is_multiple_of(granularity) {
            return Err(UNSUPPORTED);
        }
        if a == Element::I8 && self.epilogue.raw() != 1 {
            return Err(UNSUPPORTED);
        }
        let has_scales = self.scales.iter().any(|address| *address != 0) || self.amax != 0;
        if has_scales && !a.is_fp8() || (self.amax != 0 || self.scales[3] != 0) && !d.is_fp8() {
            return Err(UNSUPPORTED);
        }
        let granularity = if self.epilogue.uses_mask() { 128 } else { 8 };
        let leading = self.auxiliary.leading;
        if self.epilogue.has_auxiliary() && (leading < m || !leading.is_multiple_of(granularity)) {
            return Err(INVALID);
        }
        Ok(())
    }

    fn has_types(&self) -> bool {
        use Element::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32};
        let a = self.a.element;
        let b = self.b.element;
        let c = self.c.element;
        let d = self.d.element;
        match self.compute {
            Compute::CUBLAS_COMPUTE_32F | Compute::CUBLAS_COMPUTE_32F_PEDANTIC
                if self.scale == F32 =>
            {
                match (a, b) {
                    (F32, F32) => (c, d) == (F32, F32),
                    (F16, F16) => c == d && matches!(d, F16 | F32),
                    (Bf16, Bf16) => c == d && matches!(d, Bf16 | F32),
                    (F8E4M3, F8E4M3 | F8E5M2) | (F8E5M2, F8E4M3) => {
                        let narrow =
                            matches!(c, Bf16 | F16) && (d == F8E4M3 || d == F8E5M2 && a != b);
                        narrow || c == d && matches!(d, Bf16 | F16 | F32)
                    }
                    _ => false,
                }
            }
            Compute::CUBLAS_COMPUTE_32F_FAST_TF32
            | Compute::CUBLAS_COMPUTE_32F_FAST_16F
            | Compute::CUBLAS_COMPUTE_32F_FAST_16BF => {
                self.scale == F32 && [a, b, c, d] == [F32; 4]
            }
            Compute::CUBLAS_COMPUTE_64F => self.scale == F64 && [a, b, c, d] == [F64; 4],
            Compute::CUBLAS_COMPUTE_32I => {
                let result = if self.scale == I32 { I32 } else { I8 };
                matches!(self.scale, I32 | F32) && [a, b] == [I8; 2] && [c, d] == [result; 2]
            }
            _ => false,
        }
    }
}

fn layout_size(attributes: &Attributes, attribute: Layout) -> Result<usize> {
    attributes
        .get::<u64>(attribute.0)
        .and_then(|size| usize::try_from(size).ok())
        .ok_or(INVALID)
}

fn is_transposed(attributes: &Attributes, attribute: Operation) -> Result<bool> {
    match attributes
        .get(attribute.0)
        .map_or(cublasOperation_t::CUBLAS_OP_N, cublasOperation_t)
    {
        cublasOperation_t::CUBLAS_OP_N => Ok(false),
        cublasOperation_t::CUBLAS_OP_T | cublasOperation_t::CUBLAS_OP_C => Ok(true),
        _ => Err(INVALID),
    }
}

fn bias(attributes: &Attributes, result: Element) -> Result<EpilogueMemory> {
    let ty = attributes
        .get(Operation::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE.0)
        .map(cudaDataType_t);
    Ok(EpilogueMemory {
        address: attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_BIAS_POINTER.0)
            .unwrap_or(0),
        element: match ty {
            Some(ty) => Element::from_raw(ty)?,
            None if result.is_fp8() => Element::Bf16,
            None => result,
        },
        leading: 0,
        stride: attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE.0)
            .unwrap_or(0),
    })
}

fn auxiliary(attributes: &Attributes, result: Element) -> EpilogueMemory {
    let leading: i64 = attributes
        .get(Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD.0)
        .unwrap_or(0);
    EpilogueMemory {
        address: attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER.0)
            .unwrap_or(0),
        element: result,
        leading: leading.try_into().unwrap_or(0),
        stride: attributes
            .get(Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE.0)
            .unwrap_or(0),
    }
}
