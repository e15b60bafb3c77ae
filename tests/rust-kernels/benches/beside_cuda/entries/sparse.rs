//! The kernels of `sparse`.

use curium_driver::ArgumentList;
use curium_kernel::host::Blocks;
use curium_memory::DeviceBuffer;

use super::{Entry, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "spmv",
    source: "sparse.cu",
    run: spmv,
}];

/// Rows of 16 to 80 elements.
fn spmv(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(1 << 21, 100);
    let mut random = fastrand::Rng::with_seed(1);
    let mut row_starts = vec![0_u32];
    let mut count = 0;
    for _ in 0..rows {
        count += random.u32(16..=80);
        row_starts.push(count);
    }
    let count = count as usize;
    let pattern: Vec<u32> = (0..count.min(1 << 22))
        .map(|_| random.u32(..rows as u32))
        .collect();
    let row_starts = DeviceBuffer::from_slice(&bench.stream, &row_starts)?;
    let columns = bench.repeat(&pattern, count)?;
    let values = bench.floats(count, 2)?;
    let x = bench.floats(rows, 3)?;
    let y = DeviceBuffer::<f32>::uninit(&bench.stream, rows)?;
    let blocks = u32(rows.div_ceil(8))?;
    bench.compare(
        entry,
        Comparison {
            outputs: y,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.spmv.kernel(),
            rust: &|kernels, stream, y| {
                let grid = Blocks::new(blocks);
                kernels
                    .spmv
                    .launch(stream, grid, &row_starts, &columns, &values, &x, y)
            },
            cuda: &|twin, y| {
                let arguments = ArgumentList::new().read(&row_starts).value(u32(rows)?);
                let arguments = arguments.read(&columns).read(&values).read(&x);
                twin.launch(blocks, 256, arguments.write(y))
            },
            reference: &|| {
                let columns = columns.to_vec()?;
                let values = values.to_vec()?;
                let x = x.to_vec()?;
                let element = |bounds: &[u32]| {
                    let products = (bounds[0] as usize..bounds[1] as usize)
                        .map(|i| values[i] * x[columns[i] as usize]);
                    f64::from(products.sum::<f32>())
                };
                Ok(row_starts.to_vec()?.windows(2).map(element).collect())
            },
        },
    )
}
