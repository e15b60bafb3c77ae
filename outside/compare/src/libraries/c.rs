//! The calls of C's functions, with handles and memory as Curium creates them.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use curium_blas::sys::{
    cublasComputeType_t, cublasLtMatmulDesc_t, cublasLtMatmulHeuristicResult_t,
    cublasLtMatrixLayout_t, cublasOperation_t, cudaDataType_t,
};
use curium_driver::Stream;

use super::{LEN, Libraries, Operation, SIZE, WORKSPACE, curium};
use crate::Result;

pub(crate) struct Calls {
    calls: curium::Calls,
    matmul: Matmul,
}

/// The descriptors and the algorithm of a product, which live as long as the program.
struct Matmul {
    operation: cublasLtMatmulDesc_t,
    layout: cublasLtMatrixLayout_t,
    best: cublasLtMatmulHeuristicResult_t,
}

/// Calls a function of a table, and checks its result as a C program does.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $api.$function.ok_or(concat!("the library lacks ", stringify!($function)))?($($argument),*) {
            code if code.0 == 0 => {}
            code => return Err(format!("{} returned {code:?}", stringify!($function)).into()),
        }
    };
}

impl Calls {
    pub(crate) fn new(libraries: &Libraries, stream: &Stream) -> Result<Self> {
        let calls = curium::Calls::new(libraries, stream)?;
        Ok(Self {
            matmul: Matmul::new(&calls)?,
            calls,
        })
    }

    pub(crate) fn call(&mut self, operation: Operation) -> Result<()> {
        let curium::Calls {
            blas,
            generator,
            a,
            b,
            d,
            ..
        } = &mut self.calls;
        let size = SIZE as i32;
        let none = cublasOperation_t::CUBLAS_OP_N;
        let [a, b, d] = [a, b, d].map(|buffer| pointer::<f32>(buffer.as_pointer().as_raw()));
        match operation {
            Operation::Gemm => {
                let handle = blas.as_raw();
                let alpha = 1.0;
                let beta = 0.0;
                let alpha = &raw const alpha;
                let beta = &raw const beta;
                // SAFETY: the handle is live, its context is current, and the matrices have this
                // size.
                unsafe {
                    call!(
                        blas.library().api(),
                        cublasSgemm_v2(
                            handle, none, none, size, size, size, alpha, a, size, b, size, beta, d,
                            size
                        )
                    )
                }
            }
            Operation::Asum => {
                let handle = blas.as_raw();
                let len = LEN as i32;
                let mut sum = 0.0;
                // SAFETY: the handle is live, its context is current, and the matrices have this
                // size, for the vector, and the sum is valid for writes.
                unsafe {
                    call!(
                        blas.library().api(),
                        cublasSasum_v2(handle, len, a, 1, &raw mut sum)
                    )
                }
                black_box(sum);
            }
            Operation::Matmul => self.matmul.call(&self.calls)?,
            Operation::Uniform => {
                let raw = generator.as_raw();
                // SAFETY: the generator is live, its context is current, and the memory has this
                // length.
                unsafe {
                    call!(
                        generator.library().api(),
                        curandGenerateUniform(raw, d, LEN)
                    )
                }
            }
        }
        Ok(())
    }
}

impl Matmul {
    fn new(calls: &curium::Calls) -> Result<Self> {
        let api = own.lt.library().api();
        let handle = own.lt.as_raw();
        let mut operation = ptr::null_mut();
        let mut layout = ptr::null_mut();
        let mut limits = ptr::null_mut();
        let mut best = cublasLtMatmulHeuristicResult_t::default();
        let mut results = 0;
        let rows = SIZE as u64;
        let real = cudaDataType_t::CUDA_R_32F;
        let limit = WORKSPACE as u64;
        let compute = cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32;
        let attribute =
            curium_blas::sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let value = (&raw const limit).cast::<c_void>();
        let bytes = size_of_val(&limit);
        // SAFETY: the pointers are valid for writes, the value has the type of the attribute, and
        // there is room for one result.
        unsafe {
            call!(
                api,
                cublasLtMatmulDescCreate(&raw mut operation, compute, real)
            );
            call!(
                api,
                cublasLtMatrixLayoutCreate(&raw mut layout, real, rows, rows, SIZE as i64)
            );
            call!(api, cublasLtMatmulPreferenceCreate(&raw mut limits));
            call!(
                api,
                cublasLtMatmulPreferenceSetAttribute(limits, attribute, value, bytes)
            );
            let best = &raw mut best;
            let results = &raw mut results;
            call!(
                api,
                cublasLtMatmulAlgoGetHeuristic(
                    handle, operation, layout, layout, layout, layout, limits, 1, best, results
                )
            );
            call!(api, cublasLtMatmulPreferenceDestroy(limits));
        }
        if results == 0 {
            Err("cuBLASLt has no algorithm".into())
        } else {
            Ok(Self {
                operation,
                layout,
                best,
            })
        }
    }

    fn call(&self, calls: &curium::Calls) -> Result<()> {
        let alpha = 1.0_f32;
        let beta = 0.0_f32;
        let alpha = (&raw const alpha).cast();
        let beta = (&raw const beta).cast();
        let operation = self.operation;
        let layout = self.layout;
        let algorithm = &raw const self.best.algo;
        let [a, b, d] =
            [&own.a, &own.b, &own.d].map(|buffer| pointer(buffer.as_pointer().as_raw()));
        let workspace = pointer(own.workspace.as_pointer().as_raw());
        let bytes = self.best.workspaceSize;
        let handle = own.lt.as_raw();
        let stream = own.stream.as_raw().cast();
        // SAFETY: the handle and the descriptors are live, its context is current, and the matrices
        // have this size.
        unsafe {
            call!(
                own.lt.library().api(),
                cublasLtMatmul(
                    handle, operation, alpha, a, layout, b, layout, beta, d, layout, d, layout,
                    algorithm, workspace, bytes, stream
                )
            );
        }
        Ok(())
    }
}

fn pointer<T>(address: u64) -> *mut T {
    ptr::without_provenance_mut(address as usize)
}
