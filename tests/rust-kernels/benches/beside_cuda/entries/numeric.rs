//! The kernels of `numeric`.

use curium_driver::ArgumentList;
use curium_kernel::host::{Blocks, Threads};
use curium_kernel::{F32x4, F64x2, Philox, U32x4};
use curium_memory::DeviceBuffer;

use super::{Entry, components, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "numeric.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "sum_f64",
        source: SOURCE,
        run: sum_f64,
    },
    Entry {
        name: "prefix_sum",
        source: SOURCE,
        run: prefix_sum,
    },
    Entry {
        name: "random_uniform",
        source: SOURCE,
        run: random_uniform,
    },
    Entry {
        name: "random_normal",
        source: SOURCE,
        run: random_normal,
    },
    Entry {
        name: "small_matmul",
        source: SOURCE,
        run: small_matmul,
    },
];

fn sum_f64(bench: &Bench, entry: &Entry) -> Result<Row> {
    let pairs = bench.size(1 << 25, 5000);
    let blocks = u32(bench.size(528, 4))?;
    let pattern: Vec<F64x2> = super::noise(1 << 17, 1)
        .chunks(2)
        .map(|x| F64x2::new(x[0].into(), x[1].into()))
        .collect();
    let x = bench.repeat(&pattern, pairs)?;
    let rest = DeviceBuffer::from_slice(&bench.stream, &[0.25_f64])?;
    let sums = DeviceBuffer::<f64>::zeroed(&bench.stream, blocks as usize)?;
    let finished = DeviceBuffer::<u32>::zeroed(&bench.stream, 1)?;
    let total = DeviceBuffer::<f64>::zeroed(&bench.stream, 1)?;
    bench.compare(
        entry,
        Comparison {
            outputs: (total, sums, finished),
            tolerance: Tolerance::Relative(1e-9),
            prepare: &|(_, _, finished)| Ok(finished.fill(0)?),
            kernel: &|kernels| kernels.sum_f64.kernel(),
            rust: &|kernels, stream, (total, sums, finished)| {
                let grid = Blocks::new(blocks);
                kernels
                    .sum_f64
                    .launch(stream, grid, &x, &rest, sums, finished, total)
            },
            cuda: &|twin, (total, sums, finished)| {
                let arguments = ArgumentList::new().read(&x).value(pairs as u64);
                let arguments = arguments.read(&rest).value(1_u64).write(sums);
                twin.launch(blocks, 256, arguments.write(finished).write(total))
            },
            reference: &|| {
                let x = x.to_vec()?;
                let sum = |x: &[F64x2]| x.iter().map(|x| x.x + x.y).sum::<f64>();
                let mut sums = vec![0.0; blocks as usize];
                let whole = x.len() / 1024;
                for (i, part) in x.as_chunks::<1024>().0.iter().enumerate() {
                    sums[i % blocks as usize] += sum(part);
                }
                for (i, x) in x[1024 * whole..].iter().enumerate() {
                    sums[i / 256 % blocks as usize] += x.x + x.y;
                }
                sums[0] += 0.25;
                let mut expected = vec![sums.iter().sum()];
                expected.extend(sums);
                expected.push(0.0);
                Ok(expected)
            },
        },
    )
}

fn prefix_sum(bench: &Bench, entry: &Entry) -> Result<Row> {
    let vectors = bench.size(1 << 24, 3000);
    let parts = vectors.div_ceil(1024);
    let mut random = fastrand::Rng::with_seed(1);
    let pattern: Vec<U32x4> = (0..vectors.min(1 << 16))
        .map(|_| {
            U32x4::new(
                random.u32(..),
                random.u32(..),
                random.u32(..),
                random.u32(..),
            )
        })
        .collect();
    let x = bench.repeat(&pattern, vectors)?;
    let states = DeviceBuffer::<u64>::zeroed(&bench.stream, parts)?;
    let y = DeviceBuffer::<U32x4>::uninit(&bench.stream, vectors)?;
    let blocks = u32(parts)?;
    bench.compare(
        entry,
        Comparison {
            outputs: (y, states),
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.prefix_sum.kernel(),
            rust: &|kernels, stream, (y, states)| {
                states.fill(0)?;
                kernels
                    .prefix_sum
                    .launch(stream, Blocks::new(blocks), &x, states, y)
            },
            cuda: &|twin, (y, states)| {
                states.fill(0)?;
                let arguments = ArgumentList::new().read(&x).value(vectors as u64);
                twin.launch(blocks, 256, arguments.write(states).write(y))
            },
            reference: &|| {
                let mut sum = 0_u32;
                let mut expected = Vec::new();
                let mut states = Vec::new();
                for part in x.to_vec()?.chunks(1024) {
                    for x in part {
                        for x in [x.x, x.y, x.z, x.w] {
                            expected.push(f64::from(sum));
                            sum = sum.wrapping_add(x);
                        }
                    }
                    states.extend([2.0, f64::from(sum)]);
                }
                expected.extend(states);
                Ok(expected)
            },
        },
    )
}

