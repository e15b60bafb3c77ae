//! The kernels of `learning`.

use curium_driver::ArgumentList;
use curium_kernel::host::{Blocks, RowMajor};
use curium_kernel::{F32x2, F32x4};
use curium_memory::DeviceBuffer;

use super::{Entry, components, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "learning.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "cross_entropy",
        source: SOURCE,
        run: cross_entropy,
    },
    Entry {
        name: "layer_norm_backward",
        source: SOURCE,
        run: layer_norm_backward,
    },
    Entry {
        name: "column_sums",
        source: SOURCE,
        run: column_sums,
    },
    Entry {
        name: "embedding",
        source: SOURCE,
        run: embedding,
    },
    Entry {
        name: "embedding_backward",
        source: SOURCE,
        run: embedding_backward,
    },
];

/// Columns are vectors of four.
fn cross_entropy(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(4096, 5);
    let columns = bench.size(8192, 300);
    let x = bench.vectors(rows * columns, 1)?;
    let mut random = fastrand::Rng::with_seed(2);
    let labels: Vec<u32> = (0..rows)
        .map(|_| random.u32(..4 * columns as u32))
        .collect();
    let device_labels = DeviceBuffer::from_slice(&bench.stream, &labels)?;
    let loss = DeviceBuffer::<f32>::uninit(&bench.stream, rows)?;
    let gradient = DeviceBuffer::<F32x4>::uninit(&bench.stream, rows * columns)?;
    let blocks = u32(rows)?;
    bench.compare(
        entry,
        Comparison {
            outputs: (loss, gradient),
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.cross_entropy.kernel(),
            rust: &|kernels, stream, (loss, gradient)| {
                kernels.cross_entropy.launch(
                    stream,
                    Blocks::new(blocks),
                    RowMajor::new(&x, rows, columns),
                    &device_labels,
                    loss,
                    RowMajor::new(gradient, rows, columns),
                )
            },
            cuda: &|twin, (loss, gradient)| {
                let arguments = ArgumentList::new().read(&x).value(u32(columns)?);
                let arguments = arguments.read(&device_labels).write(loss);
                twin.launch(blocks, 256, arguments.write(gradient))
            },
            reference: &|| {
                let mut loss = Vec::new();
                let mut gradient = Vec::new();
                let x = components(&x.to_vec()?);
                for (x, label) in x.chunks(4 * columns).zip(&labels) {
                    let label = *label as usize;
                    let sum: f64 = x.iter().map(|x| f64::from(*x).exp()).sum();
                    loss.push(sum.ln() - f64::from(x[label]));
                    gradient.extend(x.iter().enumerate().map(|(i, x)| {
                        let one = if i == label { 1.0 } else { 0.0 };
                        f64::from(*x).exp() / sum - one
                    }));
                }
                loss.extend(gradient);
                Ok(loss)
            },
        },
    )
}

/// Columns are vectors of four.
fn layer_norm_backward(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(16384, 5);
    let columns = bench.size(1024, 300);
    let blocks = bench.size(264, 2);
    let x = bench.vectors(rows * columns, 1)?;
    let gain = bench.vectors(columns, 2)?;
    let statistics = bench.complex(rows, 3)?;
    let gradient = bench.vectors(rows * columns, 4)?;
    let dx = DeviceBuffer::<F32x4>::uninit(&bench.stream, rows * columns)?;
    let gain_rows = DeviceBuffer::<F32x4>::uninit(&bench.stream, blocks * columns)?;
    let bias_rows = DeviceBuffer::<F32x4>::uninit(&bench.stream, blocks * columns)?;
    let grid = u32(blocks)?;
    bench.compare(
        entry,
        Comparison {
            outputs: (dx, gain_rows, bias_rows),
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.layer_norm_backward.kernel(),
            rust: &|kernels, stream, (dx, gain_rows, bias_rows)| {
                kernels.layer_norm_backward.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&x, rows, columns),
                    &gain,
                    &statistics,
                    RowMajor::new(&gradient, rows, columns),
                    RowMajor::new(dx, rows, columns),
                    RowMajor::new(gain_rows, blocks, columns),
                    RowMajor::new(bias_rows, blocks, columns),
                )
            },
            cuda: &|twin, (dx, gain_rows, bias_rows)| {
                let arguments = ArgumentList::new().read(&x).value(u32(rows)?);
                let arguments = arguments.value(u32(columns)?).read(&gain);
                let arguments = arguments.read(&statistics).read(&gradient).write(dx);
                twin.launch(grid, 256, arguments.write(gain_rows).write(bias_rows))
            },
            reference: &|| {
                let x = components(&x.to_vec()?);
                let gain = components(&gain.to_vec()?);
                let gradient = components(&gradient.to_vec()?);
                let count = 4 * columns;
                let mut dx = Vec::new();
                let mut gain_sums = vec![0.0; blocks * count];
                let mut bias_sums = vec![0.0; blocks * count];
                for (row, statistics) in statistics.to_vec()?.into_iter().enumerate() {
                    let F32x2 {
                        x: mean,
                        y: inverse,
                    } = statistics;
                    let g = |c: usize| f64::from(gradient[row * count + c]);
                    let n = |c: usize| f64::from((x[row * count + c] - mean) * inverse);
                    let h = |c: usize| g(c) * f64::from(gain[c]);
                    let mean_h = (0..count).map(h).sum::<f64>() / count as f64;
                    let mean_hn = (0..count).map(|c| h(c) * n(c)).sum::<f64>() / count as f64;
                    for c in 0..count {
                        gain_sums[row % blocks * count + c] += g(c) * n(c);
                        bias_sums[row % blocks * count + c] += g(c);
                        dx.push((h(c) - mean_h - n(c) * mean_hn) * f64::from(inverse));
                    }
                }
                dx.extend(gain_sums);
                dx.extend(bias_sums);
                Ok(dx)
            },
        },
    )
}

