//! The kernels of `algorithms` and `tensor_cores`.

use curium_driver::{ArgumentList, Kernel, Stream, Untyped};
use curium_kernel::F32x4;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_test_kernels::Kernels;
use curium_test_kernels::algorithms::View;

use super::Entry;
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "algorithms.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "saxpy",
        source: SOURCE,
        run: saxpy,
    },
    Entry {
        name: "block_sum",
        source: SOURCE,
        run: block_sum,
    },
    Entry {
        name: "matmul",
        source: SOURCE,
        run: matmul,
    },
    Entry {
        name: "matmul_async",
        source: SOURCE,
        run: matmul_async,
    },
    Entry {
        name: "histogram",
        source: SOURCE,
        run: histogram,
    },
    Entry {
        name: "softmax",
        source: SOURCE,
        run: softmax,
    },
    Entry {
        name: "layer_norm",
        source: SOURCE,
        run: layer_norm,
    },
    Entry {
        name: "scan",
        source: SOURCE,
        run: scan,
    },
    Entry {
        name: "sort",
        source: SOURCE,
        run: sort,
    },
    Entry {
        name: "n_body",
        source: SOURCE,
        run: n_body,
    },
    Entry {
        name: "mandelbrot",
        source: SOURCE,
        run: mandelbrot,
    },
    Entry {
        name: "stencil",
        source: SOURCE,
        run: stencil,
    },
    Entry {
        name: "transpose",
        source: SOURCE,
        run: transpose,
    },
    Entry {
        name: "attention",
        source: "attention.cu",
        run: attention,
    },
];

/// The sizes of a launch, as the kernels in CUDA C++ receive them.
fn u32(size: usize) -> Result<u32> {
    Ok(u32::try_from(size)?)
}

/// Converts numbers for comparisons.
fn numbers<T: Into<f64> + Copy>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| (*value).into()).collect()
}

/// Sets nothing: the kernels do not read their outputs.
fn nothing<T>(_: &mut T) -> Result<()> {
    Ok(())
}

fn saxpy(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 5000);
    let x = bench.floats(n, 1)?;
    let y = bench.floats(n, 2)?;
    let host_x = x.to_vec()?;
    let host_y = y.to_vec()?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &|y| Ok(y.copy_from_slice(&host_y)?),
            kernel: &|kernels| kernels.saxpy.kernel(),
            rust: &|kernels, stream, y| kernels.saxpy.launch(stream, n, 2.0, &x, y),
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().value(2.0_f32).read(&x).write(y);
                twin.launch(u32(n.div_ceil(256))?, 256, arguments.value(u32(n)?))
            },
            reference: &|| {
                let pairs = host_x.iter().zip(&host_y);
                Ok(pairs
                    .map(|(x, y)| f64::from(2.0_f32.mul_add(*x, *y)))
                    .collect())
            },
        },
    )
}

fn block_sum(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 5000);
    let blocks = u32(bench.size(1056, 4))?;
    let x = bench.floats(n, 1)?;
    let total = DeviceBuffer::<f32>::zeroed(&bench.stream, 1)?;
    bench.compare(
        entry,
        Comparison {
            outputs: total,
            tolerance: Tolerance::Relative(1e-3),
            prepare: &|total| Ok(total.fill(0.0)?),
            kernel: &|kernels| kernels.block_sum.kernel(),
            rust: &|kernels, stream, total| {
                kernels
                    .block_sum
                    .launch(stream, Blocks::new(blocks), &x, total)
            },
            cuda: &|twin, total| {
                let arguments = ArgumentList::new().read(&x).value(u32(n)?).write(total);
                twin.launch(blocks, 256, arguments)
            },
            reference: &|| Ok(vec![x.to_vec()?.into_iter().map(f64::from).sum()]),
        },
    )
}

fn matmul(bench: &Bench, entry: &Entry) -> Result<Row> {
    multiply(
        bench,
        entry,
        &|kernels| kernels.matmul.kernel(),
        &|kernels, stream, grid, a, b, c| kernels.matmul.launch(stream, grid, a, b, c),
    )
}

