//! Other crates cannot declare types that the libraries of C read and write: a `Narrow` would be written as an `i32`, and the `Nothing`
//! would be read as a factor.

use bytemuck::{Pod, Zeroable};
use curium_blas::lt::{ElementType, MatmulElement};
use curium_blas::sys::{cublasComputeType_t, cudaDataType_t};
use curium_blas::{Grouped, Mixed, ScalarArgument};

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Narrow(u8);

#[derive(Clone, Copy)]
struct Nothing;

// SAFETY: as for `u8`.
unsafe impl Zeroable for Narrow {}
// SAFETY: as for `u8`.
unsafe impl Pod for Narrow {}

impl Mixed<Narrow> for i8 {
    type Scale = Nothing;
    const TYPE: cudaDataType_t = cudaDataType_t::CUDA_R_8I;
    const RESULT: cudaDataType_t = cudaDataType_t::CUDA_R_32I;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32I;
    const GRANULARITY: usize = 1;
}

impl Grouped for Narrow {
    type Scale = Nothing;
    const TYPE: cudaDataType_t = cudaDataType_t::CUDA_R_32F;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32F;
    const IS_VECTORIZED: bool = false;
}

impl MatmulElement for Narrow {
    const TYPE: ElementType = ElementType::F64;
}

impl ScalarArgument<f32> for Nothing {}

fn main() {}
