//! Calls of NVIDIA's libraries by each crate.

pub(crate) mod c;
pub(crate) mod cudarc;
pub(crate) mod curium;

use curium_blas::CuBlas;
use curium_blas::lt::CuBlasLt;
use curium_rand::CuRand;

use crate::Result;

/// Rows and columns of the matrices.
pub(crate) const SIZE: usize = 16;
/// Elements of the vectors.
pub(crate) const LEN: usize = 1024;
/// Bytes of the workspace of cuBLASLt.
pub(crate) const WORKSPACE: usize = 4 << 20;

/// An operation of a library on `f32`.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// A product of cuBLAS, queued.
    Gemm,
    /// A sum of absolute values, which is returned to the host.
    Asum,
    /// A product of cuBLASLt in TF32, queued. The matrices are described and the algorithm is
    /// selected once if the crate can do that.
    Matmul,
    /// Random numbers of cuRAND, queued.
    Uniform,
}

impl Operation {
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Gemm, "blas/gemm-16"),
        (Self::Asum, "blas/asum-1024"),
        (Self::Matmul, "blas/matmul-16"),
        (Self::Uniform, "rand/uniform-1024"),
    ];
}

/// The libraries, as Curium loads them.
pub(crate) struct Libraries {
    pub(crate) blas: CuBlas,
    pub(crate) lt: CuBlasLt,
    pub(crate) rand: CuRand,
}

impl Libraries {
    /// Loads the libraries, and checks that cudarc finds them, too.
    pub(crate) fn load() -> Result<Self> {
        let libraries = Self {
            blas: CuBlas::load()?,
            lt: CuBlasLt::load()?,
            rand: CuRand::load()?,
        };
        cudarc::expect_libraries()?;
        Ok(libraries)
    }
}