const SEED: u64 = 0x0123_4567_89ab_cdef;

/// Returns the words of Philox for a vector, without their low eight bits.
fn words(vector: usize) -> [f64; 4] {
    Philox::generate([SEED as u32, (SEED >> 32) as u32], [vector as u32, 0, 0, 0])
        .map(|word| f64::from(word >> 8))
}

fn random_uniform(bench: &Bench, entry: &Entry) -> Result<Row> {
    let vectors = bench.size(1 << 25, 3000);
    let blocks = u32(bench.size(2112, 4))?;
    let y = DeviceBuffer::<F32x4>::uninit(&bench.stream, vectors)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.random_uniform.kernel(),
            rust: &|kernels, stream, y| {
                let threads = Threads(256 * blocks as usize);
                kernels.random_uniform.launch(stream, threads, SEED, y)
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().value(SEED).write(y);
                twin.launch(blocks, 256, arguments.value(vectors as u64))
            },
            reference: &|| {
                let numbers = (0..vectors).flat_map(words);
                Ok(numbers.map(|n| n / 16_777_216.0).collect())
            },
        },
    )
}

fn random_normal(bench: &Bench, entry: &Entry) -> Result<Row> {
    let vectors = bench.size(1 << 25, 3000);
    let blocks = u32(bench.size(2112, 4))?;
    let y = DeviceBuffer::<F32x4>::uninit(&bench.stream, vectors)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.random_normal.kernel(),
            rust: &|kernels, stream, y| {
                let threads = Threads(256 * blocks as usize);
                kernels.random_normal.launch(stream, threads, SEED, y)
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().value(SEED).write(y);
                twin.launch(blocks, 256, arguments.value(vectors as u64))
            },
            reference: &|| {
                let mut expected = Vec::new();
                for vector in 0..vectors {
                    for pair in words(vector).chunks(2) {
                        let radius = (-2.0 * ((pair[0] + 1.0) / 16_777_216.0).ln()).sqrt();
                        let angle = std::f64::consts::TAU * pair[1] / 16_777_216.0;
                        expected.extend([radius * angle.cos(), radius * angle.sin()]);
                    }
                }
                Ok(expected)
            },
        },
    )
}

fn small_matmul(bench: &Bench, entry: &Entry) -> Result<Row> {
    let matrices = bench.size(1 << 18, 19);
    let vectors = 64 * matrices;
    let a = bench.vectors(vectors, 1)?;
    let b = bench.vectors(vectors, 2)?;
    let c = DeviceBuffer::<F32x4>::uninit(&bench.stream, vectors)?;
    let blocks = u32(matrices.div_ceil(8))?;
    bench.compare(
        entry,
        Comparison {
            outputs: c,
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.small_matmul.kernel(),
            rust: &|kernels, stream, c| {
                kernels
                    .small_matmul
                    .launch(stream, Blocks::new(blocks), &a, &b, c)
            },
            cuda: &|twin, c| {
                let arguments = ArgumentList::new().read(&a).value(vectors as u64);
                twin.launch(blocks, 256, arguments.read(&b).write(c))
            },
            reference: &|| {
                let a = components(&a.to_vec()?);
                let b = components(&b.to_vec()?);
                let mut expected = Vec::new();
                for (a, b) in a.chunks(256).zip(b.chunks(256)) {
                    for i in 0..256 {
                        let products = (0..16).map(|k| a[i / 16 * 16 + k] * b[16 * k + i % 16]);
                        expected.push(f64::from(products.sum::<f32>()));
                    }
                }
                Ok(expected)
            },
        },
    )
}
