//! Calls as a C program makes them: the function, and a check of its result.

use std::ffi::c_void;
use std::ptr;

use curium_blas::lt::{BlasLt, ElementType};
use curium_blas::sys::{
    Api, cublasGemmAlgo_t, cublasHandle_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as Preference, cublasLtMatrixLayout_t, cublasOperation_t,
    lt,
};
use curium_driver::AsRawStream as _;
use curium_driver::Stream;

use crate::Result;
use crate::matrices::Kind;

/// Calls a function of a table, and returns an error if it is missing or fails.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $api.$function {
            Some(function) => match function($($argument),*) {
                code if code.0 == 0 => Ok::<(), Box<dyn std::error::Error>>(()),
                code => Err(format!("{} returned {code:?}", stringify!($function)).into()),
            },
            None => Err(concat!("the library lacks ", stringify!($function)).into()),
        }
    };
}
pub(crate) use call;

const T: cublasOperation_t = cublasOperation_t::CUBLAS_OP_T;
const N: cublasOperation_t = cublasOperation_t::CUBLAS_OP_N;

/// 1 and 0 in the two types of `alpha` and `beta`.
static F32: [f32; 2] = [1.0, 0.0];
static F64: [f64; 2] = [1.0, 0.0];

/// Returns the pointers to `alpha` and `beta`, which are 1 and 0.
fn factors(kind: &Kind) -> [*const c_void; 2] {
    if kind.scale() == ElementType::F64 {
        [(&raw const F64[0]).cast(), (&raw const F64[1]).cast()]
    } else {
        [(&raw const F32[0]).cast(), (&raw const F32[1]).cast()]
    }
}

pub(crate) fn pointer<T>(address: u64) -> *mut T {
    ptr::without_provenance_mut(address as usize)
}

/// Multiplies square matrices with cuBLAS: `a` by rows, `b` and the result by columns. Products of
/// `f32` have the mode of the handle.
///
/// # Safety
///
/// The handle is live and its context is current. The matrices are live until the stream has
/// completed the call.
pub(crate) unsafe fn gemm(
    api: &Api,
    handle: cublasHandle_t,
    kind: &Kind,
    size: usize,
    [a, b, d]: [u64; 3],
) -> Result {
    let ([alpha, beta], size) = (factors(kind), size as i32);
    match kind.factor {
        ElementType::F32 => {
            let a = pointer(a);
            let b = pointer(b);
            let d = pointer(d);
            // SAFETY: the operands satisfy the conditions of this function, which the caller
            // guarantees.
            unsafe {
                call!(
                    api,
                    cublasSgemm_v2(
                        handle,
                        T,
                        N,
                        size,
                        size,
                        size,
                        alpha.cast(),
                        a,
                        size,
                        b,
                        size,
                        beta.cast(),
                        d,
                        size
                    )
                )
            }
        }
        ElementType::F64 => {
            let a = pointer(a);
            let b = pointer(b);
            let d = pointer(d);
            // SAFETY: the operands satisfy the conditions of this function, which the caller
            // guarantees.
            unsafe {
                call!(
                    api,
                    cublasDgemm_v2(
                        handle,
                        T,
                        N,
                        size,
                        size,
                        size,
                        alpha.cast(),
                        a,
                        size,
                        b,
                        size,
                        beta.cast(),
                        d,
                        size
                    )
                )
            }
        }
        factor => {
            let factor = factor.to_raw();
            let result = kind.result.to_raw();
            let compute = kind.compute.to_raw();
            let a = pointer(a);
            let b = pointer(b);
            let d = pointer(d);
            let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
            // SAFETY: the operands satisfy the conditions of this function, which the caller
            // guarantees.
            unsafe {
                call!(
                    api,
                    cublasGemmEx(
                        handle, T, N, size, size, size, alpha, a, factor, size, b, factor, size,
                        beta, d, result, size, compute, algorithm
                    )
                )
            }
        }
    }
}

/// A product of square matrices with cuBLASLt, and its algorithm: the first that the library's
/// heuristic returns.
pub(crate) struct Product<'a> {
    api: &'a lt::Api,
    handle: cublasLtHandle_t,
    factors: [*const c_void; 2],
    operation: cublasLtMatmulDesc_t,
    /// Those of `a` and `b`, and of the result.
    layouts: [cublasLtMatrixLayout_t; 2],
    algorithm: cublasLtMatmulAlgo_t,
    workspace_bytes: usize,
}

