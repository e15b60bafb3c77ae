//! The kernels of `features`.

use curium_driver::ArgumentList;
use curium_kernel::F32x4;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::Entry;
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "features.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "matmul_stages",
        source: SOURCE,
        run: matmul_stages,
    },
    Entry {
        name: "filter_5x5",
        source: SOURCE,
        run: filter_5x5,
    },
    Entry {
        name: "special_functions",
        source: SOURCE,
        run: special_functions,
    },
    Entry {
        name: "streaming",
        source: SOURCE,
        run: streaming,
    },
];

fn u32(size: usize) -> Result<u32> {
    Ok(u32::try_from(size)?)
}

fn nothing<T>(_: &mut T) -> Result<()> {
    Ok(())
}

fn matmul_stages(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(4096, 72);
    let columns = bench.size(4096, 92);
    let inner = bench.size(4096, 36);
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
            kernel: &|kernels| kernels.matmul_stages.kernel(),
            rust: &|kernels, stream, c| {
                kernels.matmul_stages.launch(
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
                let [a, b] = [a.to_vec()?, b.to_vec()?];
                let element = |i: usize| {
                    let (row, column) = (i / columns, i % columns);
                    let products = (0..inner).map(|k| {
                        f64::from(a[row * inner + k]) * f64::from(b[k * columns + column])
                    });
                    products.sum()
                };
                Ok((0..rows * columns).map(element).collect())
            },
        },
    )
}

fn filter_5x5(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(16384, 50);
    let columns = bench.size(16384, 70);
    let weights: [f32; 25] = core::array::from_fn(|i| (i as f32 - 10.0) / 25.0);
    let x = bench.floats(rows * columns, 1)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows * columns)?;
    let grid = (u32(columns.div_ceil(32))?, u32(rows.div_ceil(32))?);
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.filter_5x5.kernel(),
            rust: &|kernels, stream, y| {
                kernels.filter_5x5.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&x, rows, columns),
                    weights,
                    RowMajor::new(y, rows, columns),
                )
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).value(weights).write(y);
                let arguments = arguments.value(u32(rows)?).value(u32(columns)?);
                twin.launch(grid, (32, 8), arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let element = |i: usize| {
                    let products = (0..25).map(|k| {
                        let row = (i / columns + k / 5).saturating_sub(2).min(rows - 1);
                        let column = (i % columns + k % 5).saturating_sub(2).min(columns - 1);
                        f64::from(x[row * columns + column]) * f64::from(weights[k])
                    });
                    products.sum()
                };
                Ok((0..rows * columns).map(element).collect())
            },
        },
    )
}

fn special_functions(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 5000);
    let x = bench.floats(n, 1)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, n)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-5),
            prepare: &nothing,
            kernel: &|kernels| kernels.special_functions.kernel(),
            rust: &|kernels, stream, y| kernels.special_functions.launch(stream, n, &x, y),
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).write(y).value(u32(n)?);
                twin.launch(u32(n.div_ceil(256))?, 256, arguments)
            },
            reference: &|| {
                let value = |x: f32| {
                    let x = f64::from(x);
                    let square = x * x;
                    x.sin() * x.exp()
                        + (square + 1.0).ln()
                        + curium_kernel::Float::erf(x)
                        + x.tanh()
                        + square.powf(1.3)
                        + x.atan()
                };
                Ok(x.to_vec()?.into_iter().map(value).collect())
            },
        },
    )
}

fn streaming(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 24, 1000);
    let numbers: Vec<F32x4> = (0..1000_u16)
        .map(|i| F32x4::new(f32::from(i), 0.5, -f32::from(i), 3.0))
        .collect();
    let x = bench.repeat(&numbers, n)?;
    let y = DeviceBuffer::<F32x4>::uninit(&bench.stream, n)?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.streaming.kernel(),
            rust: &|kernels, stream, y| kernels.streaming.launch(stream, n, &x, y),
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&x).write(y).value(u32(n)?);
                twin.launch(u32(n.div_ceil(256))?, 256, arguments)
            },
            reference: &|| {
                let x = x.to_vec()?;
                let elements = x.iter().flat_map(|x| [x.x, x.y, x.z, x.w]);
                Ok(elements.map(|x| f64::from(2.0 * x + 1.0)).collect())
            },
        },
    )
}