fn matmul_async(bench: &Bench, entry: &Entry) -> Result<Row> {
    multiply(
        bench,
        entry,
        &|kernels| kernels.matmul_async.kernel(),
        &|kernels, stream, grid, a, b, c| kernels.matmul_async.launch(stream, grid, a, b, c),
    )
}

type Factor<'a> = RowMajor<&'a DeviceBuffer<f32>>;
type Product<'a> = RowMajor<&'a mut DeviceBuffer<f32>>;

/// A launch of a product of matrices.
type Multiply = dyn Fn(
    &Kernels,
    &Stream,
    Blocks,
    Factor<'_>,
    Factor<'_>,
    Product<'_>,
) -> curium_driver::Result<()>;

/// Compares kernels that multiply matrices by tiles of 64 × 64 elements.
fn multiply(
    bench: &Bench,
    entry: &Entry,
    kernel: &dyn Fn(&Kernels) -> &Kernel<Untyped>,
    launch: &Multiply,
) -> Result<Row> {
    let (rows, columns, inner) = if bench.is_small {
        (70, 90, 37)
    } else {
        (4096, 4096, 4096)
    };
    let a = bench.floats(rows * inner, 1)?;
    let b = bench.floats(inner * columns, 2)?;
    let c = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    let grid = (u32(columns.div_ceil(64))?, u32(rows.div_ceil(64))?);
    bench.compare(
        entry,
        Comparison {
            outputs: c,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel,
            rust: &|kernels, stream, c| {
                launch(
                    kernels,
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&a, rows, inner),
                    RowMajor::new(&b, inner, columns),
                    RowMajor::new(c, rows, columns),
                )
            },
            cuda: &|twin, c| {
                let arguments = ArgumentList::new().read(&a).read(&b).write(c);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(grid, (16, 16), arguments.value(u32(inner)?))
            },
            reference: &|| {
                let a = a.to_vec()?;
                let b = b.to_vec()?;
                let element = |i: usize| {
                    let products = (0..inner)
                        .map(|k| a[i / columns * inner + k] * b[k * columns + i % columns]);
                    f64::from(products.sum::<f32>())
                };
                Ok((0..rows * columns).map(element).collect())
            },
        },
    )
}

fn histogram(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 28, 5000);
    let blocks = u32(bench.size(1056, 4))?;
    let data = bench.bytes(n, 1)?;
    let total = DeviceBuffer::<u32>::zeroed(&bench.stream, 256)?;
    bench.compare(
        entry,
        Comparison {
            outputs: total,
            tolerance: Tolerance::Exact,
            prepare: &|total| Ok(total.fill(0)?),
            kernel: &|kernels| kernels.histogram.kernel(),
            rust: &|kernels, stream, total| {
                kernels
                    .histogram
                    .launch(stream, Blocks::new(blocks), &data, total)
            },
            cuda: &|twin, total| {
                let arguments = ArgumentList::new().read(&data).value(u32(n)?).write(total);
                twin.launch(blocks, 256, arguments)
            },
            reference: &|| {
                let mut bins = vec![0.0; 256];
                for byte in data.to_vec()? {
                    bins[usize::from(byte)] += 1.0;
                }
                Ok(bins)
            },
        },
    )
}

fn softmax(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(16384, 3);
    let columns = bench.size(4096, 1000);
    let x = bench.floats(rows * columns, 1)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.softmax.kernel(),
            rust: &|kernels, stream, y| {
                kernels.softmax.launch(
                    stream,
                    Blocks::new(u32(rows).unwrap_or(0)),
                    RowMajor::new(&x, rows, columns),
                    RowMajor::new(y, rows, columns),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).write(y);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(u32(rows)?, 256, arguments)
            },
            reference: &|| {
                let mut y = Vec::new();
                for row in x.to_vec()?.chunks(columns) {
                    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let powers = row.iter().map(|x| (f64::from(*x) - f64::from(max)).exp());
                    let sum: f64 = powers.clone().sum();
                    y.extend(powers.map(|power| power / sum));
                }
                Ok(y)
            },
        },
    )
}