/// Columns are vectors of four.
fn column_sums(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(2048, 20);
    let columns = bench.size(16384, 70);
    let x = bench.vectors(rows * columns, 1)?;
    let y = DeviceBuffer::<F32x4>::uninit(&bench.stream, columns)?;
    let blocks = u32(columns.div_ceil(32))?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.column_sums.kernel(),
            rust: &|kernels, stream, y| {
                let x = RowMajor::new(&x, rows, columns);
                kernels
                    .column_sums
                    .launch(stream, Blocks::new(blocks), x, y)
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(u32(rows)?);
                twin.launch(blocks, (32, 8), arguments.value(u32(columns)?).write(y))
            },
            reference: &|| {
                let mut sums = vec![0.0; 4 * columns];
                for row in components(&x.to_vec()?).chunks(4 * columns) {
                    for (sum, x) in sums.iter_mut().zip(row) {
                        *sum += f64::from(*x);
                    }
                }
                Ok(sums)
            },
        },
    )
}

/// Columns are vectors of four.
fn embedding(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(1 << 15, 10);
    let columns = bench.size(256, 70);
    let count = bench.size(1 << 16, 7);
    let table = bench.vectors(rows * columns, 1)?;
    let mut random = fastrand::Rng::with_seed(2);
    let ids: Vec<u32> = (0..count).map(|_| random.u32(..rows as u32)).collect();
    let device_ids = DeviceBuffer::from_slice(&bench.stream, &ids)?;
    let out = DeviceBuffer::<F32x4>::uninit(&bench.stream, count * columns)?;
    let blocks = u32(count)?;
    bench.compare(
        entry,
        Comparison {
            outputs: out,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.embedding.kernel(),
            rust: &|kernels, stream, out| {
                kernels.embedding.launch(
                    stream,
                    Blocks::new(blocks),
                    RowMajor::new(&table, rows, columns),
                    &device_ids,
                    RowMajor::new(out, count, columns),
                )
            },
            cuda: &|twin, out| {
                let arguments = ArgumentList::new().read(&table).value(u32(rows)?);
                let arguments = arguments.value(u32(columns)?).read(&device_ids);
                twin.launch(blocks, 256, arguments.write(out))
            },
            reference: &|| {
                let table = components(&table.to_vec()?);
                let row = |id: &u32| &table[*id as usize * 4 * columns..][..4 * columns];
                Ok(ids.iter().flat_map(row).map(|x| f64::from(*x)).collect())
            },
        },
    )
}

fn embedding_backward(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(1 << 15, 10);
    let columns = bench.size(1024, 300);
    let count = bench.size(1 << 16, 7);
    let gradient = bench.floats(count * columns, 1)?;
    let mut random = fastrand::Rng::with_seed(2);
    let ids: Vec<u32> = (0..count).map(|_| random.u32(..rows as u32)).collect();
    let device_ids = DeviceBuffer::from_slice(&bench.stream, &ids)?;
    let table = DeviceBuffer::<f32>::zeroed(&bench.stream, rows * columns)?;
    let blocks = u32(count)?;
    bench.compare(
        entry,
        Comparison {
            outputs: table,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &|table| Ok(table.fill(0.0)?),
            kernel: &|kernels| kernels.embedding_backward.kernel(),
            rust: &|kernels, stream, table| {
                let gradient = RowMajor::new(&gradient, count, columns);
                let grid = Blocks::new(blocks);
                kernels
                    .embedding_backward
                    .launch(stream, grid, gradient, &device_ids, table)
            },
            cuda: &|twin, table| {
                let arguments = ArgumentList::new().read(&gradient).value(u32(columns)?);
                let arguments = arguments.read(&device_ids).write(table);
                twin.launch(blocks, 256, arguments.value(u32(rows)?))
            },
            reference: &|| {
                let mut table = vec![0.0; rows * columns];
                for (id, gradient) in ids.iter().zip(gradient.to_vec()?.chunks(columns)) {
                    for (i, gradient) in gradient.iter().enumerate() {
                        table[*id as usize * columns + i] += f64::from(*gradient);
                    }
                }
                Ok(table)
            },
        },
    )
}
