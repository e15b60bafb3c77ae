//! The kernels that are measured.
//!
//! A table of entries is a module of this folder, which [`all`] lists. [`SOURCES`] lists the files
//! in CUDA C++.

mod algorithms;
mod features;
mod gemm;
mod hopper;
mod learning;
mod numeric;
mod signal;
mod sorting;
mod sparse;

use curium_driver::ComputeCapability;
use curium_kernel::{F32x2, F32x4, U32x4};
use curium_memory::DeviceBuffer;

use crate::Result;
use crate::bench::Bench;
use crate::report::Row;

/// A kernel.
pub(crate) struct Entry {
    /// The name of the kernel in CUDA C++, which is also that of the row.
    pub(crate) name: &'static str,
    /// The file in CUDA C++.
    pub(crate) source: &'static str,
    /// Calls [`Bench::compare`] with the arguments of both kernels.
    pub(crate) run: fn(&Bench, &Entry) -> Result<Row>,
}

impl Entry {
    /// Returns `true` if the kernel runs on a device. Those in files with the suffix `_hopper` were
    /// compiled for the target `sm_90a`.
    pub(crate) fn runs_on(&self, capability: ComputeCapability) -> bool {
        !self.source.ends_with("_hopper.cu") || (capability.major, capability.minor) == (9, 0)
    }
}

/// The files in CUDA C++.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("algorithms.cu", include_str!("../../cuda/algorithms.cu")),
    ("attention.cu", include_str!("../../cuda/attention.cu")),
    ("features.cu", include_str!("../../cuda/features.cu")),
    ("gemm.cu", include_str!("../../cuda/gemm.cu")),
    ("learning.cu", include_str!("../../cuda/learning.cu")),
    ("numeric.cu", include_str!("../../cuda/numeric.cu")),
    ("signal.cu", include_str!("../../cuda/signal.cu")),
    ("sorting.cu", include_str!("../../cuda/sorting.cu")),
    ("sparse.cu", include_str!("../../cuda/sparse.cu")),
    ("gemm_hopper.cu", include_str!("../../cuda/gemm_hopper.cu")),
];

/// Returns all entries, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    [
        algorithms::ENTRIES,
        numeric::ENTRIES,
        sorting::ENTRIES,
        sparse::ENTRIES,
        signal::ENTRIES,
        learning::ENTRIES,
        gemm::ENTRIES,
        features::ENTRIES,
        hopper::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// The sizes of a launch, as the kernels in CUDA C++ receive them.
fn u32(size: usize) -> Result<u32> {
    Ok(u32::try_from(size)?)
}

/// Sets nothing: the kernels do not read their outputs.
fn nothing<T>(_: &mut T) -> Result<()> {
    Ok(())
}

/// Returns random numbers from -0.5 to 0.5.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.f32() - 0.5).collect()
}

/// The number of random vectors that are repeated in large inputs.
const PATTERN: usize = 1 << 16;

impl Bench {
    /// Creates a buffer of random complex numbers.
    fn complex(&self, len: usize, seed: u64) -> Result<DeviceBuffer<F32x2>> {
        let noise = noise(2 * len.min(PATTERN), seed);
        let pattern: Vec<F32x2> = noise.chunks(2).map(|x| F32x2::new(x[0], x[1])).collect();
        self.repeat(&pattern, len)
    }

    /// Creates a buffer of random vectors.
    fn vectors(&self, len: usize, seed: u64) -> Result<DeviceBuffer<F32x4>> {
        let noise = noise(4 * len.min(PATTERN), seed);
        let vector = |x: &[f32]| F32x4::new(x[0], x[1], x[2], x[3]);
        self.repeat(&noise.chunks(4).map(vector).collect::<Vec<_>>(), len)
    }

    /// Creates a buffer of groups of eight random bfloat16.
    fn bf16(&self, len: usize, seed: u64) -> Result<DeviceBuffer<U32x4>> {
        let noise = noise(8 * len.min(PATTERN), seed);
        let pair = |x: &[f32]| x[0].to_bits() >> 16 | x[1].to_bits() & 0xffff_0000;
        let group = |x: &[f32]| U32x4::new(pair(x), pair(&x[2..]), pair(&x[4..]), pair(&x[6..]));
        self.repeat(&noise.chunks(8).map(group).collect::<Vec<_>>(), len)
    }
}

/// Returns the components of vectors.
fn components(vectors: &[F32x4]) -> Vec<f32> {
    vectors.iter().flat_map(|v| [v.x, v.y, v.z, v.w]).collect()
}