fn layer_norm(bench: &Bench, entry: &Entry) -> Result<Row> {
    const EPSILON: f32 = 1e-5;
    let rows = bench.size(16384, 3);
    let columns = bench.size(4096, 1000);
    let x = bench.floats(rows * columns, 1)?;
    let gain = bench.floats(columns, 2)?;
    let bias = bench.floats(columns, 3)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.layer_norm.kernel(),
            rust: &|kernels, stream, y| {
                kernels.layer_norm.launch(
                    stream,
                    Blocks::new(u32(rows).unwrap_or(0)),
                    RowMajor::new(&x, rows, columns),
                    &gain,
                    &bias,
                    EPSILON,
                    RowMajor::new(y, rows, columns),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).read(&gain).read(&bias);
                let arguments = arguments.value(EPSILON).write(y);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(u32(rows)?, 256, arguments)
            },
            reference: &|| {
                let gain = gain.to_vec()?;
                let bias = bias.to_vec()?;
                let mut y = Vec::new();
                for row in x.to_vec()?.chunks(columns) {
                    let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / columns as f64;
                    let squares = row.iter().map(|x| (f64::from(*x) - mean).powi(2));
                    let variance = squares.sum::<f64>() / columns as f64;
                    let scale = (variance + f64::from(EPSILON)).sqrt().recip();
                    let elements = row.iter().zip(&gain).zip(&bias);
                    y.extend(elements.map(|((x, gain), bias)| {
                        (f64::from(*x) - mean) * scale * f64::from(*gain) + f64::from(*bias)
                    }));
                }
                Ok(y)
            },
        },
    )
}

fn scan(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 5000);
    let parts = n.div_ceil(1024);
    let x = bench.words(n, 1)?;
    let sums = DeviceBuffer::<u32>::uninit(&bench.stream, n)?;
    let totals = DeviceBuffer::<u32>::uninit(&bench.stream, parts)?;
    bench.compare(
        entry,
        Comparison {
            outputs: (sums, totals),
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.scan.kernel(),
            rust: &|kernels, stream, (sums, totals)| {
                let grid = Blocks::new(u32(parts).unwrap_or(0));
                kernels.scan.launch(stream, grid, &x, sums, totals)
            },
            cuda: &|twin, (sums, totals)| {
                let arguments = ArgumentList::new().read(&x).value(u32(n)?);
                twin.launch(u32(parts)?, 256, arguments.write(sums).write(totals))
            },
            reference: &|| {
                let mut sums = Vec::new();
                let mut totals = Vec::new();
                for part in x.to_vec()?.chunks(1024) {
                    let mut total = 0_u32;
                    for x in part {
                        sums.push(f64::from(total));
                        total = total.wrapping_add(*x);
                    }
                    totals.push(f64::from(total));
                }
                sums.extend(totals);
                Ok(sums)
            },
        },
    )
}

fn sort(bench: &Bench, entry: &Entry) -> Result<Row> {
    let parts = bench.size(1 << 16, 3);
    let x = bench.words(parts * 1024, 1)?;
    let y = DeviceBuffer::<u32>::uninit(&bench.stream, parts * 1024)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.sort.kernel(),
            rust: &|kernels, stream, y| {
                let grid = Blocks::new(u32(parts).unwrap_or(0));
                kernels
                    .sort
                    .launch(stream, grid, &x, RowMajor::new(y, parts, 1024))
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(u32(parts * 1024)?);
                twin.launch(u32(parts)?, 512, arguments.write(y))
            },
            reference: &|| {
                let mut y = x.to_vec()?;
                for part in y.chunks_mut(1024) {
                    part.sort_unstable();
                }
                Ok(numbers(&y))
            },
        },
    )
}

