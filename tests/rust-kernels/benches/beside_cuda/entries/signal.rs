//! The kernels of `signal`.

use curium_driver::ArgumentList;
use curium_kernel::F32x2;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::{Entry, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "signal.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "convolution",
        source: SOURCE,
        run: convolution,
    },
    Entry {
        name: "fft_rows",
        source: SOURCE,
        run: fft_rows,
    },
    Entry {
        name: "transpose_complex",
        source: SOURCE,
        run: transpose_complex,
    },
];

fn convolution(bench: &Bench, entry: &Entry) -> Result<Row> {
    let size = bench.size(16384, 150);
    let x = bench.floats(size * size, 1)?;
    let filter: [[f32; 5]; 5] =
        std::array::from_fn(|i| std::array::from_fn(|j| (i as f32 - 1.5) * (j as f32 + 0.5)));
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, size * size)?;
    let grid = (u32(size.div_ceil(128))?, u32(size.div_ceil(16))?);
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.convolution.kernel(),
            rust: &|kernels, stream, y| {
                kernels.convolution.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&x, size, size),
                    filter,
                    RowMajor::new(y, size, size),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(filter).write(y);
                let arguments = arguments.value(u32(size)?).value(u32(size)?);
                twin.launch(grid, 128, arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let element = |i: usize| {
                    let mut sum = 0.0;
                    for (a, filter) in filter.iter().enumerate() {
                        for (b, factor) in filter.iter().enumerate() {
                            let row = (i / size + a).wrapping_sub(2);
                            let column = (i % size + b).wrapping_sub(2);
                            if row < size && column < size {
                                sum += f64::from(factor * x[row * size + column]);
                            }
                        }
                    }
                    sum
                };
                Ok((0..size * size).map(element).collect())
            },
        },
    )
}

/// Returns exp(-2πi · n / 1024).
fn root(n: usize) -> [f64; 2] {
    let angle = -std::f64::consts::TAU * n as f64 / 1024.0;
    [angle.cos(), angle.sin()]
}

fn fft_rows(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(1 << 15, 2);
    let x = bench.complex(1024 * rows, 1)?;
    let roots: Vec<F32x2> = (0..256)
        .map(root)
        .map(|[x, y]| F32x2::new(x as f32, y as f32))
        .collect();
    let roots = DeviceBuffer::from_slice(&bench.stream, &roots)?;
    let y = DeviceBuffer::<F32x2>::uninit(&bench.stream, 1024 * rows)?;
    let blocks = u32(rows)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.fft_rows.kernel(),
            rust: &|kernels, stream, y| {
                kernels.fft_rows.launch(
                    stream,
                    Blocks::new(blocks),
                    RowMajor::new(&x, rows, 1024),
                    &roots,
                    RowMajor::new(y, rows, 1024),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).read(&roots).write(y);
                twin.launch(blocks, 256, arguments)
            },
            reference: &|| {
                let mut expected = Vec::new();
                for x in x.to_vec()?.chunks(1024) {
                    for k in 0..1024 {
                        let mut sum = [0.0_f64; 2];
                        for (n, x) in x.iter().enumerate() {
                            let [c, s] = root(k * n % 1024);
                            let [a, b] = [x.x, x.y].map(f64::from);
                            sum[0] += a * c - b * s;
                            sum[1] += a * s + b * c;
                        }
                        expected.extend(sum);
                    }
                }
                Ok(expected)
            },
        },
    )
}

fn transpose_complex(bench: &Bench, entry: &Entry) -> Result<Row> {
    let size = bench.size(8192, 70);
    let x = bench.complex(size * size, 1)?;
    let y = DeviceBuffer::<F32x2>::uninit(&bench.stream, size * size)?;
    let blocks = u32(size.div_ceil(32))?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.transpose_complex.kernel(),
            rust: &|kernels, stream, y| {
                kernels.transpose_complex.launch(
                    stream,
                    Blocks::new((blocks, blocks)),
                    RowMajor::new(&x, size, size),
                    RowMajor::new(y, size, size),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(u32(size)?);
                let arguments = arguments.value(u32(size)?).write(y);
                twin.launch((blocks, blocks), (32, 8), arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let element = |i: usize| x[i % size * size + i / size];
                let elements = (0..size * size).map(element);
                Ok(elements.flat_map(|x| [x.x, x.y].map(f64::from)).collect())
            },
        },
    )
}
