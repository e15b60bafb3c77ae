//! The kernels of `gemm`.

use curium_driver::ArgumentList;
use curium_kernel::host::{Blocks, RowMajor};
use curium_kernel::{F32x2, U32x4};
use curium_memory::DeviceBuffer;

use super::{Entry, nothing, u32};
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "gemm_bf16",
    source: "gemm.cu",
    run: gemm_bf16,
}];

/// Returns the numbers of groups of eight bfloat16.
fn unpack(groups: &[U32x4]) -> Vec<f32> {
    groups
        .iter()
        .flat_map(|group| [group.x, group.y, group.z, group.w])
        .flat_map(|pair| [pair << 16, pair & 0xffff_0000].map(f32::from_bits))
        .collect()
}

fn gemm_bf16(bench: &Bench, entry: &Entry) -> Result<Row> {
    let rows = bench.size(4096, 130);
    let columns = bench.size(4096, 136);
    let inner = bench.size(4096, 72);
    let a = bench.bf16(rows * inner / 8, 1)?;
    let b = bench.bf16(inner * columns / 8, 2)?;
    let c = DeviceBuffer::<F32x2>::uninit(&bench.stream, rows * columns / 2)?;
    let grid = (u32(columns.div_ceil(128))?, u32(rows.div_ceil(128))?);
    bench.compare(
        entry,
        Comparison {
            outputs: c,
            tolerance: Tolerance::Relative(1e-4),
            prepare: &nothing,
            kernel: &|kernels| kernels.gemm_bf16.kernel(),
            rust: &|kernels, stream, c| {
                kernels.gemm_bf16.launch(
                    stream,
                    Blocks::new(grid),
                    RowMajor::new(&a, rows, inner / 8),
                    RowMajor::new(&b, inner, columns / 8),
                    RowMajor::new(c, rows, columns / 2),
                )
            },
            cuda: &|twin, c| {
                let arguments = ArgumentList::new().read(&a).value(u32(rows)?);
                let arguments = arguments.value(u32(inner / 8)?).read(&b);
                let arguments = arguments.value(u32(columns / 8)?).write(c);
                twin.launch(grid, 256, arguments.value(u32(columns / 2)?))
            },
            reference: &|| {
                let a = unpack(&a.to_vec()?);
                let b = unpack(&b.to_vec()?);
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