fn n_body(bench: &Bench, entry: &Entry) -> Result<Row> {
    const SOFTENING: f32 = 0.01;
    let n = bench.size(65536, 300);
    let mut random = fastrand::Rng::with_seed(1);
    let bodies: Vec<F32x4> = (0..n)
        .map(|_| F32x4 {
            x: random.f32() - 0.5,
            y: random.f32() - 0.5,
            z: random.f32() - 0.5,
            w: random.f32(),
        })
        .collect();
    let device_bodies = DeviceBuffer::from_slice(&bench.stream, &bodies)?;
    let accelerations = DeviceBuffer::<F32x4>::zeroed(&bench.stream, n)?;
    let blocks = u32(n.div_ceil(256))?;
    bench.compare(
        entry,
        Comparison {
            outputs: accelerations,
            tolerance: Tolerance::Relative(1e-2),
            prepare: &nothing,
            kernel: &|kernels| kernels.n_body.kernel(),
            rust: &|kernels, stream, accelerations| {
                kernels.n_body.launch(
                    stream,
                    Blocks::new(blocks),
                    &device_bodies,
                    SOFTENING,
                    accelerations,
                )
            },
            cuda: &|twin, accelerations| {
                let arguments = ArgumentList::new().read(&device_bodies).value(u32(n)?);
                let arguments = arguments.value(SOFTENING).write(accelerations);
                twin.launch(blocks, 256, arguments)
            },
            reference: &|| {
                let mut accelerations = Vec::new();
                for own in &bodies {
                    let mut sum = [0.0; 4];
                    for other in &bodies {
                        let d = [other.x - own.x, other.y - own.y, other.z - own.z].map(f64::from);
                        let square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                        let factor =
                            f64::from(other.w) * (square + f64::from(SOFTENING)).powf(-1.5);
                        for (sum, d) in sum.iter_mut().zip(d) {
                            *sum += d * factor;
                        }
                    }
                    accelerations.extend(sum);
                }
                Ok(accelerations)
            },
        },
    )
}

fn mandelbrot(bench: &Bench, entry: &Entry) -> Result<Row> {
    let size = bench.size(8192, 50);
    let view = View {
        left: -2.0,
        top: -1.5,
        step: 3.0 / size as f32,
        limit: 256,
    };
    let image = DeviceBuffer::<u32>::uninit(&bench.stream, size * size)?;
    let blocks = u32(size.div_ceil(16))?;
    bench.compare(
        entry,
        Comparison {
            outputs: image,
            // Where z is near the limit, another order of roundings changes the number of
            // iterations.
            tolerance: Tolerance::Share(0.01),
            prepare: &nothing,
            kernel: &|kernels| kernels.mandelbrot.kernel(),
            rust: &|kernels, stream, image| {
                kernels.mandelbrot.launch(
                    stream,
                    Blocks::new((blocks, blocks)),
                    view,
                    RowMajor::new(image, size, size),
                )
            },
            cuda: &|twin, image| {
                let arguments = ArgumentList::new().value(view.left).value(view.top);
                let arguments = arguments.value(view.step).value(view.limit).write(image);
                let arguments = arguments.value(u32(size)?).value(u32(size)?);
                twin.launch((blocks, blocks), (16, 16), arguments)
            },
            reference: &|| {
                let mut image = Vec::new();
                for row in 0..size {
                    for column in 0..size {
                        let cx = (column as f32).mul_add(view.step, view.left);
                        let cy = (row as f32).mul_add(view.step, view.top);
                        let mut x = 0.0_f32;
                        let mut y = 0.0_f32;
                        let mut count = 0;
                        while count < view.limit && x.mul_add(x, y * y) <= 4.0 {
                            let next = x.mul_add(x, -(y * y)) + cx;
                            y = (2.0 * x).mul_add(y, cy);
                            x = next;
                            count += 1;
                        }
                        image.push(f64::from(count));
                    }
                }
                Ok(image)
            },
        },
    )
}

fn stencil(bench: &Bench, entry: &Entry) -> Result<Row> {
    const RATE: f32 = 0.1;
    let rows = bench.size(16384, 50);
    let columns = bench.size(16384, 70);
    let x = bench.floats(rows * columns, 1)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    let grid = (u32(columns.div_ceil(32))?, u32(rows.div_ceil(8))?);
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.stencil.kernel(),
            rust: &|kernels, stream, y| {
                kernels.stencil.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&x, rows, columns),
                    RATE,
                    RowMajor::new(y, rows, columns),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(RATE).write(y);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(grid, (32, 8), arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let element = |i: usize| {
                    let (row, column) = (i / columns, i % columns);
                    if row == 0 || row + 1 == rows || column == 0 || column + 1 == columns {
                        return f64::from(x[i]);
                    }
                    let neighbors = x[i - columns] + x[i + columns] + x[i - 1] + x[i + 1];
                    f64::from(x[i]) + f64::from(RATE) * f64::from(neighbors - 4.0 * x[i])
                };
                Ok((0..rows * columns).map(element).collect())
            },
        },
    )
}