impl<'a> Product<'a> {
    /// Describes the product of `a` by rows and `b` by columns, with a result by columns.
    pub(crate) fn new(
        lt: &'a BlasLt,
        kind: &Kind,
        size: usize,
        workspace_limit: usize,
    ) -> Result<Self> {
        let api = lt.library().api();
        let mut product = Self {
            api,
            handle: lt.as_raw(),
            factors: factors(kind),
            operation: ptr::null_mut(),
            layouts: [ptr::null_mut(); 2],
            algorithm: cublasLtMatmulAlgo_t::default(),
            workspace_bytes: 0,
        };
        let operation = &raw mut product.operation;
        let compute = kind.compute.to_raw();
        let scale = kind.scale().to_raw();
        // SAFETY: the place is valid for writes.
        unsafe { call!(api, cublasLtMatmulDescCreate(operation, compute, scale)) }?;
        for (attribute, value) in [
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, T),
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, N),
        ] {
            let value_pointer = (&raw const value).cast();
            let bytes = size_of_val(&value);
            // SAFETY: the descriptor is live, and the value has the type of the attribute.
            unsafe {
                call!(
                    api,
                    cublasLtMatmulDescSetAttribute(
                        product.operation,
                        attribute,
                        value_pointer,
                        bytes
                    )
                )
            }?;
        }
        for (layout, element) in product.layouts.iter_mut().zip([kind.factor, kind.result]) {
            let rows = size as u64;
            let leading = size as i64;
            // SAFETY: the place is valid for writes.
            unsafe {
                call!(
                    api,
                    cublasLtMatrixLayoutCreate(
                        &raw mut *layout,
                        element.to_raw(),
                        rows,
                        rows,
                        leading
                    )
                )
            }?;
        }
        product.search(workspace_limit as u64)?;
        Ok(product)
    }

    /// Takes the first algorithm of the heuristic.
    fn search(&mut self, workspace_limit: u64) -> Result {
        let api = self.api;
        let mut limits = ptr::null_mut::<()>().cast();
        let mut result_count = 0;
        let limits_place: *mut cublasLtMatmulPreference_t = &raw mut limits;
        let mut best = cublasLtMatmulHeuristicResult_t::default();
        // SAFETY: the place is valid for writes.
        unsafe { call!(api, cublasLtMatmulPreferenceCreate(limits_place)) }?;
        let attribute = Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let limit = (&raw const workspace_limit).cast();
        let bytes = size_of_val(&workspace_limit);
        // SAFETY: the preference is live, and the value has the type of the attribute.
        let set: Result = unsafe {
            call!(
                api,
                cublasLtMatmulPreferenceSetAttribute(limits, attribute, limit, bytes)
            )
        };
        let (handle, operation, [of_factors, of_result]) =
            (self.handle, self.operation, self.layouts);
        // SAFETY: the descriptors are live, and there is a place for one result.
        let searched = unsafe {
            call!(
                api,
                cublasLtMatmulAlgoGetHeuristic(
                    handle,
                    operation,
                    of_factors,
                    of_factors,
                    of_result,
                    of_result,
                    limits,
                    1,
                    &raw mut best,
                    &raw mut result_count
                )
            )
        };
        // SAFETY: the preference is live.
        let destroyed = unsafe { call!(api, cublasLtMatmulPreferenceDestroy(limits)) };
        set.and(searched).and(destroyed)?;
        if result_count == 0 {
            return Err("cuBLASLt has no algorithm".into());
        }
        (self.algorithm, self.workspace_bytes) = (best.algo, best.workspaceSize);
        Ok(())
    }

    /// Enqueues the product.
    ///
    /// # Safety
    ///
    /// The handle is live and its context is current. The matrices and the workspace are live until
    /// the stream has completed the product.
    pub(crate) unsafe fn execute(
        &self,
        [a, b, d]: [u64; 3],
        workspace: u64,
        stream: &Stream,
    ) -> Result {
        let (api, [alpha, beta], [of_factors, of_result]) = (self.api, self.factors, self.layouts);
        let a = pointer(a);
        let b = pointer(b);
        let d = pointer(d);
        let workspace = pointer(workspace);
        let algorithm = &raw const self.algorithm;
        let bytes = self.workspace_bytes;
        let stream = stream.as_raw().cast();
        // SAFETY: the descriptors are live, and the caller guarantees the rest.
        unsafe {
            call!(
                api,
                cublasLtMatmul(
                    self.handle,
                    self.operation,
                    alpha,
                    a,
                    of_factors,
                    b,
                    of_factors,
                    beta,
                    d,
                    of_result,
                    d,
                    of_result,
                    algorithm,
                    workspace,
                    bytes,
                    stream
                )
            )
        }
    }
}

impl Drop for Product<'_> {
    fn drop(&mut self) {
        for layout in self.layouts.into_iter().filter(|layout| !layout.is_null()) {
            // SAFETY: the descriptor is live, and nobody uses it any more.
            let _ = unsafe { call!(self.api, cublasLtMatrixLayoutDestroy(layout)) };
        }
        if !self.operation.is_null() {
            // SAFETY: the descriptor is live, and nobody uses it any more.
            let _ = unsafe { call!(self.api, cublasLtMatmulDescDestroy(self.operation)) };
        }
    }
}
