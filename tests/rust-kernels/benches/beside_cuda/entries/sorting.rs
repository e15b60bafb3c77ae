//! The kernels of `sorting`.

use curium_driver::ArgumentList;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::{Entry, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "sorting.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "radix_count",
        source: SOURCE,
        run: radix_count,
    },
    Entry {
        name: "radix_scatter",
        source: SOURCE,
        run: radix_scatter,
    },
    Entry {
        name: "top_k",
        source: SOURCE,
        run: top_k,
    },
];

/// The pass that is measured.
const SHIFT: u32 = 8;

/// Returns the counts of a pass: the parts of a digit are next to each other.
fn counts(keys: &[u32]) -> Vec<u32> {
    let parts = keys.len().div_ceil(4096);
    let mut counts = vec![0; 256 * parts];
    for (part, keys) in keys.chunks(4096).enumerate() {
        for key in keys {
            counts[(key >> SHIFT) as usize % 256 * parts + part] += 1;
        }
    }
    counts
}

fn radix_count(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 9000);
    let keys = bench.words(n, 1)?;
    let blocks = u32(n.div_ceil(4096))?;
    let output = DeviceBuffer::<u32>::uninit(&bench.stream, 256 * blocks as usize)?;
    bench.compare(
        entry,
        Comparison {
            outputs: output,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.radix_count.kernel(),
            rust: &|kernels, stream, counts| {
                kernels
                    .radix_count
                    .launch(stream, Blocks::new(blocks), &keys, SHIFT, counts)
            },
            cuda: &|twin, counts| {
                let arguments = ArgumentList::new().read(&keys).value(n as u64);
                twin.launch(blocks, 256, arguments.value(SHIFT).write(counts))
            },
            reference: &|| Ok(counts(&keys.to_vec()?).into_iter().map(f64::from).collect()),
        },
    )
}

fn radix_scatter(bench: &Bench, entry: &Entry) -> Result<Row> {
    let n = bench.size(1 << 26, 9000);
    let keys = bench.words(n, 1)?;
    let blocks = u32(n.div_ceil(4096))?;
    let mut position = 0;
    let positions: Vec<u32> = counts(&keys.to_vec()?)
        .into_iter()
        .map(|count| {
            let first = position;
            position += count;
            first
        })
        .collect();
    let positions = DeviceBuffer::from_slice(&bench.stream, &positions)?;
    let sorted = DeviceBuffer::<u32>::uninit(&bench.stream, n)?;
    bench.compare(
        entry,
        Comparison {
            outputs: sorted,
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.radix_scatter.kernel(),
            rust: &|kernels, stream, sorted| {
                let grid = Blocks::new(blocks);
                kernels
                    .radix_scatter
                    .launch(stream, grid, &keys, SHIFT, &positions, sorted)
            },
            cuda: &|twin, sorted| {
                let arguments = ArgumentList::new().read(&keys).value(n as u64);
                let arguments = arguments.value(SHIFT).read(&positions).write(sorted);
                twin.launch(blocks, 256, arguments)
            },
            reference: &|| {
                let mut keys = keys.to_vec()?;
                keys.sort_by_key(|key| (key >> SHIFT) % 256);
                Ok(keys.into_iter().map(f64::from).collect())
            },
        },
    )
}

fn top_k(bench: &Bench, entry: &Entry) -> Result<Row> {
    let (rows, columns) = if bench.is_small {
        (9, 1000)
    } else {
        (16384, 8192)
    };
    let x = bench.floats(rows * columns, 1)?;
    let values = DeviceBuffer::<f32>::uninit(&bench.stream, 32 * rows)?;
    let indices = DeviceBuffer::<u32>::uninit(&bench.stream, 32 * rows)?;
    let blocks = u32(rows.div_ceil(8))?;
    bench.compare(
        entry,
        Comparison {
            outputs: (values, indices),
            tolerance: Tolerance::Exact,
            prepare: &nothing,
            kernel: &|kernels| kernels.top_k.kernel(),
            rust: &|kernels, stream, (values, indices)| {
                let x = RowMajor::new(&x, rows, columns);
                kernels
                    .top_k
                    .launch(stream, Blocks::new(blocks), x, values, indices)
            },
            cuda: &|twin, (values, indices)| {
                let arguments = ArgumentList::new().read(&x).value(u32(rows)?);
                let arguments = arguments.value(u32(columns)?).write(values);
                twin.launch(blocks, 256, arguments.write(indices))
            },
            reference: &|| {
                let mut values = Vec::new();
                let mut indices = Vec::new();
                for x in x.to_vec()?.chunks(columns) {
                    let mut order: Vec<usize> = (0..columns).collect();
                    order.sort_by(|a, b| x[*b].total_cmp(&x[*a]).then(a.cmp(b)));
                    values.extend(order[..32].iter().map(|i| f64::from(x[*i])));
                    indices.extend(order[..32].iter().map(|i| *i as f64));
                }
                values.extend(indices);
                Ok(values)
            },
        },
    )
}