fn transpose(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(16384, 50);
    let columns = bench.size(16384, 70);
    let x = bench.floats(rows * columns, 1)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    let grid = (u32(columns.div_ceil(32))?, u32(rows.div_ceil(32))?);
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.transpose.kernel(),
            rust: &|kernels, stream, y| {
                kernels.transpose.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&x, columns, rows),
                    RowMajor::new(y, rows, columns),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).write(y);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(grid, (32, 8), arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let element = |i: usize| f64::from(x[i % columns * rows + i / columns]);
                Ok((0..rows * columns).map(element).collect())
            },
        },
    )
}

/// Returns the number with the bits of a bfloat16.
fn from_bf16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

fn attention(bench: &Bench, entry: &Entry) -> Result<Row> {
    const DIMENSIONS: usize = 64;
    let queries = bench.size(65536, 100);
    let keys = bench.size(4096, 48);
    let scale = 0.125;
    // Pairs of bfloat16 from -1 to 1.
    let mut random = fastrand::Rng::with_seed(1);
    let mut element = || (random.f32() * 2.0 - 1.0).to_bits() >> 16;
    let pairs: Vec<u32> = (0..1 << 16).map(|_| element() | element() << 16).collect();
    let halves: Vec<u16> = pairs.iter().map(|pair| (pair >> 16) as u16).collect();
    let q = bench.repeat(&pairs, queries * DIMENSIONS / 2)?;
    let k = bench.repeat(&pairs[1..], keys * DIMENSIONS / 2)?;
    let v = bench.repeat(&halves, keys * DIMENSIONS)?;
    let out = DeviceBuffer::<f32>::uninit(&bench.stream, queries * DIMENSIONS)?;
    let blocks = u32(queries.div_ceil(64))?;
    bench.compare(
        entry,
        Comparison {
            outputs: out,
            // The probabilities are rounded to bfloat16.
            tolerance: Tolerance::Relative(1e-2),
            prepare: &nothing,
            kernel: &|kernels| kernels.attention.kernel(),
            rust: &|kernels, stream, out| {
                kernels
                    .attention
                    .launch(stream, Blocks::new(blocks), &q, &k, &v, scale, out)
            },
            cuda: &|twin, out| {
                let arguments = ArgumentList::new().read(&q).read(&k).read(&v);
                let arguments = arguments.value(scale).write(out);
                let arguments = arguments.value(u32(queries)?).value(u32(keys)?);
                twin.launch(blocks, 128, arguments)
            },
            reference: &|| {
                let unpacked = |pairs: Vec<u32>| -> Vec<f64> {
                    let halves = pairs
                        .iter()
                        .flat_map(|pair| [*pair as u16, (pair >> 16) as u16]);
                    halves.map(from_bf16).collect()
                };
                let q = unpacked(q.to_vec()?);
                let k = unpacked(k.to_vec()?);
                let v: Vec<f64> = v.to_vec()?.into_iter().map(from_bf16).collect();
                let mut out = Vec::new();
                for q in q.chunks(DIMENSIONS) {
                    let scores = k.chunks(DIMENSIONS).map(|k| {
                        let product: f64 = q.iter().zip(k).map(|(q, k)| q * k).sum();
                        (product * f64::from(scale)).exp()
                    });
                    let scores: Vec<f64> = scores.collect();
                    let total: f64 = scores.iter().sum();
                    out.extend((0..DIMENSIONS).map(|column| {
                        let products = scores.iter().enumerate();
                        let sum: f64 = products
                            .map(|(key, score)| score * v[key * DIMENSIONS + column])
                            .sum();
                        sum / total
                    }));
                }
                Ok(out)
            },
        },
    )
}
