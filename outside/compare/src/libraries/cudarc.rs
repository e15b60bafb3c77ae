//! The calls by `cudarc`. It describes the matrices, and selects an algorithm, in each call of
//! cuBLASLt.

use std::hint::black_box;
use std::sync::Arc;

use cudarc::cublas::sys::cublasOperation_t;
use cudarc::cublas::{self, Asum as _, AsumConfig, CudaBlas, Gemm as _, GemmConfig};
use cudarc::cublaslt::{self, CudaBlasLT, Matmul as _, MatmulConfig};
use cudarc::curand::{self, CudaRng};
use cudarc::driver::{CudaSlice, CudaStream};

use super::{LEN, Operation, SIZE};
use crate::Result;

pub(crate) struct Calls {
    blas: CudaBlas,
    lt: CudaBlasLT,
    generator: CudaRng,
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    d: CudaSlice<f32>,
}

/// Returns an error if cudarc, which would panic, does not find a library.
pub(crate) fn expect_libraries() -> Result<()> {
    // SAFETY: libraries of these names are NVIDIA's, whose initializers may run.
    let libraries = unsafe {
        [
            ("cublas", cublas::sys::is_culib_present()),
            ("cublasLt", cublaslt::sys::is_culib_present()),
            ("curand", curand::sys::is_culib_present()),
        ]
    };
    match libraries.into_iter().find(|(_, is_found)| !is_found) {
        Some((name, _)) => Err(format!("cudarc does not find {name}").into()),
        None => Ok(()),
    }
}

impl Calls {
    pub(crate) fn new(stream: &Arc<CudaStream>) -> Result<Self> {
        let a = stream.alloc_zeros::<f32>(LEN)?;
        let b = stream.alloc_zeros::<f32>(LEN)?;
        let d = stream.alloc_zeros::<f32>(LEN)?;
        let blas = CudaBlas::new(stream.clone())?;
        let lt = CudaBlasLT::new(stream.clone())?;
        Ok(Self {
            blas,
            lt,
            generator: CudaRng::new(1, stream.clone())?,
            a,
            b,
            d,
        })
    }

    pub(crate) fn call(&mut self, operation: Operation) -> Result<()> {
        let Self {
            blas,
            lt,
            generator,
            a,
            b,
            d,
        } = self;
        let size = SIZE as i32;
        let none = cublasOperation_t::CUBLAS_OP_N;
        match operation {
            Operation::Gemm => {
                let m = size;
                let n = size;
                let k = size;
                let lda = size;
                let ldb = size;
                let ldc = size;
                let config = GemmConfig {
                    transa: none,
                    transb: none,
                    m,
                    n,
                    k,
                    alpha: 1.0,
                    lda,
                    ldb,
                    beta: 0.0,
                    ldc,
                };
                // SAFETY: the matrices have this size.
                unsafe { blas.gemm(config, a, b, d) }?;
            }
            Operation::Asum => {
                let mut sum = 0.0;
                // SAFETY: the vector has this length.
                unsafe {
                    blas.asum(
                        AsumConfig {
                            n: LEN as i32,
                            incx: 1,
                        },
                        a,
                        &mut sum,
                    )
                }?;
                black_box(sum);
            }
            Operation::Matmul => {
                let size = SIZE as u64;
                let leading = SIZE as i64;
                let config = MatmulConfig {
                    transa: false,
                    transb: false,
                    transc: false,
                    m: size,
                    n: size,
                    k: size,
                    alpha: 1.0,
                    lda: leading,
                    ldb: leading,
                    beta: 0.0,
                    ldc: leading,
                    stride_a: None,
                    stride_b: None,
                    stride_c: None,
                    stride_bias: None,
                    batch_size: None,
                };
                // SAFETY: the matrices have this size.
                unsafe { lt.matmul(config, a, b, d, None, None) }?;
            }
            Operation::Uniform => generator.fill_with_uniform(d)?,
        }
        Ok(())
    }
}
